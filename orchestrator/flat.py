"""An MCP server of a fixed list of tools on stdin and stdout, in both protocol eras.

The SDK would do; importing it costs 0.8 s of CPU and 65 MB, which every server that is started by
itself (`toolwright run`) would pay for.
https://modelcontextprotocol.io/specification/2026-07-28 and 2025-11-25
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orchestrator.errors import OrchestratorError
from sandbox import exactjson
from sandbox.progress import Hearer, Progress, unheard

Result = Mapping[str, Any]
CallTool = Callable[[str, Mapping[str, Any], Hearer], Awaitable[Result]]

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
MAX_LINE = 48 * 1024 * 1024
MAX_CALLS = 256
GRACE_SECONDS = 2.0
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION, BUSY = -32022, -32603
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_CACHED = {"ttlMs": 300_000, "cacheScope": "private"}


@dataclass(frozen=True)
class Card:
    """How the server introduces itself."""

    name: str
    version: str
    title: str
    instructions: str

    def info(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version, "title": self.title}


class Refusal(Exception):
    """A JSON-RPC error to be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


@dataclass
class Flat:
    """One connection. `call` runs a tool that is in the list; what it raises ends `tasks`."""

    card: Card
    tools: tuple[Mapping[str, Any], ...]
    call: CallTool
    send: Callable[[Mapping[str, Any]], None]
    tasks: asyncio.TaskGroup
    _modern: bool | None = None
    _version: str = ""
    _running: dict[int | str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = frozenset(tool["name"] for tool in self.tools)
        self._methods: dict[str, Callable[[Mapping[str, Any]], Result]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": self._list,
        }

    def receive(self, message: Any) -> None:
        """Answer a message, or begin the call that it asks for."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self.refuse(None, Refusal(INVALID_REQUEST, "not a JSON-RPC 2.0 message"))
        identity, method, params = message.get("id"), message.get("method"), message.get("params")
        if not isinstance(method, str):
            return None
        if "id" not in message:
            return self._notified(method, params)
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            return self.refuse(None, Refusal(INVALID_REQUEST, "the id is no string or integer"))
        try:
            self._asked(identity, method, {} if params is None else params)
        except Refusal as refusal:
            self.refuse(identity, refusal)

    async def finish(self, seconds: float = GRACE_SECONDS) -> None:
        """Let running calls end by themselves for a moment, then cancel them."""
        running = tuple(self._running.values())
        if running:
            await asyncio.wait(running, timeout=seconds)
        for task in running:
            task.cancel()

    def _asked(self, identity: int | str, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            raise Refusal(INVALID_PARAMS, "params is not an object")
        self._settle_era(method, params)
        if method == "tools/call":
            return self._begin(identity, params)
        wrong_era = {True: ("initialize", "ping"), False: ("server/discover",)}
        if method not in self._methods or method in wrong_era[bool(self._modern)]:
            raise Refusal(METHOD_NOT_FOUND, "Method not found", method[:200])
        self._answer(identity, self._methods[method](params))

    def _settle_era(self, method: str, params: Mapping[str, Any]) -> None:
        """The first request fixes the era: 2026-07-28 carries its version in every request."""
        meta = params.get("_meta")
        enveloped = isinstance(meta, dict) and _VERSION_KEY in meta and method != "initialize"
        if self._modern is None and not enveloped and method != "server/discover":
            self._modern = False
        if self._modern is False:
            if enveloped:
                raise Refusal(INVALID_REQUEST, "this connection began with another protocol era")
            return
        if method == "initialize":
            raise _unsupported(params.get("protocolVersion"))
        _check_envelope(meta)
        self._modern = True

    def _begin(self, identity: int | str, params: Mapping[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self._names:
            raise Refusal(INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
        if arguments is not None and not isinstance(arguments, dict):
            raise Refusal(INVALID_PARAMS, "arguments is not an object")
        if identity in self._running:
            raise Refusal(INVALID_REQUEST, "a call with this id is running")
        if len(self._running) >= MAX_CALLS:
            raise Refusal(BUSY, "too many calls are running")
        heard = self._hearer(params.get("_meta"))
        task = self.tasks.create_task(self._run(identity, name, arguments or {}, heard))
        self._running[identity] = task
        task.add_done_callback(lambda _: self._running.pop(identity, None))

    async def _run(
        self, identity: int | str, name: str, arguments: Mapping[str, Any], heard: Hearer
    ) -> None:
        self._answer(identity, await self.call(name, arguments, heard))

    def _hearer(self, meta: Any) -> Hearer:
        """Who is told of a call's progress: its client, where it gave a token for that."""
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if isinstance(token, bool) or not isinstance(token, int | str):
            return unheard
        return partial(self._tell, token)

    def _tell(self, token: int | str, progress: Progress) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": progress.done}
        if progress.total is not None:
            params["total"] = progress.total
        # Messages came with the protocol's second revision.
        if progress.message and self._version != LEGACY[0]:
            params["message"] = progress.message
        self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _notified(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            identity = params.get("requestId")
            task = self._running.get(identity) if isinstance(identity, int | str) else None
            if task is not None:
                task.cancel()

    def _initialize(self, params: Mapping[str, Any]) -> Result:
        if self._version:
            raise Refusal(INVALID_REQUEST, "initialize was already answered")
        offered = params.get("protocolVersion")
        self._version = offered if offered in LEGACY else LEGACY[-1]
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {}},
            "serverInfo": self.card.info(),
            "instructions": self.card.instructions,
        }

    def _discover(self, params: Mapping[str, Any]) -> Result:
        return {
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {}},
            "instructions": self.card.instructions,
            **_CACHED,
        }

    def _list(self, params: Mapping[str, Any]) -> Result:
        if params.get("cursor") is not None:
            raise Refusal(INVALID_PARAMS, "there is only one page")
        return {"tools": self.tools, **(_CACHED if self._modern else {})}

    def _answer(self, identity: int | str, result: Result) -> None:
        if self._modern:
            meta = {**(result.get("_meta") or {}), _SERVER_KEY: self.card.info()}
            result = {"resultType": "complete", **result, "_meta": meta}
        self.send({"jsonrpc": "2.0", "id": identity, "result": result})

    def refuse(self, identity: int | str | None, refusal: Refusal) -> None:
        data = {} if refusal.data is None else {"data": refusal.data}
        error = {"code": refusal.code, "message": str(refusal), **data}
        self.send({"jsonrpc": "2.0", "id": identity, "error": error})


def _check_envelope(meta: Any) -> None:
    """The fields that every 2026-07-28 request carries."""
    given = meta if isinstance(meta, dict) else {}
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in given]
    if missing:
        raise Refusal(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if given[_VERSION_KEY] != MODERN:
        raise _unsupported(given[_VERSION_KEY])


def _unsupported(version: Any) -> Refusal:
    data: dict[str, Any] = {"supported": [MODERN]}
    if isinstance(version, str):
        data["requested"] = version[:100]
    return Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


async def serve_flat(card: Card, tools: Iterable[Mapping[str, Any]], call: CallTool) -> None:
    """Serve on this process's stdin and stdout until end of file, or until nobody listens."""
    async with _taken_pipes() as (reader, writer), asyncio.TaskGroup() as tasks:

        def send(message: Mapping[str, Any]) -> None:
            writer.write(exactjson.dumps(message) + b"\n")

        flat = Flat(card, tuple(tools), call, send, tasks)
        with suppress(ConnectionError):
            while line := await _line(reader):
                _receive(flat, line)
                await writer.drain()
        await flat.finish()


def _receive(flat: Flat, line: bytes) -> None:
    if not line.strip():
        return
    try:
        message = exactjson.loads(line)
    except (ValueError, RecursionError):
        flat.refuse(None, Refusal(PARSE_ERROR, "the line is not JSON"))
        return
    flat.receive(message)


def require_pipes() -> None:
    """Raises OrchestratorError where nobody is at the other end of stdin and stdout."""
    if not all(map(_is_pipe, (0, 1))):
        raise OrchestratorError(
            "standard input and output are no pipes. An MCP client starts this command; add it to "
            "one with `toolwright setup --client`, or one server with `toolwright run --client`."
        )


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or nothing at the end or where a line is longer than allowed."""
    try:
        return await reader.readline()
    except ValueError:
        return b""


@asynccontextmanager
async def _taken_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """stdin and stdout for ourselves: what anything else prints goes to stderr."""
    require_pipes()
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", buffering=0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield reader, writer
    finally:
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()
