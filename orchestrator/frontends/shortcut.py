"""Plain calls of `call_read`, answered without a way through the SDK, which takes as long as all
else of such a call (`bench.call`).

Plain is what a client of the handshake's protocols says when it calls one tool after the other, or
many at once. All other messages are the SDK's, and so is a call that comes while a request is with
it: they begin in the order in which they came. What a client reads is the same either way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp.types as types
import structlog
from mcp import MCPError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp_types import methods

from orchestrator.frontends.early import MessageId
from sandbox import exactjson
from sandbox.offload import INLINE_BYTES, run_beside
from sandbox.sanitize import clean_json, is_clean_json, is_large

TOOL = "call_read"
_NAMED = b'"call_read"'
MAX_AT_ONCE = 256
"""Calls that go on here; more are left to the SDK."""
MAX_REASON = 300
MAX_BRACKETS = 200
"""In a line, so that it is nested no deeper than the SDK's parser goes."""
_RESULT_KEYS = frozenset({"content", "structuredContent", "isError", "_meta"})
_CALL_KEYS = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS_KEYS = frozenset({"name", "arguments"})
_RESERVED = "io.modelcontextprotocol/"

Tell = Callable[[float, float | None, str], Awaitable[None]]
Caller = Callable[[str, Mapping[str, Any], Tell], Awaitable[Mapping[str, Any]]]

log = structlog.get_logger()


@dataclass(frozen=True)
class PlainCall:
    """A request of `call_read`; progress is told of it where it has a `token`."""

    id: MessageId
    arguments: Mapping[str, Any]
    token: MessageId | None


class Shortcut:
    """Answers by `call`, whose results it cleans, on `writer`, whose lines are whole ones."""

    def __init__(self, call: Caller, writer: asyncio.StreamWriter) -> None:
        self._call, self._writer = call, writer
        self._version = ""
        self._greetings: set[MessageId] = set()
        """Ids of the client's `initialize`."""
        self._elsewhere: set[str] = set()
        """Ids of requests that the SDK has not answered yet. To it "7" and 7 are one id."""
        self._tasks: dict[str, tuple[PlainCall, asyncio.Task[None]]] = {}

    def take_line(self, line: bytes) -> bool:
        """Begin to answer a line; False where it is the SDK's."""
        # The handshake is done when it was answered.
        if not self._version or self._elsewhere or len(self._tasks) >= MAX_AT_ONCE:
            return False
        call = read_plain_call(line)
        if call is None or str(call.id) in self._tasks:
            return False
        task = asyncio.get_running_loop().create_task(self._answer(call, self._version))
        self._tasks[str(call.id)] = call, task
        return True

    def note_message(self, message: types.JSONRPCMessage) -> None:
        """Take notice of what goes from the client to the SDK."""
        if isinstance(message, types.JSONRPCRequest):
            self._elsewhere.add(str(message.id))
            if message.method == "initialize":
                self._greetings.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and (
            message.method == "notifications/cancelled"
        ):
            identity = str((message.params or {}).get("requestId"))
            self._elsewhere.discard(identity)
            if identity in self._tasks:
                # What a client cancelled has no answer.
                self._tasks.pop(identity)[1].cancel()

    def note_answer(self, message: types.JSONRPCMessage) -> None:
        """Take notice of what goes from the SDK to the client."""
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return
        self._elsewhere.discard(str(message.id))
        if message.id in self._greetings and isinstance(message, types.JSONRPCResponse):
            self._version = str(message.result.get("protocolVersion", ""))

    async def close(self) -> None:
        """End what goes on. Its client is told."""
        left, self._tasks = self._tasks, {}
        for _, task in left.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in left.values()), return_exceptions=True)
        for call, _ in left.values():
            closed = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
            self._writer.write(_write_error(call.id, closed))

    async def _answer(self, call: PlainCall, version: str) -> None:
        try:
            result = await self._call(TOOL, call.arguments, partial(self._tell, call.token))
            large = is_large(result)
            dump = partial(_write_result, call.id, result, version)
            line = await run_beside(dump) if large else dump()
        except Exception as error:
            line = _write_error(call.id, _describe(error))
        if self._tasks.pop(str(call.id), None) is not None:
            await self._send(line)

    async def _tell(
        self, token: MessageId | None, done: float, total: float | None, message: str
    ) -> None:
        if token is None:
            return
        params = {"progressToken": token, "progress": done, "total": total, "message": message}
        said = {key: value for key, value in params.items() if value is not None}
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": said}
        await self._send(exactjson.dumps(notice) + b"\n")

    async def _send(self, line: bytes) -> None:
        self._writer.write(line)
        try:
            await self._writer.drain()
        except ConnectionError:
            # That the client is gone is found out by whoever reads from it.
            return


def read_plain_call(line: bytes) -> PlainCall | None:
    """A line as a plain call; None for anything else."""
    if _NAMED not in line or len(line) > INLINE_BYTES:
        return None
    if line.count(b"{") + line.count(b"[") > MAX_BRACKETS:
        return None
    try:
        message = exactjson.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.keys() != _CALL_KEYS:
        return None
    identity, params = message["id"], message["params"]
    if message["jsonrpc"] != "2.0" or message["method"] != "tools/call" or not _is_id(identity):
        return None
    if not isinstance(params, dict) or not _PARAMS_KEYS <= params.keys() <= _PARAMS_KEYS | {
        "_meta"
    }:
        return None
    arguments, meta = params["arguments"], params.get("_meta", {})
    if params["name"] != TOOL or not isinstance(arguments, dict) or not isinstance(meta, dict):
        return None
    if any(key.startswith(_RESERVED) for key in meta):
        return None
    token = meta.get("progressToken")
    return PlainCall(identity, arguments, token) if token is None or _is_id(token) else None


def _is_id(given: object) -> bool:
    return type(given) in (int, str)


def _write_result(identity: MessageId, result: Mapping[str, Any], version: str) -> bytes:
    """The line of an answer in a version of the protocol, cleaned. Raises MCPError for a result
    that no client could read.
    """
    if not _is_plain_result(result):
        try:
            result = methods.serialize_server_result("tools/call", version, result)
        except ValueError as error:
            log.error("a result is none", reason=repr(error)[:MAX_REASON])
            raise MCPError(types.INTERNAL_ERROR, "Handler returned an invalid result") from error
    written = exactjson.dumps(result)
    if not is_clean_json(written):
        written = exactjson.dumps(clean_json(result))
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (exactjson.dumps(identity), written)


def _is_plain_result(result: Mapping[str, Any]) -> bool:
    """Whether a result is of texts and data only, of which the SDK would change nothing."""
    return (
        result.keys() <= _RESULT_KEYS
        and isinstance(result.get("isError", False), bool)
        and isinstance(result.get("structuredContent", {}), dict)
        and isinstance(result.get("_meta", {}), dict)
        and isinstance(result.get("content"), list)
        and all(
            isinstance(block, dict)
            and block.keys() == {"type", "text"}
            and block["type"] == "text"
            and isinstance(block["text"], str)
            for block in result["content"]
        )
    )


def _describe(error: Exception) -> types.ErrorData:
    """What the SDK would say of an error, which is our own failure."""
    known = handler_exception_to_error_data(error)
    if known is not None:
        return known
    log.error("a call cannot be answered", reason=repr(error)[:MAX_REASON])
    return types.ErrorData(code=0, message=str(error))


def _write_error(identity: MessageId, error: types.ErrorData) -> bytes:
    said = types.JSONRPCError(jsonrpc="2.0", id=identity, error=error)
    return said.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
