"""An upstream that imitates an API's outages, other than the faults of the mock stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.broker.host.local import is_local
from sandbox.broker.host.network_requests import is_network
from sandbox.clock import Clock
from sandbox.errors import PathRefused, UpstreamUnreachable
from sandbox.wire.exchange import WireRequest, WireResponse

_HTML = (("content-type", "text/html"),)
_PAGE = b"<html><title>Sign in</title><form action=/login></form></html>"
BUSY = WireResponse(503, _HTML, b"<h1>busy</h1>")
FOREVER = 1e6


@dataclass(frozen=True)
class Outage:
    """The API's behaviour from the first request on; with a 2xx `answer` a tool may succeed."""

    name: str
    does: Literal["refuses", "resets", "stalls", "answers"]
    answer: WireResponse = BUSY


OUTAGES = (
    Outage("refused connections", "refuses"),
    Outage("connections that are reset", "resets"),
    Outage("no answer ever", "stalls"),
    Outage("a storm of 503", "answers"),
    Outage("a storm of 502", "answers", WireResponse(502, (), b"bad gateway")),
    Outage("a page to sign in at", "answers", WireResponse(200, _HTML, _PAGE)),
)


class BrokenApi:
    """Answers as its outage says; other requests than HTTP are refused. `asked` counts requests."""

    def __init__(self, clock: Clock) -> None:
        self.outage: Outage = OUTAGES[0]
        self.asked = 0
        self._clock = clock

    async def send(self, request: WireRequest) -> WireResponse:
        if is_local(request) or is_network(request):
            raise PathRefused(request.url[:200], "the red team grants nothing")
        self.asked += 1
        if self.outage.does == "refuses":
            raise UpstreamUnreachable("the connection was refused")
        if self.outage.does == "resets":
            raise UpstreamUnreachable("the connection was reset while the answer came")
        if self.outage.does == "stalls":
            await self._clock.sleep(FOREVER)
        return self.outage.answer
