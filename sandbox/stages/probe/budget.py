"""The budget of the live probe: so many requests, one after the other, and not for long."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.clock import Clock, SystemClock
from sandbox.errors import UpstreamUnreachable
from sandbox.wire.exchange import Upstream, WireRequest, WireResponse


@dataclass(frozen=True)
class ProbeBudget:
    """The bounds of a probe. `requests` decides what is asked; `seconds` are those that the API
    takes for its answers, all together, and only cut. Between two requests are `pause` seconds.
    """

    requests: int = 10
    seconds: float = 3.0
    pause: float = 0.05
    clock: Clock = field(default_factory=SystemClock)


class MeteredUpstream:
    """An upstream that lets through what a budget allows: pages of a list, redirects and requests
    for tokens are requests like any.
    """

    def __init__(self, upstream: Upstream, budget: ProbeBudget) -> None:
        self.sent = 0
        self.budget = budget
        self._upstream = upstream
        self._seconds = budget.seconds

    @property
    def is_spent(self) -> bool:
        return self.sent >= self.budget.requests or self._seconds < 0.001

    async def send(self, request: WireRequest) -> WireResponse:
        """Send it. Raises UpstreamUnreachable where the budget is spent, or ends meanwhile."""
        if self.is_spent:
            raise UpstreamUnreachable("the probe's requests are used up")
        clock = self.budget.clock
        if self.sent:
            await clock.sleep(self.budget.pause)
        self.sent += 1
        started = clock.now()
        try:
            async with clock.set_deadline(self._seconds):
                return await self._upstream.send(request)
        except TimeoutError as error:
            raise UpstreamUnreachable("no whole answer within the probe's time") from error
        finally:
            self._seconds -= clock.now() - started
