"""Watching that nothing holds up the event loop for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PERIOD_SECONDS = 0.05
STALL_SECONDS = 0.05
"""A turn of the loop that takes longer holds up every call of the process."""


class LoopWatchdog:
    """Counts how often the loop came back late, and remembers the longest time.

    `store` is given both whenever they changed and `report` is called.
    """

    def __init__(self, store: Callable[[int, float], None]) -> None:
        self.stalls, self.longest_seconds = 0, 0.0
        self._store, self._stored = store, 0

    async def watch(self) -> None:
        """Watch the running loop until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_SECONDS
            await asyncio.sleep(PERIOD_SECONDS)
            self.note_turn(loop.time() - due)

    def note_turn(self, late_seconds: float) -> None:
        """Take up by how much a turn came late."""
        if late_seconds >= STALL_SECONDS:
            self.stalls += 1
            self.longest_seconds = max(self.longest_seconds, late_seconds)

    async def report(self) -> None:
        """Store the present figures where there are new ones. Raises RegistryError."""
        if self.stalls != self._stored:
            self._stored = self.stalls
            await asyncio.to_thread(self._store, self.stalls, self.longest_seconds)
