"""An API that is out of order, in the ways that the mock stage does not try: an upstream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.clock import Clock
from sandbox.errors import PathRefused, UpstreamUnreachable
from sandbox.exchange import WireRequest, WireResponse
from sandbox.localaccess import is_local
from sandbox.netrequest import is_network

_HTML = (("content-type", "text/html"),)
_PAGE = b"<html><title>Sign in</title><form action=/login></form></html>"
BUSY = WireResponse(503, _HTML, b"<h1>busy</h1>")
FOREVER = 1e6


@dataclass(frozen=True)
class Outage:
    """What the API does from the first request on; with an `answer` of 2xx a tool may go on."""

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
    """Answers as its outage does; what is no request to an API is refused. `asked` counts."""

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
