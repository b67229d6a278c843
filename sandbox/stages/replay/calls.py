"""Answers of a replayed call: those of a case, but for what the replay changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.broker.host.network_requests import is_network
from sandbox.broker.host.tools import (
    KnownCalls,
    ProofCalls,
    ToolCallResult,
    describe_asked,
    get_called_tool,
    is_call,
)
from sandbox.bundle.example import REQUEST
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse, WriteMode
from sandbox.wire.policy import SAFE_METHODS

Answering = Callable[[WireRequest], Exchange]


def name_asked(request: WireRequest) -> str:
    """What a request asks, without its values: `server.tool`, `network.dns`, `GET /path`."""
    name = describe_asked(request)[0]
    return f"{request.method} {urlsplit(request.url).path or '/'}" if name == REQUEST else name


def key_asked(request: WireRequest) -> str:
    """A text that is equal for equal requests; headers do not count."""
    name, told = describe_asked(request)
    kept = {key: value for key, value in told.items() if key != "headers"}
    return json.dumps([name, kept], sort_keys=True)


def is_http(request: WireRequest) -> bool:
    return not is_call(request) and not is_network(request)


def is_unsafe(request: WireRequest) -> bool:
    """Whether it is an HTTP request by a method that is not safe (RFC 9110, section 9.2.1)."""
    return is_http(request) and request.method not in SAFE_METHODS


def read_value(exchange: Exchange) -> Any:
    """The JSON value of an answer, None where it is none."""
    if exchange.response is None:
        return None
    try:
        return json.loads(exchange.response.body)
    except (ValueError, RecursionError):
        return None


def with_value(exchange: Exchange, value: Any) -> Exchange:
    """The exchange with another JSON value as its answer."""
    assert exchange.response is not None
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    response = WireResponse(exchange.response.status, exchange.response.headers, content)
    return Exchange(exchange.request, response)


@dataclass
class ReplayedCalls(ProofCalls):
    """Answers as a case does, except the requests whose key is in `instead`. `asked` are the
    requests so far.
    """

    known: KnownCalls
    instead: Mapping[str, Answering] = field(default_factory=dict)
    asked: list[WireRequest] = field(default_factory=list)

    @property
    def answers_http(self) -> bool:
        return True

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        self.asked.append(request)
        changed = self.instead.get(key_asked(request))
        if changed is not None:
            return ToolCallResult(changed(request))
        return await self.known.perform(request, writes)


@dataclass
class OrderedCalls(ProofCalls):
    """Gives the answers of a call in their order, whatever is asked, as long as the same is asked
    by name; a request after the last one is refused.
    """

    exchanges: Sequence[Exchange]
    asked: list[WireRequest] = field(default_factory=list)

    @property
    def answers_http(self) -> bool:
        return True

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        at = len(self.asked)
        self.asked.append(request)
        if at >= len(self.exchanges) or not _is_alike(self.exchanges[at].request, request):
            return ToolCallResult(Exchange(request, None, "refused", "the case has no answer"))
        known = self.exchanges[at]
        return ToolCallResult(Exchange(request, known.response, known.refusal, known.reason))


def _is_alike(one: WireRequest, other: WireRequest) -> bool:
    if is_call(one) or is_call(other):
        return is_call(one) and is_call(other) and get_called_tool(one) == get_called_tool(other)
    return one.method == other.method
