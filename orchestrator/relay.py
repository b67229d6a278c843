"""A call's progress on its way to a client that can only be told by awaiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sandbox.progress import Progress

Tell = Callable[[float, float | None, str], Awaitable[None]]


class Relay:
    """Tells in order what is heard, until it is closed: past its answer a call has no progress.

    What telling raises ends it.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waiting: asyncio.Queue[Progress | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def hear(self, progress: Progress) -> None:
        if self._closed:
            return
        self._waiting.put_nowait(progress)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Returns when what was heard is told."""
        self._closed = True
        if self._task is None:
            return
        self._waiting.put_nowait(None)
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while progress := await self._waiting.get():
            await self._tell(progress.done, progress.total, progress.message)
