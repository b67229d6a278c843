"""Toolwright over streamable HTTP, for clients that cannot start a process.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
Loopback by default. Every request wants the bearer token of this home and a Host that is ours, as
is the Origin where there is one: a page in the user's browser has neither.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.frontends.protocol import INVALID_REQUEST
from orchestrator.processes.http_server import QuietServer
from registry.database.files import create_secret, write_atomically
from sandbox.offload import run_sized

PATH = "/mcp"
MAX_BODY = 8 * 1024 * 1024
MAX_VALUES = 200_000
"""Of a message's JSON. The SDK reads it while all other clients wait: this many for a second."""
MAX_SESSIONS = 64
MAX_OPEN = 2 * MAX_SESSIONS
"""Sessions whose clients listen or wait for an answer, which are not ended for others."""
IDLE_SECONDS = 1800.0
SESSION = b"mcp-session-id"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def load_token(path: Path) -> tuple[str, bool]:
    """The token in that file, made (mode 0600) where there is none; and whether it was made. Where
    several make it at once, all get the same one.
    """
    made = secrets.token_urlsafe(32)
    token = create_secret(path, made.encode()).decode().strip()
    if len(token) >= 32:
        return token, token == made
    write_atomically(path, made.encode(), 0o600)
    return made, True


def build_url(host: str, port: int) -> str:
    """The URL that a client on this machine is given."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}{PATH}"


async def serve_http(
    server: Server[Any], listener: socket.socket, token: str, names: Iterable[str] = ()
) -> None:
    """Serve until the process is told to end. `names` are further names of this host."""
    http = QuietServer(build_application(server, token, names))
    serving = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        # It closes its connections before what answers on them is closed.
        http.should_exit = True
        await serving
        raise


def build_application(server: Server[Any], token: str, names: Iterable[str] = ()) -> ASGIApp:
    """The server behind its token, under the loopback's names and those given."""
    known = [name for each in (*LOOPBACK, *names) for name in (each, f"{each}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=known,
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in known],
    )
    application = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_OPEN,
        session_idle_timeout=IDLE_SECONDS,
        transport_security=security,
    )
    return TokenGuard(ValueGuard(SessionRoom(application, MAX_SESSIONS)), token)


class TokenGuard:
    """Lets nothing through that lacks the token (RFC 6750, section 2.1)."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application, self._token = application, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._has_token(scope):
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            told = {"error": "the token is missing or wrong: `toolwright serve --http --url`"}
            refusal = JSONResponse(told, 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)

    def _has_token(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        given = _list_values(scope, b"authorization")
        # The scheme is of any case (RFC 9110, section 11.1).
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


class SessionRoom:
    """Keeps at most so many sessions: past them, a new one ends the one that was used longest ago.

    A client that crashes or is killed ends no session of its own, and once the SDK has as many as
    it takes, it refuses all new ones. A session with an open request, such as that of a client
    that listens, does not end.
    """

    def __init__(self, application: ASGIApp, most: int) -> None:
        self._application, self._most = application, most
        self._used: dict[bytes, None] = {}
        self._busy: Counter[bytes] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        session = b"".join(_list_values(scope, SESSION)[:1])

        async def note_opened(message: Message) -> None:
            is_start = message["type"] == "http.response.start" and message["status"] == 200
            if is_start and not session:
                opened = [value for name, value in message["headers"] if name == SESSION]
                self._used |= dict.fromkeys(opened)
            await send(message)

        self._busy[session] += 1
        try:
            await self._application(scope, receive, note_opened)
        finally:
            self._busy[session] -= 1
            if not self._busy[session]:
                del self._busy[session]
            if session in self._used:
                # What was used last stands last.
                del self._used[session]
                if scope["method"] != "DELETE":
                    self._used[session] = None
        await self._end_oldest()

    async def _end_oldest(self) -> None:
        idle = [each for each in self._used if each not in self._busy]
        for session in idle[: max(0, len(self._used) - self._most)]:
            del self._used[session]
            ending = {"type": "http", "method": "DELETE", "path": PATH, "query_string": b""}
            headers = [(b"host", LOOPBACK[0].encode()), (SESSION, session)]
            await self._application({**ending, "headers": headers}, _receive_nothing, _send_nothing)


async def _receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send_nothing(message: Message) -> None:
    del message


def _list_values(scope: Scope, header: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == header]


class ValueGuard:
    """Lets no message through that has more than MAX_VALUES values. What is longer than MAX_BODY is
    left to the SDK, which refuses it.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        came = await _receive_body(receive)
        body = b"".join(each.get("body", b"") for each in came)
        if len(body) <= MAX_BODY and await run_sized(len(body), partial(_has_many_values, body)):
            reason = f"the message has more than {MAX_VALUES:,} values; give less of it at a time"
            error = {"code": INVALID_REQUEST, "message": reason}
            told = {"jsonrpc": "2.0", "id": None, "error": error}
            await JSONResponse(told, 413)(scope, receive, send)
            return
        waiting = iter(came)

        async def receive_again() -> Message:
            return next(waiting, None) or await receive()

        await self._application(scope, receive_again, send)


async def _receive_body(receive: Receive) -> list[Message]:
    """The messages that a request's body comes in, as far as it is not too long."""
    came: list[Message] = []
    size, more = 0, True
    while more and size <= MAX_BODY:
        message = await receive()
        came.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and bool(message.get("more_body"))
    return came


def _has_many_values(body: bytes) -> bool:
    """Whether JSON has more than MAX_VALUES values: each but the first of a list or an object has a
    comma before it, and each list and object a bracket.
    """
    if sum(map(body.count, _MARKS)) <= MAX_VALUES:
        return False
    # What stands in strings is none of them: with the escapes gone, every quote begins or ends one.
    parts = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
    outside = b"".join(parts[::2])
    return sum(map(outside.count, _MARKS)) > MAX_VALUES


_MARKS = (b",", b"[", b"{")
