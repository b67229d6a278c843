"""Rate limits per upstream, shared by all sandboxes of a process; pauses and learned paces by those
of a home.
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.clock import Clock
from sandbox.errors import RateLimited
from sandbox.pauses import Pauses
from sandbox.policy import Origin
from sandbox.sharedturns import SharedTurns
from sandbox.turns import Turns

MAX_PAUSE = 3600.0
"""Seconds. An upstream that asks for more is asked again after that."""
CLOCKS_DIFFER = 0.001


@dataclass(frozen=True)
class Rate:
    """A token bucket: `per_second` tokens flow in, up to `burst` are kept."""

    per_second: float = 50.0
    burst: float = 100.0


class Throttle:
    """Token buckets by origin, and the pauses that origins asked for. What one session is told
    holds the others of that origin. `admit` waits its turn; a caller's deadline may end the wait.
    `turns` hold each server to the paces of its own bundle. `shared` are the pauses that other
    processes were told, `turns` those that they take.
    """

    def __init__(
        self,
        rate: Rate | None = None,
        shared: Pauses | None = None,
        turns: SharedTurns | None = None,
    ) -> None:
        self.turns = Turns(turns)
        self._rate = rate or Rate()
        self._shared = shared
        self._buckets: dict[Origin, tuple[float, float]] = {}
        self._paused: dict[Origin, float] = {}

    async def admit(self, origin: Origin, clock: Clock, patience: float | None = None) -> None:
        """Return when the origin may be asked. Raises RateLimited where it asked for a pause that
        lasts longer than `patience` seconds.
        """
        left = self._left(origin, clock)
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
        held = min(max(seconds, 0.0), MAX_PAUSE)
        if self._hold(origin, clock.now() + held) and self._shared:
            wall = clock.wall()
            self._shared.pause(origin, wall + held, wall)

    def _left(self, origin: Origin, clock: Clock) -> float:
        """Seconds that the origin's pause still lasts, whoever of the home was told."""
        if self._shared:
            wall = clock.wall()
            until = self._shared.until(origin, wall)
            if until:
                self._hold(origin, clock.now() + until - wall)
        return self._paused.get(origin, 0.0) - clock.now()

    def _hold(self, origin: Origin, until: float) -> bool:
        """Whether that is later than what was known."""
        # Two clocks do not agree to the last digit.
        later = until > self._paused.get(origin, 0.0) + CLOCKS_DIFFER
        if later:
            self._paused[origin] = until
            self._buckets[origin] = (1.0, until)
        return later
