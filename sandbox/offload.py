"""Work on foreign data beside the event loop.

What is small is done at once; what is larger in a thread, so that one answer of a server holds up
no other server's. Native code (RE2, zlib) lets the loop run meanwhile, Python code every few
milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

INLINE_BYTES = 256 * 1024
"""Work on as much takes a millisecond or so."""

T = TypeVar("T")


async def run_sized(size: int, work: Callable[[], T]) -> T:
    """The result of work on `size` bytes."""
    return work() if size <= INLINE_BYTES else await asyncio.to_thread(work)


async def run_beside(work: Callable[[], T]) -> T:
    """The result of work that takes long also where its data is small, such as judging code."""
    return await asyncio.to_thread(work)


class Workbench:
    """A thread of its own for the large answers of one server: they wait for each other, and for
    nobody else's. It begins with the first of them.
    """

    thread: ThreadPoolExecutor | None = None

    async def run_sized(self, size: int, work: Callable[[], T]) -> T:
        """The result of work on `size` bytes."""
        if size <= INLINE_BYTES:
            return work()
        self.thread = self.thread or ThreadPoolExecutor(1, "answers")
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)

    def close(self) -> None:
        """End the thread after what it has to do. A last answer may still be worked on."""
        thread, self.thread = self.thread, None
        if thread is not None:
            thread.shutdown(wait=False)
