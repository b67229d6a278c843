"""Time as the broker sees it, so that a limit of thirty seconds can be crossed without waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

    def wall(self) -> float:
        """Seconds since 1970, for dates that travel; may jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Raises TimeoutError where an enclosing deadline passes first."""
        ...

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        """A block that raises TimeoutError when it takes longer."""
        ...


class SystemClock:
    """The real clock."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        return asyncio.timeout(seconds)


class VirtualClock:
    """A clock that moves only by `sleep`, which returns at once. Deadlines nest, never overlap.

    `epoch` is the wall clock's time at its zero.
    """

    def __init__(self, start: float = 0.0, epoch: float = 1_700_000_000.0) -> None:
        self._now = start
        self._epoch = epoch
        self._deadlines: list[float] = []

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._epoch + self._now

    async def sleep(self, seconds: float) -> None:
        wanted = self._now + seconds
        earliest = min(self._deadlines, default=wanted)
        self._now = max(self._now, min(wanted, earliest))
        if wanted > earliest:
            raise TimeoutError

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        return self._deadline(seconds)

    @asynccontextmanager
    async def _deadline(self, seconds: float) -> AsyncIterator[None]:
        end = self._now + seconds
        self._deadlines.append(end)
        try:
            yield
        finally:
            self._deadlines.remove(end)
