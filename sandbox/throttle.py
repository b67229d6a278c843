"""Rate limits per upstream, shared by all sandboxes of a process."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.clock import Clock
from sandbox.policy import Origin


@dataclass(frozen=True)
class Rate:
    """A token bucket: `per_second` tokens flow in, up to `burst` are kept."""

    per_second: float = 50.0
    burst: float = 100.0


class Throttle:
    """Token buckets by origin. `admit` waits its turn; a caller's deadline may end the wait."""

    def __init__(self, rate: Rate | None = None) -> None:
        self._rate = rate or Rate()
        self._buckets: dict[Origin, tuple[float, float]] = {}

    async def admit(self, origin: Origin, clock: Clock) -> None:
        tokens, updated = self._buckets.get(origin, (self._rate.burst, clock.now()))
        now = clock.now()
        tokens = min(self._rate.burst, tokens + (now - updated) * self._rate.per_second) - 1
        self._buckets[origin] = (tokens, now)
        if tokens < 0:
            await clock.sleep(-tokens / self._rate.per_second)
