"""An MCP server of a fixed list of tools on stdin and stdout, in both protocol eras.

The SDK would do; importing it costs 0.8 s of CPU and 65 MB, which every server that is started by
itself (`toolwright run`) would pay for.
https://modelcontextprotocol.io/specification/2026-07-28 and 2025-11-25
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orchestrator.frontends.early import Taken
from orchestrator.frontends.flat_greeting import (
    ServerInfo,
    build_discover_result,
    build_initialize_result,
    build_tool_list,
    complete_result,
)
from orchestrator.frontends.greeting import LEGACY, MODERN
from orchestrator.frontends.pipes import read_line, take_pipes
from orchestrator.frontends.protocol import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Answer,
    CallTool,
    Declared,
    ExtraMethods,
    NoExtraMethods,
    Peer,
    Result,
    RpcError,
)
from sandbox import exactjson
from sandbox.offload import run_sized
from sandbox.wire.notifications import (
    DEFAULT_LEVEL,
    LEVELS,
    Hearer,
    LogListener,
    LogMessage,
    ProgressNotice,
    ignore_progress,
)

MAX_CALLS = 256
GRACE_SECONDS = 2.0
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SET_LEVEL, LISTEN = "logging/setLevel", "subscriptions/listen"


@dataclass
class FlatServer:
    """One connection. `call` runs a tool that is in the list; what it raises but Refusal ends
    `tasks`.
    """

    card: ServerInfo
    tools: tuple[Mapping[str, Any], ...]
    call: CallTool
    send: Callable[[Mapping[str, Any]], None]
    tasks: asyncio.TaskGroup
    more: ExtraMethods = field(default_factory=NoExtraMethods)
    _modern: bool | None = None
    _version: str = ""
    _declared: Declared = field(default_factory=dict)
    _level: str = DEFAULT_LEVEL
    _listening: set[int | str] = field(default_factory=set)
    _running: dict[int | str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = frozenset(tool["name"] for tool in self.tools)
        self._methods: dict[str, Callable[[Mapping[str, Any]], Result]] = {
            "initialize": self._handle_initialize,
            "server/discover": self._handle_discover,
            "ping": lambda _: {},
            "tools/list": self._handle_list,
            "logging/setLevel": self._handle_set_level,
        }

    def receive_message(self, message: Any) -> None:
        """Answer a message, or begin the call that it asks for."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self.send_error(None, RpcError(INVALID_REQUEST, "not a JSON-RPC 2.0 message"))
        identity, method, params = message.get("id"), message.get("method"), message.get("params")
        if not isinstance(method, str):
            return None
        if "id" not in message:
            return self._handle_notification(method, params)
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            return self.send_error(
                None, RpcError(INVALID_REQUEST, "the id is no string or integer")
            )
        try:
            self._handle_request(identity, method, {} if params is None else params)
        except RpcError as refusal:
            self.send_error(identity, refusal)

    async def finish_calls(self, seconds: float = GRACE_SECONDS) -> None:
        """Let running calls end by themselves for a moment, then cancel them."""
        for identity in self._listening & self._running.keys():
            self._running[identity].cancel()
        running = tuple(self._running.values())
        if running:
            await asyncio.wait(running, timeout=seconds)
        for task in running:
            task.cancel()

    def _handle_request(self, identity: int | str, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params is not an object")
        self._settle_era(method, params)
        if method == "tools/call":
            return self._begin_call(identity, params, self._find_tool(params))
        modern = bool(self._modern)
        answer = self.more.find_answer(method, modern)
        if answer is not None:
            if method == LISTEN:
                self._listening.add(identity)
            return self._begin_call(identity, params, answer)
        wrong_era = {True: ("initialize", "ping", SET_LEVEL), False: ("server/discover",)}
        if method not in self._methods or method in wrong_era[modern]:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", method[:200])
        self._send_result(identity, self._methods[method](params))

    def _settle_era(self, method: str, params: Mapping[str, Any]) -> None:
        """The first request fixes the era: 2026-07-28 carries its version in every request."""
        meta = params.get("_meta")
        enveloped = isinstance(meta, dict) and _VERSION_KEY in meta and method != "initialize"
        if self._modern is None and not enveloped and method != "server/discover":
            self._modern = False
        if self._modern is False:
            if enveloped:
                raise RpcError(INVALID_REQUEST, "this connection began with another protocol era")
            return
        if method == "initialize":
            raise _build_unsupported(params.get("protocolVersion"))
        _check_envelope(meta)
        self._modern = True

    def _find_tool(self, params: Mapping[str, Any]) -> Answer:
        """What answers a call of a tool. Raises Refusal."""
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self._names:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments is not an object")
        return lambda _, asker: self.call(name, arguments or {}, asker)

    def _begin_call(self, identity: int | str, params: Mapping[str, Any], answer: Answer) -> None:
        if identity in self._running:
            raise RpcError(INVALID_REQUEST, "a call with this id is running")
        if len(self._running) >= MAX_CALLS:
            raise RpcError(BUSY, "too many calls are running")
        asker = self._build_peer(identity, params.get("_meta"))
        task = self.tasks.create_task(self._run_call(identity, params, asker, answer))
        self._running[identity] = task
        task.add_done_callback(lambda _: self._forget_call(identity))

    def _forget_call(self, identity: int | str) -> None:
        self._running.pop(identity, None)
        self._listening.discard(identity)

    async def _run_call(
        self, identity: int | str, params: Mapping[str, Any], asker: Peer, answer: Answer
    ) -> None:
        try:
            self._send_result(identity, await answer(params, asker))
        except RpcError as refusal:
            self.send_error(identity, refusal)

    def _build_peer(self, identity: int | str, meta: Any) -> Peer:
        meta = meta if isinstance(meta, dict) else {}
        declared = meta.get(_CAPABILITIES_KEY) if self._modern else self._declared
        level = meta.get(_LEVEL_KEY) if self._modern else self._level
        return Peer(
            bool(self._modern),
            declared if isinstance(declared, dict) else {},
            identity,
            self._send_notification,
            self._build_hearer(meta),
            LogListener(self._send_log, level) if level in LEVELS else None,
        )

    def _send_notification(self, method: str, params: Mapping[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send_log(self, message: LogMessage) -> None:
        named = {"logger": message.logger} if message.logger else {}
        said = {"level": message.level, **named, "data": message.data}
        self._send_notification("notifications/message", said)

    def _build_hearer(self, meta: Any) -> Hearer:
        """Who is told of a call's progress: its client, where it gave a token for that."""
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if isinstance(token, bool) or not isinstance(token, int | str):
            return ignore_progress
        return partial(self._send_progress, token)

    def _send_progress(self, token: int | str, progress: ProgressNotice) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": progress.done}
        if progress.total is not None:
            params["total"] = progress.total
        # Messages came with the protocol's second revision.
        if progress.message and self._version != LEGACY[0]:
            params["message"] = progress.message
        self._send_notification("notifications/progress", params)

    def _handle_notification(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            identity = params.get("requestId")
            task = self._running.get(identity) if isinstance(identity, int | str) else None
            if task is not None:
                task.cancel()

    def _handle_initialize(self, params: Mapping[str, Any]) -> Result:
        if self._version:
            raise RpcError(INVALID_REQUEST, "initialize was already answered")
        offered = params.get("protocolVersion")
        self._version = offered if offered in LEGACY else LEGACY[-1]
        declared = params.get("capabilities")
        self._declared = declared if isinstance(declared, dict) else {}
        abilities = self.more.list_capabilities(self._version)
        return build_initialize_result(self.card, abilities, self._version)

    def _handle_discover(self, params: Mapping[str, Any]) -> Result:
        return build_discover_result(self.card, self.more.list_capabilities(MODERN))

    def _handle_list(self, params: Mapping[str, Any]) -> Result:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "there is only one page")
        return build_tool_list(self.tools, bool(self._modern))

    def _handle_set_level(self, params: Mapping[str, Any]) -> Result:
        if "logging" not in self.more.list_capabilities(self._version):
            raise RpcError(METHOD_NOT_FOUND, "Method not found", SET_LEVEL)
        if params.get("level") not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"level is none of {', '.join(LEVELS)}")
        self._level = params["level"]
        return {}

    def _send_result(self, identity: int | str, result: Result) -> None:
        if self._modern:
            result = complete_result(result, self.card)
        self.send({"jsonrpc": "2.0", "id": identity, "result": result})

    def send_error(self, identity: int | str | None, refusal: RpcError) -> None:
        data = {} if refusal.data is None else {"data": refusal.data}
        error = {"code": refusal.code, "message": str(refusal), **data}
        self.send({"jsonrpc": "2.0", "id": identity, "error": error})


def _check_envelope(meta: Any) -> None:
    """The fields that every 2026-07-28 request carries."""
    given = meta if isinstance(meta, dict) else {}
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in given]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if given[_VERSION_KEY] != MODERN:
        raise _build_unsupported(given[_VERSION_KEY])


def _build_unsupported(version: Any) -> RpcError:
    data: dict[str, Any] = {"supported": [MODERN]}
    if isinstance(version, str):
        data["requested"] = version[:100]
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


async def serve_flat(
    card: ServerInfo,
    tools: Iterable[Mapping[str, Any]],
    call: CallTool,
    more: ExtraMethods | None = None,
    taken: Taken | None = None,
) -> None:
    """Serve on this process's stdin and stdout until end of file, or until nobody listens. What was
    `taken` early comes first.
    """
    unread, answered = (taken.unread, {*taken.answered}) if taken else (b"", set())
    async with take_pipes(unread) as (reader, writer), asyncio.TaskGroup() as tasks:

        def send(message: Mapping[str, Any]) -> None:
            if answered and message.get("id") in answered:
                answered.discard(message["id"])
                return
            writer.write(exactjson.dumps(message) + b"\n")

        flat = FlatServer(card, tuple(tools), call, send, tasks, more or NoExtraMethods())
        with suppress(ConnectionError):
            while line := await read_line(reader, writer):
                await _receive_line(flat, line)
                await writer.drain()
        await flat.finish_calls()


async def _receive_line(flat: FlatServer, line: bytes) -> None:
    if not line.strip():
        return
    try:
        message = await run_sized(len(line), partial(exactjson.loads, line))
    except (ValueError, RecursionError):
        flat.send_error(None, RpcError(PARSE_ERROR, "the line is not JSON"))
        return
    flat.receive_message(message)
