"""Watching that nothing holds up the event loop for long."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable

STALL_SECONDS = 0.05
"""A turn of the loop that takes longer holds up every call of the process."""


class TurnTimer(selectors.DefaultSelector):
    """Counts the stalls of an event loop, and remembers the longest. It is the loop's selector, so
    an idle loop is not woken for it.

    A stall is a turn of the loop, from one wait for events to the next, that took STALL_SECONDS; or
    a wait that ended so much later than it was to, since another thread held the interpreter.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stalls, self.longest_seconds = 0, 0.0
        self._begun = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As every selector's."""
        asked = time.monotonic()
        self.note_turn(asked - self._begun)
        found = super().select(timeout)
        self._begun = time.monotonic()
        if timeout is not None:
            self.note_turn(self._begun - asked - max(timeout, 0.0))
        return found

    def note_turn(self, seconds: float) -> None:
        """Take up how long a turn was, or by how much it came late."""
        if seconds >= STALL_SECONDS:
            self.stalls += 1
            self.longest_seconds = max(self.longest_seconds, seconds)


class WatchedLoop(asyncio.SelectorEventLoop):
    """The platform's event loop, with its turns timed."""

    def __init__(self) -> None:
        self.turns = TurnTimer()
        super().__init__(self.turns)


class LoopWatchdog:
    """Stores the stalls of the running loop, where that is a `WatchedLoop`.

    `store` is given their number and the longest whenever they changed and `report` is called.
    """

    def __init__(self, store: Callable[[int, float], None]) -> None:
        loop = asyncio.get_running_loop()
        self._turns = loop.turns if isinstance(loop, WatchedLoop) else None
        self._store, self._stored = store, 0

    async def report(self) -> None:
        """Store the present figures where there are new ones. Raises RegistryError."""
        turns = self._turns
        if turns is not None and turns.stalls != self._stored:
            self._stored = turns.stalls
            await asyncio.to_thread(self._store, turns.stalls, turns.longest_seconds)
