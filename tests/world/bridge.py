"""Streamable HTTP in front of a stdio server: the conformance suite speaks only HTTP.

A process per `Mcp-Session-Id` for the initialize-based protocol, one that all share for 2026-07-28.
What a process says while a request is open goes to that request's stream.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
STATUS = {-32601: 404, -32602: 400, -32600: 400, -32020: 400, -32021: 400, -32022: 400}
LINE = 1 << 26
SHARED = ""
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ENVELOPE: dict[str, Any] = {
    VERSION_KEY: MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
GREETING = {**PING, "method": "server/discover", "params": {"_meta": ENVELOPE}}
MAX_SESSIONS = 3
"""The suite does not end its sessions; its scenarios run one after the other."""


@contextmanager
def bridged(command: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    """The URL under which that command's server answers for the time of the block."""
    bridge = Bridge(command, env)
    route = Route("/mcp", bridge.answer, methods=["GET", "POST", "DELETE"])
    with served(Starlette(routes=[route], lifespan=bridge.lifespan)) as url:
        yield f"{url}/mcp"


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """An application on a free port of the loopback, from when it answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            httpx.get(f"http://127.0.0.1:{port}", trust_env=False, timeout=120)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Open:
    """A request that is not answered yet, and what belongs to its stream; None ends it."""

    identity: Any
    token: Any
    stream: asyncio.Queue[dict[str, Any] | None] = field(default_factory=asyncio.Queue)


@dataclass
class Child:
    """A process, and the requests it has not answered by the ids they have for it."""

    process: asyncio.subprocess.Process
    open: dict[int, Open] = field(default_factory=dict)
    pump: asyncio.Task[None] | None = None

    async def relay(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" in message:
                self._notify(message)
                continue
            asked = self.open.pop(message["id"], None)
            if asked:
                asked.stream.put_nowait({**message, "id": asked.identity})
                asked.stream.put_nowait(None)
        for asked in self.open.values():
            asked.stream.put_nowait(None)

    def _notify(self, message: dict[str, Any]) -> None:
        token = (message.get("params") or {}).get("progressToken")
        for asked in self.open.values():
            if asked.token == token:
                asked.stream.put_nowait(message)

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        assert self.pump is not None
        await self.pump

    async def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()


class Bridge:
    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command, self._env = tuple(command), dict(env)
        self._children: dict[str, Child] = {}
        self._ended: list[Child] = []
        self._spare: asyncio.Task[Child]
        self._starting = asyncio.Lock()
        self._ids, self._sessions = itertools.count(10_000_000), itertools.count(1)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """The first process listens before anybody asks: the suite's own limit for an answer is
        10 s. All processes end with the application.
        """
        self._spare = asyncio.create_task(self._begun(GREETING))
        await self._child(SHARED)
        yield
        for child in (*self._children.values(), *self._ended, await self._spare):
            await child.end()

    async def answer(self, request: Request) -> Response:
        session = request.headers.get("mcp-session-id", SHARED)
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        params = message.get("params") or {}
        told = request.headers.get("mcp-protocol-version")
        modern = told == MODERN or VERSION_KEY in (params.get("_meta") or {})
        headers = {}
        if modern:
            session = SHARED
        elif message.get("method") == "initialize":
            session = headers["mcp-session-id"] = f"session-{next(self._sessions)}"
        elif session not in self._children:
            return Response(status_code=404)
        child = await self._child(session)
        if "id" not in message or "method" not in message:
            await child.send(message)
            return Response(status_code=202)
        return await self._asked(child, message, params, modern, headers)

    async def _child(self, session: str) -> Child:
        """The session's process: the one that was started ahead. The oldest ones are let go."""
        async with self._starting:
            if session not in self._children:
                self._children[session] = await self._spare
                self._spare = asyncio.create_task(self._begun(PING))
            numbered = [name for name in self._children if name != SHARED]
            for name in numbered[:-MAX_SESSIONS]:
                self._ended.append(self._children.pop(name))
                self._ended[-1].let_go()
        return self._children[session]

    async def _begun(self, question: Mapping[str, Any]) -> Child:
        """A process that has answered a question of the era it is for."""
        process = await asyncio.create_subprocess_exec(
            *self._command, env=self._env, stdin=-1, stdout=-1, limit=LINE
        )
        child = Child(process)
        child.pump = asyncio.create_task(child.relay())
        asked = Open(question["id"], None)
        child.open[question["id"]] = asked
        await child.send(question)
        assert await asked.stream.get() is not None, "it ended before it answered"
        return child

    async def _asked(
        self,
        child: Child,
        message: Mapping[str, Any],
        params: Mapping[str, Any],
        modern: bool,
        headers: Mapping[str, str],
    ) -> Response:
        asked = Open(message["id"], (params.get("_meta") or {}).get("progressToken"))
        identity = next(self._ids)
        child.open[identity] = asked
        await child.send({**message, "id": identity})
        first = await asked.stream.get()
        error = (first or {}).get("error")
        if modern and error:
            return JSONResponse(first, STATUS.get(error["code"], 200))
        return StreamingResponse(
            _events(first, asked), media_type="text/event-stream", headers=dict(headers)
        )


async def _events(first: dict[str, Any] | None, asked: Open) -> AsyncIterator[bytes]:
    message = first
    while message is not None:
        yield f"event: message\ndata: {json.dumps(message)}\n\n".encode()
        message = await asked.stream.get()
