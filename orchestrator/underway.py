"""Work that is not left half-done because whoever asked for it went away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

CLOSE_SECONDS = 5.0

T = TypeVar("T")


@dataclass(frozen=True)
class UnderWay:
    """Tasks that outlive those who wait for them."""

    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives; it goes on where its waiter is cancelled."""
        return await asyncio.shield(self.begin(work))

    async def close(self) -> None:
        """Let end what has begun; what takes too long is cut, its outcome unknown."""
        begun = tuple(self.tasks)
        if begun:
            _, late = await asyncio.wait(begun, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)
