"""Answers of a replayed call: those of a case, but for what the replay changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.broker.host.network_requests import describe_request, is_network
from sandbox.broker.host.tools import (
    KnownCalls,
    ToolCallResult,
    get_called_tool,
    is_call,
    normalize_query,
    parse_arguments,
)
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse, WriteMode
from sandbox.wire.policy import SAFE_METHODS

Answering = Callable[[WireRequest], Exchange]


def name_asked(request: WireRequest) -> str:
    """What a request asks, without its values: `server.tool`, `network.dns`, `GET /path`."""
    if is_http(request):
        return f"{request.method} {urlsplit(request.url).path or '/'}"
    return get_called_tool(request) if is_call(request) else describe_request(request)[0]


def describe_asked(request: WireRequest) -> dict[str, Any]:
    """The values of a request: the arguments of a call, or URL, headers, and body of HTTP, as
    `json` where it is that, else as `text`.
    """
    if is_call(request):
        return parse_arguments(request)
    if is_network(request):
        return describe_request(request)[1]
    told: dict[str, Any] = {"url": request.url}
    told["headers"] = {name.lower(): value for name, value in request.headers}
    if request.body:
        text = request.body.decode("utf-8", "replace")
        try:
            told["json"] = json.loads(text)
        except (ValueError, RecursionError):
            told["text"] = text
    return told


def key_asked(request: WireRequest) -> str:
    """A text that is equal for equal requests; headers do not count."""
    if not is_http(request):
        return json.dumps([name_asked(request), describe_asked(request)], sort_keys=True)
    body = request.body.decode("utf-8", "replace")
    return json.dumps([request.method, normalize_query(request.url), body])


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


@dataclass(frozen=True)
class ReplayedCalls(KnownCalls):
    """Answers as a case does, except the requests whose key is in `instead`. `asked` are the
    requests so far.
    """

    instead: Mapping[str, Answering] = field(default_factory=dict)
    asked: list[WireRequest] = field(default_factory=list)

    @property
    def answers_http(self) -> bool:
        return True

    def answer_request(self, request: WireRequest) -> Exchange:
        self.asked.append(request)
        changed = self.instead.get(key_asked(request))
        return changed(request) if changed is not None else super().answer_request(request)

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        self.asked.append(request)
        changed = self.instead.get(key_asked(request))
        if changed is not None:
            return ToolCallResult(changed(request))
        return await super().perform(request, writes)


@dataclass(frozen=True)
class OrderedCalls(KnownCalls):
    """Gives the answers of a call in their order, whatever is asked, as long as the same is asked
    by name; a request after the last one is refused.
    """

    exchanges: Sequence[Exchange] = ()
    asked: list[WireRequest] = field(default_factory=list)

    @property
    def answers_http(self) -> bool:
        return True

    def answer_request(self, request: WireRequest) -> Exchange:
        at = len(self.asked)
        self.asked.append(request)
        if at >= len(self.exchanges) or not _is_alike(self.exchanges[at].request, request):
            return Exchange(request, None, "refused", "the case has no answer")
        known = self.exchanges[at]
        return Exchange(request, known.response, known.refusal, known.reason)

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        return ToolCallResult(self.answer_request(request))


def _is_alike(one: WireRequest, other: WireRequest) -> bool:
    if is_call(one) or is_call(other):
        return is_call(one) and is_call(other) and get_called_tool(one) == get_called_tool(other)
    return one.method == other.method
