"""Security headers and body parsing of the control plane."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DEFAULTS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""For browsers led to a response: nothing in it is run, framed, cached or leaked as Referer."""


class SafeHeaders:
    """ASGI middleware that adds those of `DEFAULTS` that the route did not set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in DEFAULTS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sent)


MAX_BODY = 64 * 1024


async def read_content(request: Request) -> bytes:
    """The request's body; nothing where it is more than 64 KiB."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            return b""
    return content


async def read_body(request: Request) -> dict[str, Any]:
    """The request's JSON object; {} for anything else or more than 64 KiB."""
    content = await read_content(request)
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
