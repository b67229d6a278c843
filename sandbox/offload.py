"""Work on foreign data beside the event loop.

What is small is done at once; what is larger in a thread, so that one answer of a server holds up
no other server's. Native code (RE2, zlib) lets the loop run meanwhile, Python code every few
milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

INLINE_BYTES = 256 * 1024
"""Work on as much takes a millisecond or so."""

INLINE_SECONDS = 0.002
"""Of the event loop's time, what the data of one server takes before others have their turn."""

INLINE_VALUES = 500
"""Looking at as many values takes next to nothing."""

INLINE_PAIRS = 1000
"""Holding each of some values against each part of a schema takes twenty microseconds a pair, where
they break it: a value may have to be held against all of them.
"""

_LETTERS = INLINE_BYTES // INLINE_VALUES
"""Characters of a text that count as a value."""
_SCALARS = (int, float, type(None))
"""Told apart early: to find out that they are no `Mapping` takes longest."""

T = TypeVar("T")


def has_many_values(value: Any, weight: int = 1) -> bool:
    """Whether a JSON value has so many parts, or such long texts, that work on it takes long; looks
    at no more of it. `weight` is the number of parts of a schema that it is to be held against.

    Level by level: a result's text is found before the many values that it says as well.
    """
    found, room = [value], min(INLINE_VALUES, INLINE_PAIRS // weight)
    for item in found:
        if isinstance(item, str):
            room -= len(item) // _LETTERS
        elif isinstance(item, _SCALARS):
            continue
        elif isinstance(item, list | tuple):
            room -= len(item)
            found += item if room > 0 else ()
        elif isinstance(item, Mapping):
            room -= len(item)
            found += item.values() if room > 0 else ()
        if room <= 0:
            return True
    return False


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """The result of work on `size` bytes."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)


async def run_counted(value: Any, work: Callable[[], T], weight: int = 1) -> T:
    """The result of checking a JSON value, such as a call's arguments."""
    return await asyncio.to_thread(work) if has_many_values(value, weight) else work()


async def run_beside(work: Callable[[], T]) -> T:
    """The result of work that takes long also where its data is small, such as judging code."""
    return await asyncio.to_thread(work)


class Workbench:
    """A thread of its own for the large answers of one server, or the large arguments of all calls:
    they wait for each other, and for nobody else's. It begins with the first of them.
    """

    thread: ThreadPoolExecutor | None = None

    async def run_sized(self, size: int, work: Callable[[], T]) -> T:
        """The result of work on `size` bytes."""
        return work() if size <= INLINE_BYTES else await self.run(work)

    async def run_counted(self, value: Any, work: Callable[[], T], weight: int = 1) -> T:
        """The result of checking a JSON value."""
        return await self.run(work) if has_many_values(value, weight) else work()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of work that takes long."""
        self.thread = self.thread or ThreadPoolExecutor(1, "answers")
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)

    def close(self) -> None:
        """End the thread after what it has to do. A last answer may still be worked on."""
        thread, self.thread = self.thread, None
        if thread is not None:
            thread.shutdown(wait=False)
