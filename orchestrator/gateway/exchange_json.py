"""Encoding exchanges with APIs as JSON for people and the audit log."""

from __future__ import annotations

import base64
from typing import Any

from registry.models import Approval
from sandbox.wire.exchange import Exchange, WireRequest

MAX_LOGGED_BODY = 64 * 1024


def encode_exchange(exchange: Exchange) -> dict[str, Any]:
    """An exchange as the audit keeps it: bodies as text or base64, cut at 64 kB."""
    response = exchange.response
    return {
        "request": encode_request(exchange.request),
        "response": response
        and {
            "status": response.status,
            "headers": [list(pair) for pair in response.headers],
            **_encode_body(response.body),
        },
        "refusal": exchange.refusal,
        "reason": exchange.reason,
        "attempts": exchange.attempts,
        "elapsed_ms": round(exchange.elapsed_ms, 3),
        "sent_at": [round(at, 3) for at in exchange.sent_at],
    }


def encode_request(request: WireRequest) -> dict[str, Any]:
    """A wire request as people and the audit see it."""
    return {
        "method": request.method,
        "url": request.url,
        "headers": [list(pair) for pair in request.headers],
        **_encode_body(request.body),
    }


def pending_json(approval: Approval, reason: str) -> dict[str, Any]:
    """A request that waits for a person, as its caller sees it."""
    return {
        "state": "pending",
        "approval": approval.id,
        "why": reason,
        "request": encode_request(approval.wire),
        "expires": approval.expires,
    }


def _encode_body(body: bytes) -> dict[str, Any]:
    kept = body[:MAX_LOGGED_BODY]
    cut = {"cut_at": MAX_LOGGED_BODY, "bytes": len(body)} if len(body) > MAX_LOGGED_BODY else {}
    try:
        return {"body": kept.decode(), **cut}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(kept).decode(), **cut}
