"""An upstream for tests of the broker: it answers as a function says, and keeps the requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.broker.throttle import Throttle
from sandbox.clock import VirtualClock
from sandbox.credentials.source import CredentialSource
from sandbox.wire.exchange import Caps, Exchange, WireRequest, WireResponse, WriteMode
from sandbox.wire.policy import Policy, RequestRule, parse_origin

API = "https://api.test"
Answer = Callable[[WireRequest], WireResponse]


class Told:
    """Answers by a function of the request, or by a list of answers whose last one stays."""

    def __init__(self, answers: Answer | Iterable[WireResponse]) -> None:
        self._answers = answers if callable(answers) else _in_turn(list(answers))
        self.requests: list[WireRequest] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.requests.append(request)
        return self._answers(request)


def _in_turn(answers: list[WireResponse]) -> Answer:
    return lambda request: answers.pop(0) if len(answers) > 1 else answers[0]


def answer(status: int, body: Any = "", **headers: str) -> WireResponse:
    """An answer; a body that is no text or bytes is JSON."""
    if not isinstance(body, str | bytes):
        body = json.dumps(body)
        headers.setdefault("content_type", "application/json")
    content = body.encode() if isinstance(body, str) else body
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return WireResponse(status, named, content)


def rule(
    method: str = "GET",
    security: tuple[tuple[str, ...], ...] = (),
    read: bool = True,
    url: str = API,
) -> RequestRule:
    origin = parse_origin(url)
    assert origin is not None
    anything = re.compile(r"/.*\Z")
    return RequestRule(method, origin, anything, "/", "tool", security, "read" if read else "write")


def broker(
    upstream: Told,
    *rules: RequestRule,
    clock: VirtualClock | None = None,
    credentials: CredentialSource | None = None,
    throttle: Throttle | None = None,
    writes: WriteMode = None,
    caps: Caps | None = None,
) -> Broker:
    return Broker(
        Policy(rules or (rule(),)),
        upstream,
        clock=clock or VirtualClock(),
        credentials=credentials,
        throttle=throttle,
        writes=writes,
        caps=caps,
        random=lambda: 1.0,
    )


def get(path: str = "/things", **headers: str) -> WireRequest:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return WireRequest("GET", API + path, named)


def performed(work: Coroutine[Any, Any, Exchange]) -> Exchange:
    """What a broker that waits only on a virtual clock comes to, without an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        exchange: Exchange = done.value
        return exchange
    raise AssertionError("it waits for something")
