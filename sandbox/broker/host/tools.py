"""Calls of other servers' tools by a forged server: wire requests `CALL call:SERVER.TOOL`.

The body is the arguments as JSON. The answer is 200 with the tool's result, or 500 with the `kind`
and `message` of its failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox import exactjson
from sandbox.broker.host.network_requests import describe_request, is_network
from sandbox.bundle.example import REQUEST, ExampleAnswer, is_same_value
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import SandboxError
from sandbox.wire.exchange import (
    Exchange,
    Upstream,
    WireRequest,
    WireResponse,
    WriteMode,
    WriteStep,
)
from sandbox.wire.framing import is_deep

METHOD, CALL = "CALL", "call:"
MAX_NAME = 100
MAX_MESSAGE = 2000
MAX_NESTING, MAX_CONTAINERS = 100, 250_000
"""Limits of a call's arguments."""
RECORD = "toolwright-call"
"""The header of an answer that carries the id of the called tool's own invocation."""


@dataclass(frozen=True)
class ToolCallResult:
    """The result of a call: its exchange, and the write that was `captured` unsent or `written`.
    `steps` are the tools that a captured one came through, the called one first.
    """

    exchange: Exchange
    captured: WireRequest | None = None
    written: Exchange | None = None
    steps: tuple[WriteStep, ...] = ()


class ToolCalls(Protocol):
    """Performs the tool calls that one running call asks for."""

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        """Perform the call, or refuse it in its exchange. `writes` decides about a tool that
        writes; None refuses it.
        """
        ...


class ProofCalls:
    """What answers a call while its tool is proved, without servers or network: calls of tools,
    network requests and, where it `answers_http`, requests to an API.
    """

    @property
    def answers_http(self) -> bool:
        return False

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        raise NotImplementedError


@dataclass(frozen=True)
class KnownCalls(ProofCalls):
    """Answers calls from examples. Network requests are answered by the names `network.dns`,
    `network.tls_peer` and `network.tcp`, requests to an API by `http.request`.
    """

    answers: tuple[ExampleAnswer, ...] = ()

    @property
    def answers_http(self) -> bool:
        return any(answer.tool == REQUEST for answer in self.answers)

    def without_http(self) -> KnownCalls:
        """The same without the answers of an API."""
        return KnownCalls(tuple(each for each in self.answers if each.tool != REQUEST))

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        name, arguments = describe_asked(request)
        fits = (k for k in self.answers if k.tool == name and _fits(k, arguments))
        known = next(fits, None)
        if known is None:
            shown = json.dumps(arguments, ensure_ascii=False)[:300]
            reason = f"no case has an answer of {name} to {shown}"
            return ToolCallResult(Exchange(request, None, "refused", reason))
        if known.failure and not is_call(request):
            kind = known.failure if known.failure in _REFUSALS else "unreachable"
            return ToolCallResult(Exchange(request, None, kind, known.failure))
        if name == REQUEST:
            return ToolCallResult(Exchange(request, build_http_response(known.structured)))
        if isinstance(known.result, str) and not is_call(request):
            return ToolCallResult(Exchange(request, WireResponse(200, (), known.result.encode())))
        return ToolCallResult(Exchange(request, _build_known_response(known)))


_REFUSALS = ("timeout", "unreachable", "too_large", "rate_limited")
"""Failures of an answer that are told by their own kind: in none of them an answer comes."""
_OF_REQUEST = ("method", "url", "headers", "json", "text")


def describe_asked(request: WireRequest) -> tuple[str, dict[str, Any]]:
    """The name by which cases have an answer to a request, and its arguments."""
    if is_call(request):
        return get_called_tool(request), parse_arguments(request)
    if is_network(request):
        return describe_request(request)
    told: dict[str, Any] = {"method": request.method, "url": request.url}
    told["headers"] = {name.lower(): value for name, value in request.headers}
    if request.body:
        text = request.body.decode("utf-8", "replace")
        try:
            told["json"] = json.loads(text)
        except (ValueError, RecursionError):
            told["text"] = text
    return REQUEST, told


def _fits(known: ExampleAnswer, asked: Mapping[str, Any]) -> bool:
    """Whether an answer is one to these arguments. Of network requests and requests to an API it
    names those that decide it; a URL without a query fits only one without.
    """
    wanted = dict(known.arguments)
    if known.tool == REQUEST:
        wanted = {key: value for key, value in wanted.items() if key in _OF_REQUEST}
        named = {str(name).lower(): value for name, value in (wanted.pop("headers", {})).items()}
        sent = asked["headers"]
        if any(name not in sent or not is_same_value(v, sent[name]) for name, v in named.items()):
            return False
        return is_same_value({"method": "GET", **wanted}, _pick(asked, wanted))
    if known.tool.startswith("network."):
        return is_same_value({**asked, **wanted}, asked)
    return is_same_value(wanted, asked)


def _pick(asked: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: asked[key] for key in {"method", *wanted} if key in asked}


def build_http_response(told: Mapping[str, Any]) -> WireResponse:
    """The response that a case has as `status`, `headers`, and `body` (JSON) or `text`."""
    status = told.get("status", 200)
    headers = {str(k).lower(): str(v) for k, v in dict(told.get("headers") or {}).items()}
    if "body" in told:
        headers.setdefault("content-type", "application/json")
    content = _encode_json(told["body"]) if "body" in told else str(told.get("text", "")).encode()
    return WireResponse(status if isinstance(status, int) else 200, tuple(headers.items()), content)


@dataclass(frozen=True)
class RecordedCalls:
    """Answers calls from an upstream of recorded exchanges."""

    upstream: Upstream

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        try:
            return ToolCallResult(Exchange(request, await self.upstream.send(request)))
        except SandboxError as error:
            return ToolCallResult(Exchange(request, None, "refused", str(error)))


NO_CALLS = KnownCalls()


def parse_call_request(params: Mapping[str, Any], body: bytes) -> WireRequest | None:
    """Parse a `toolwright/request` of kind `call`; None if it is malformed."""
    tool = params.get("tool")
    if not isinstance(tool, str) or not 0 < len(tool) <= MAX_NAME or not tool.isascii():
        return None
    if not tool.isprintable() or " " in tool or not _is_object(body):
        return None
    return WireRequest(METHOD, CALL + tool, (), body)


def is_call(request: WireRequest) -> bool:
    return request.url.startswith(CALL)


def get_called_tool(request: WireRequest) -> str:
    """The `server.tool` that a request calls."""
    return request.url.removeprefix(CALL)


def parse_arguments(request: WireRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(request.body)
    return arguments


def build_success(value: Any, record: str = "") -> WireResponse:
    """The response of a call that succeeded; `record` is the id of its own invocation."""
    return WireResponse(200, _build_headers(record), _encode_json(value))


def build_failure(kind: str, message: str, record: str = "") -> WireResponse:
    """The response of a call that failed; `record` is the id of its own invocation."""
    return WireResponse(
        500, _build_headers(record), _encode_json({"kind": kind, "message": message[:MAX_MESSAGE]})
    )


def list_calls(tool: ToolDefinition) -> tuple[str, ...]:
    """The `server.tool`s that a tool may call."""
    return tuple(
        request.url.removeprefix(CALL) for request in tool.requests if request.method == METHOD
    )


def collect_answers(examples: Iterable[Any], tool: str) -> KnownCalls:
    """All answers in the examples of a tool."""
    found = (answer for each in examples if each.tool == tool for answer in each.answers)
    return KnownCalls(tuple(found))


def _build_known_response(known: ExampleAnswer) -> WireResponse:
    return (
        build_failure("tool", known.failure) if known.failure else build_success(known.structured)
    )


def _is_object(body: bytes) -> bool:
    """Whether a body is a JSON object within the limits, which can be written as UTF-8 again."""
    if body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        return False
    try:
        value = exactjson.loads(body)
        if is_deep(body, value, MAX_NESTING):
            return False
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _build_headers(record: str) -> tuple[tuple[str, str], ...]:
    kind = ("content-type", "application/json")
    return (kind, (RECORD, record)) if record else (kind,)


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
