"""Calls of other servers' tools, as a forged server asks for them: `CALL` of `call:SERVER.TOOL`.

The body is the arguments' JSON. The answer is 200 with what the tool gave, or 500 with the `kind`
and `message` of its failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox import exactjson
from sandbox.bundle import ToolDefinition
from sandbox.errors import SandboxError
from sandbox.example import Answered, same
from sandbox.exchange import Exchange, Upstream, WireRequest, WireResponse
from sandbox.guard import is_deep
from sandbox.netrequest import asked_of
from sandbox.writemode import WriteMode

METHOD, CALL = "CALL", "call:"
MAX_NAME = 100
MAX_MESSAGE = 2000
MAX_NESTING, MAX_CONTAINERS = 100, 250_000
"""Of a call's arguments."""
RECORD = "toolwright-call"
"""The header of an answer that has the id of the call's own record."""


@dataclass(frozen=True)
class Called:
    """What became of a call. `captured` is the write that it would have made and that was held,
    `written` the one that it made.
    """

    exchange: Exchange
    captured: WireRequest | None = None
    written: Exchange | None = None


class ToolCalls(Protocol):
    """Who answers the calls of one running call."""

    async def perform(self, request: WireRequest, writes: WriteMode) -> Called:
        """The call, as far as it may be made; a tool that writes as `writes` says, and not at all
        where that is None.
        """
        ...


@dataclass(frozen=True)
class KnownCalls:
    """Answers as examples say, without any server or network: there is none while a tool is proved.
    What is asked of the network stands under `network.dns`, `network.tls_peer` and `network.tcp`.
    """

    answers: tuple[Answered, ...] = ()

    async def perform(self, request: WireRequest, writes: WriteMode) -> Called:
        if is_call(request):
            name, arguments = called_tool(request), arguments_of(request)
            fits = [k for k in self.answers if k.tool == name]
            fits = [k for k in fits if same(dict(k.arguments), arguments)]
        else:
            name, arguments = asked_of(request)
            fits = [k for k in self.answers if k.tool == name]
            fits = [k for k in fits if same({**arguments, **k.arguments}, arguments)]
        if not fits:
            shown = json.dumps(arguments, ensure_ascii=False)[:300]
            reason = f"no case has an answer of {name} to {shown}"
            return Called(Exchange(request, None, "refused", reason))
        if fits[0].failure and not is_call(request):
            return Called(Exchange(request, None, "unreachable", fits[0].failure))
        if isinstance(fits[0].result, str) and not is_call(request):
            return Called(Exchange(request, WireResponse(200, (), fits[0].result.encode())))
        return Called(Exchange(request, _known_response(fits[0])))


@dataclass(frozen=True)
class RecordedCalls:
    """Answers calls by an upstream that remembers them."""

    upstream: Upstream

    async def perform(self, request: WireRequest, writes: WriteMode) -> Called:
        try:
            return Called(Exchange(request, await self.upstream.send(request)))
        except SandboxError as error:
            return Called(Exchange(request, None, "refused", str(error)))


NO_CALLS = KnownCalls()


def call_request(params: Mapping[str, Any], body: bytes) -> WireRequest | None:
    """The request of a `toolwright/request` of kind `call`, or None where it is not well-formed."""
    tool = params.get("tool")
    if not isinstance(tool, str) or not 0 < len(tool) <= MAX_NAME or not tool.isascii():
        return None
    if not tool.isprintable() or " " in tool or not _is_object(body):
        return None
    return WireRequest(METHOD, CALL + tool, (), body)


def is_call(request: WireRequest) -> bool:
    return request.url.startswith(CALL)


def called_tool(request: WireRequest) -> str:
    """The `server.tool` that is called."""
    return request.url.removeprefix(CALL)


def arguments_of(request: WireRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(request.body)
    return arguments


def given(value: Any, record: str = "") -> WireResponse:
    """The answer of a call that succeeded."""
    return WireResponse(200, _headers(record), _json(value))


def failed(kind: str, message: str, record: str = "") -> WireResponse:
    """The answer of a call that failed."""
    return WireResponse(
        500, _headers(record), _json({"kind": kind, "message": message[:MAX_MESSAGE]})
    )


def calls_of(tool: ToolDefinition) -> tuple[str, ...]:
    """The `server.tool`s that a tool may call."""
    return tuple(
        request.url.removeprefix(CALL) for request in tool.requests if request.method == METHOD
    )


def answers_in(examples: Iterable[Any], tool: str) -> KnownCalls:
    """All answers that the examples of a tool have."""
    found = (answer for each in examples if each.tool == tool for answer in each.answers)
    return KnownCalls(tuple(found))


def _known_response(known: Answered) -> WireResponse:
    return failed("tool", known.failure) if known.failure else given(known.structured)


def _is_object(body: bytes) -> bool:
    """Whether it is an object's JSON that every part of the call's way can read and write."""
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


def _headers(record: str) -> tuple[tuple[str, str], ...]:
    kind = ("content-type", "application/json")
    return (kind, (RECORD, record)) if record else (kind,)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
