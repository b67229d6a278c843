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

T = TypeVar("T")


async def run_on_value(value: Any, work: Callable[[Any], T]) -> T:
    """The result of work on a JSON value."""
    return await asyncio.to_thread(work, value) if is_large(value) else work(value)


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """The result of work on `size` bytes."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)


def is_large(value: Any) -> bool:
    """Whether a JSON value takes more than `INLINE_BYTES` or so; looks at no more of it."""
    left, room = [value], INLINE_BYTES
    while left and room > 0:
        item = left.pop()
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, Mapping):
            room -= 20 * len(item)
            left += item.values() if room > 0 else ()
        elif isinstance(item, list | tuple):
            room -= 10 * len(item)
            left += item if room > 0 else ()
    return room <= 0


class Workbench:
    """A thread of its own for the large answers of one server: they wait for each other, and for
    nobody else's. It begins with the first of them.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run_sized(self, size: int, work: Callable[[], T]) -> T:
        """The result of work on `size` bytes."""
        if size <= INLINE_BYTES:
            return work()
        self._thread = self._thread or ThreadPoolExecutor(1, "answers")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread after what it has to do. A last answer may still be worked on."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False)
