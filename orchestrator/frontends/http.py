"""Toolwright over streamable HTTP, for clients that cannot start a process.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
Loopback by default. Every request wants the bearer token of this home and a Host that is ours, as
is the Origin where there is one: a page in the user's browser has neither.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from registry.database.files import create_secret, write_atomically

PATH = "/mcp"
MAX_BODY = 8 * 1024 * 1024
MAX_SESSIONS = 64
IDLE_SECONDS = 1800.0
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
    config = uvicorn.Config(
        build_application(server, token, names),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    await uvicorn.Server(config).serve(sockets=[listener])


def build_application(server: Server[Any], token: str, names: Iterable[str] = ()) -> ASGIApp:
    """The server behind its token, under the loopback's names and those given."""
    known = [name for each in (*LOOPBACK, *names) for name in (each, f"{each}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=known,
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in known],
    )
    return TokenGuard(
        server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MAX_BODY,
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
            transport_security=security,
        ),
        token,
    )


class TokenGuard:
    """Lets nothing through that lacks the token (RFC 6750, section 2.1)."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application, self._token = application, f"Bearer {token}".encode()

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
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._token)
