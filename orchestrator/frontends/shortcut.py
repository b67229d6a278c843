"""The messages of most clients, answered without the SDK: its way through takes as long as all else
of a call (`bench.call`), and loading it 0.8 s of CPU and 65 MB.

Plain is what a client of the handshake's protocols says when it lists the tools and calls them, one
after the other or many at once, and could not be asked back. All other messages are the SDK's, and
so is a request that comes while another one is with it: they begin in the order in which they came.
What a client reads is the same either way.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orchestrator.frontends.early import MessageId
from orchestrator.frontends.greeting import build_tool_list
from orchestrator.frontends.tool_front import Tell
from orchestrator.frontends.tools import TOOLS
from sandbox import exactjson
from sandbox.offload import INLINE_BYTES, has_many_values, run_beside
from sandbox.sanitize import clean_json, is_clean_json

CALL, LIST, PING = "tools/call", "tools/list", "ping"
NAMES = frozenset(tool["name"] for tool in TOOLS)
ASKING = {"elicitation": "call_write", "sampling": "forge"}
"""The tools that ask a client back which declared that it can be asked."""
MAX_AT_ONCE = 256
"""Calls that go on here; more are left to the SDK."""
MAX_BRACKETS = 200
"""In a line, so that it is nested no deeper than the SDK's parser goes."""
CLOSED = {"code": -32000, "message": "Connection closed"}
_RESULT_KEYS = frozenset({"content", "structuredContent", "isError", "_meta"})
_REQUEST_KEYS = frozenset({"jsonrpc", "id", "method"})
_PARAMS_KEYS = frozenset({"name", "arguments", "_meta"})
_RESERVED = "io.modelcontextprotocol/"

Caller = Callable[[str, Mapping[str, Any], Tell, bool], Awaitable[Mapping[str, Any]]]
"""Answers a tool, told whether its client follows the progress."""


@dataclass(frozen=True)
class PlainRequest:
    """A request to list the tools, to call one by its `name`, or of a ping. Progress is told of a
    call where it has a `token`.
    """

    id: MessageId
    method: str
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    token: MessageId | None = None


class Shortcut:
    """Answers by `call`, whose results it cleans, on `writer`, whose lines are whole ones."""

    def __init__(self, call: Caller, writer: asyncio.StreamWriter) -> None:
        self._call, self._writer = call, writer
        self._version = ""
        self._asking: frozenset[str] = frozenset()
        """Tools that may ask this client back."""
        self._greetings: set[MessageId] = set()
        """Ids of the client's `initialize`."""
        self._ready = False
        """Whether the client said that it is initialized."""
        self._elsewhere: set[str] = set()
        """Ids of requests that the SDK has not answered yet. To it "7" and 7 are one id."""
        self._tasks: dict[str, tuple[MessageId, asyncio.Task[None]]] = {}

    def take_line(self, line: bytes) -> bool:
        """Begin to answer a line; False where it is the SDK's."""
        # The handshake is done when it was answered.
        if not self._version or self._elsewhere or len(self._tasks) >= MAX_AT_ONCE:
            return False
        request = read_plain_request(line)
        if request is None or request.name in self._asking or str(request.id) in self._tasks:
            return False
        task = asyncio.get_running_loop().create_task(self._answer(request, self._version))
        self._tasks[str(request.id)] = request.id, task
        return True

    def take_notice(self, line: bytes) -> bool:
        """Cancel the request that a line says; False where it says something else. For a client
        none of whose requests is with the SDK.
        """
        if b"notifications/cancelled" not in line:
            return False
        message = _read_message(line)
        params = message.get("params") if message else None
        if not message or message.get("method") != "notifications/cancelled" or "id" in message:
            return False
        if not isinstance(params, dict) or not _is_id(params.get("requestId")):
            return False
        self.note_cancelled(params["requestId"])
        return True

    def take_greeting(self, line: bytes, answered: Collection[MessageId]) -> bool:
        """Take notice of the handshake, of which the request was `answered`. False where a line is
        none of it, or none that is to come next.
        """
        message = _read_message(line)
        if message is None:
            return False
        if message.get("method") == "initialize" and not self._version:
            identity, params = message.get("id"), message.get("params")
            if identity not in answered or not isinstance(params, dict):
                return False
            self._note_capabilities(params)
            self._version = str(params.get("protocolVersion"))
            return True
        if message.keys() <= {"jsonrpc", "method", "params"} and self._version and not self._ready:
            self._ready = message.get("method") == "notifications/initialized"
            return self._ready and message.get("params", {}) == {}
        return False

    def note_request(self, identity: MessageId, method: str, params: Mapping[str, Any]) -> None:
        """Take notice of a request that goes to the SDK."""
        self._elsewhere.add(str(identity))
        if method == "initialize":
            self._greetings.add(identity)
            self._note_capabilities(params)

    def note_cancelled(self, identity: object) -> None:
        """Take notice of what the client cancelled, which has no answer."""
        self._elsewhere.discard(str(identity))
        if str(identity) in self._tasks:
            self._tasks.pop(str(identity))[1].cancel()

    def note_answer(self, identity: MessageId | None, result: Mapping[str, Any] | None) -> None:
        """Take notice of what the SDK answers; the result is None for an error."""
        self._elsewhere.discard(str(identity))
        if identity in self._greetings and result is not None:
            self._version = str(result.get("protocolVersion", ""))

    async def close(self) -> None:
        """End what goes on. Its client is told."""
        left, self._tasks = self._tasks, {}
        for _, task in left.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in left.values()), return_exceptions=True)
        for identity, _ in left.values():
            self._writer.write(_write_error(identity, CLOSED))

    def _note_capabilities(self, params: Mapping[str, Any]) -> None:
        declared = params.get("capabilities")
        declared = declared if isinstance(declared, Mapping) else {}
        self._asking = frozenset(tool for asks, tool in ASKING.items() if asks in declared)

    async def _answer(self, request: PlainRequest, version: str) -> None:
        try:
            line = await self._build_answer(request, version)
        except Exception as error:
            line = _write_error(request.id, (await _load_sdk()).describe_error(error))
        if self._tasks.pop(str(request.id), None) is not None:
            await self._send(line)

    async def _build_answer(self, request: PlainRequest, version: str) -> bytes:
        """The line of an answer. Raises MCPError for a result that no client could read, and what
        the call raises.
        """
        if request.method != CALL:
            listed = build_tool_list(modern=False) if request.method == LIST else {}
            return _write_result(request.id, listed)
        tell, follows = partial(self._tell, request.token), request.token is not None
        result = await self._call(request.name, request.arguments, tell, follows)
        if not _is_plain_result(result):
            result = (await _load_sdk()).convert_result(result, version)
        write = partial(_write_result, request.id, result)
        return await run_beside(write) if has_many_values(result) else write()

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


def read_plain_request(line: bytes) -> PlainRequest | None:
    """A line as a plain request; None for anything else."""
    message = _read_message(line)
    if message is None or not _REQUEST_KEYS <= message.keys() <= _REQUEST_KEYS | {"params"}:
        return None
    identity, method, params = message["id"], message["method"], message.get("params", {})
    if message["jsonrpc"] != "2.0" or not _is_id(identity) or not isinstance(params, dict):
        return None
    meta = params.get("_meta", {})
    if not isinstance(meta, dict) or any(key.startswith(_RESERVED) for key in meta):
        return None
    token = meta.get("progressToken")
    if token is not None and not _is_id(token):
        return None
    if method in (LIST, PING):
        return PlainRequest(identity, method) if params.keys() <= {"_meta"} else None
    name, arguments = params.get("name"), params.get("arguments", {})
    if method != CALL or not params.keys() <= _PARAMS_KEYS or not isinstance(arguments, dict):
        return None
    if not isinstance(name, str) or name not in NAMES:
        return None
    return PlainRequest(identity, method, name, arguments, token)


def _read_message(line: bytes) -> dict[str, Any] | None:
    """A short line as a JSON object; None for anything else."""
    if len(line) > INLINE_BYTES or line.count(b"{") + line.count(b"[") > MAX_BRACKETS:
        return None
    try:
        message = exactjson.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _is_id(given: object) -> bool:
    return type(given) in (int, str)


def _write_result(identity: MessageId, result: Mapping[str, Any]) -> bytes:
    """The line of a result, cleaned."""
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


def _write_error(identity: MessageId, error: Mapping[str, Any]) -> bytes:
    return exactjson.dumps({"jsonrpc": "2.0", "id": identity, "error": error}) + b"\n"


async def _load_sdk() -> Any:
    """What the SDK says of results and errors that are not plain."""
    return await asyncio.to_thread(importlib.import_module, "orchestrator.frontends.sdk_lines")
