"""Clocks for code that waits: the system's, and a virtual one for tests that never sleeps."""

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

    def get_wall_time(self) -> float:
        """Seconds since 1970, for dates that travel; may jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Raises TimeoutError if an enclosing deadline passes first."""
        ...

    def set_deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        """A context that raises TimeoutError when its block takes longer than `seconds`."""
        ...


class SystemClock:
    """The real clock."""

    def now(self) -> float:
        return time.monotonic()

    def get_wall_time(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def set_deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
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

    def get_wall_time(self) -> float:
        return self._epoch + self._now

    async def sleep(self, seconds: float) -> None:
        wanted = self._now + seconds
        earliest = min(self._deadlines, default=wanted)
        self._now = max(self._now, min(wanted, earliest))
        if wanted > earliest:
            raise TimeoutError

    def set_deadline(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        return self._track_deadline(seconds)

    @asynccontextmanager
    async def _track_deadline(self, seconds: float) -> AsyncIterator[None]:
        end = self._now + seconds
        self._deadlines.append(end)
        try:
            yield
        finally:
            self._deadlines.remove(end)
