"""Calls of other servers' tools by a forged server: wire requests `CALL call:SERVER.TOOL`.

The body is the arguments as JSON. The answer is 200 with the tool's result, or 500 with the `kind`
and `message` of its failure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, unquote

from sandbox import exactjson
from sandbox.broker.host.network_requests import describe_request
from sandbox.bundle.example import ExampleAnswer, is_same_value
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


@dataclass(frozen=True)
class KnownCalls:
    """Answers calls from examples, while a tool is proved without servers or network. Network
    requests are answered by the names `network.dns`, `network.tls_peer` and `network.tcp`, those of
    an API by method and URL. Of several answers to one request or call each is given once, in
    order, the last from then on: `restart` for each call of the tool that is proved.
    """

    answers: tuple[ExampleAnswer, ...] = ()
    _turns: Counter[tuple[int, ...]] = field(
        default_factory=Counter, kw_only=True, repr=False, compare=False
    )
    """How often the answers at these places were what fitted."""

    def restart(self) -> Self:
        """The same answers, none of them given so far."""
        return replace(self, _turns=Counter())

    def _take_next(self, fits: Sequence[ExampleAnswer]) -> ExampleAnswer:
        """Which of the answers that fit a request is due. `fits` are among `answers`."""
        chosen = {id(answer) for answer in fits}
        key = tuple(at for at, answer in enumerate(self.answers) if id(answer) in chosen)
        turn = self._turns[key]
        self._turns[key] += 1
        return fits[min(turn, len(fits) - 1)]

    @property
    def answers_http(self) -> bool:
        """Whether requests of an API are among what it knows: then it is asked for each."""
        return any(answer.is_http for answer in self.answers)

    def answer_request(self, request: WireRequest) -> Exchange:
        """The exchange of an API's request, refused where no answer is for it."""
        asked = f"{request.method} {normalize_query(request.url)}"
        fits = [k for k in self.answers if k.is_http and _normalize_asked(k.tool) == asked]
        headed = [k for k in fits if _has_headers(request, k.headers)]
        sent = [k for k in headed if not k.arguments or _carries(request, k.arguments)]
        if not sent:
            known = ", ".join(k.tool for k in self.answers if k.is_http)[:300]
            what = "another body than the case says is sent with" if headed else "no answer is for"
            if fits and not headed:
                names = ", ".join(dict.fromkeys(name for k in fits for name in k.headers))
                what = f"not the headers that the case says ({names}) are sent with"
            shown = f" ({request.body.decode('utf-8', 'replace')[:200]})" if request.body else ""
            reason = f"{what} {asked[:300]}{shown}; the case answers {known}"
            return Exchange(request, None, "refused", reason)
        due = self._take_next(sent)
        if due.failure == "timeout":
            return Exchange(request, None, "timeout", "as the case says")
        if due.failure:
            return Exchange(request, None, "unreachable", "as the case says")
        return Exchange(request, _build_api_response(due))

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        if is_call(request):
            name, arguments = get_called_tool(request), parse_arguments(request)
            fits = [k for k in self.answers if k.tool == name]
            fits = [k for k in fits if is_same_value(dict(k.arguments), arguments)]
        else:
            name, arguments = describe_request(request)
            fits = [k for k in self.answers if k.tool == name]
            fits = [k for k in fits if is_same_value({**arguments, **k.arguments}, arguments)]
        if not fits:
            shown = json.dumps(arguments, ensure_ascii=False)[:300]
            reason = f"no case has an answer of {name} to {shown}"
            return ToolCallResult(Exchange(request, None, "refused", reason))
        if is_call(request):
            return ToolCallResult(Exchange(request, _build_known_response(self._take_next(fits))))
        if fits[0].failure:
            return ToolCallResult(Exchange(request, None, "unreachable", fits[0].failure))
        if isinstance(fits[0].result, str):
            return ToolCallResult(Exchange(request, WireResponse(200, (), fits[0].result.encode())))
        return ToolCallResult(Exchange(request, _build_known_response(fits[0])))


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
    """All answers in a tool's examples, but those of an API, which hold for one case alone."""
    found = (answer for each in examples if each.tool == tool for answer in each.answers)
    return KnownCalls(tuple(answer for answer in found if not answer.is_http))


def normalize_query(url: str) -> str:
    """A URL with its query's pairs decoded and in one order: equal for equal requests."""
    place, _, query = url.partition("#")[0].partition("?")
    pairs = sorted(parse_qsl(query, keep_blank_values=True, max_num_fields=1000))
    return f"{unquote(place)}?{pairs}" if pairs else unquote(place)


def _normalize_asked(asked: str) -> str:
    method, _, url = asked.partition(" ")
    return f"{method} {normalize_query(url)}"


def _carries(request: WireRequest, sent: Mapping[str, Any]) -> bool:
    try:
        return is_same_value(dict(sent), json.loads(request.body))
    except (ValueError, RecursionError):
        return False


def _has_headers(request: WireRequest, wanted: Mapping[str, Any]) -> bool:
    """Whether a request has each of these headers once, with that value."""
    got: dict[str, list[str]] = {}
    for name, value in request.headers:
        got.setdefault(name.lower(), []).append(value)
    return all(
        len(got.get(name, ())) == 1 and is_same_value(value, got[name][0])
        for name, value in wanted.items()
    )


def _build_api_response(known: ExampleAnswer) -> WireResponse:
    """A text is sent as it is, nothing as no body, everything else as JSON."""
    if known.result is None:
        return WireResponse(known.status, (), b"")
    if isinstance(known.result, str):
        return WireResponse(known.status, (("content-type", "text/plain"),), known.result.encode())
    return WireResponse(known.status, _build_headers(""), _encode_json(known.result))


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
