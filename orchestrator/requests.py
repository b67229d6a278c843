"""Reading requests to the control plane: how much, and whose."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

MAX_BODY = 64 * 1024
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


async def body_of(request: Request) -> dict[str, Any]:
    """The request's JSON object; anything else, or more than 64 KiB, is empty."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            return {}
    try:
        value = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_same_site(request: Request) -> bool:
    """Whether the request names this host as people do, and comes from no other site's page."""
    whole = request.headers.get("host", "")
    origin = request.headers.get("origin")
    host = whole.rpartition(":")[0] or whole
    return host in LOCAL_NAMES and (origin is None or origin == f"http://{whole}")
