"""Rate limits per upstream, shared by all sandboxes of a process."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.clock import Clock
from sandbox.errors import RateLimited
from sandbox.policy import Origin

MAX_PAUSE = 3600.0
"""Seconds. An upstream that asks for more is asked again after that."""


@dataclass(frozen=True)
class Rate:
    """A token bucket: `per_second` tokens flow in, up to `burst` are kept."""

    per_second: float = 50.0
    burst: float = 100.0


class Throttle:
    """Token buckets by origin, and the pauses that origins asked for. What one session is told
    holds the others of that origin. `admit` waits its turn; a caller's deadline may end the wait.
    """

    def __init__(self, rate: Rate | None = None) -> None:
        self._rate = rate or Rate()
        self._buckets: dict[Origin, tuple[float, float]] = {}
        self._paused: dict[Origin, float] = {}

    async def admit(self, origin: Origin, clock: Clock, patience: float | None = None) -> None:
        """Return when the origin may be asked. Raises RateLimited where it asked for a pause that
        lasts longer than `patience` seconds.
        """
        left = self._paused.get(origin, 0.0) - clock.now()
        if left > 0:
            if patience is not None and left > patience:
                raise RateLimited(str(origin), left)
            await clock.sleep(left)
        tokens, updated = self._buckets.get(origin, (self._rate.burst, clock.now()))
        now = clock.now()
        gained = max(0.0, now - updated) * self._rate.per_second
        tokens = min(self._rate.burst, tokens + gained) - 1
        self._buckets[origin] = (tokens, max(now, updated))
        if tokens < 0:
            await clock.sleep(-tokens / self._rate.per_second)

    def pause(self, origin: Origin, clock: Clock, seconds: float) -> None:
        """Hold everyone off the origin for a time. Those that waited come back one by one."""
        until = clock.now() + min(max(seconds, 0.0), MAX_PAUSE)
        if until > self._paused.get(origin, 0.0):
            self._paused[origin] = until
            self._buckets[origin] = (1.0, until)
