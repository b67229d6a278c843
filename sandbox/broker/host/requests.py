"""The messages of `toolwright/request` (docs/runtime-protocol.md), converted at the border."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from sandbox.exchange import WireRequest, WireResponse
from sandbox.localaccess import local_request
from sandbox.netrequest import network_request
from sandbox.toolcall import call_request


def read_request(params: Mapping[str, Any]) -> WireRequest | None:
    """The request that a sandbox asks for, or None where it is not well-formed."""
    kind = params.get("kind")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        body = _bytes(params)
        return None if body is None else read(params, body)
    method, url, headers = params.get("method"), params.get("url"), params.get("headers", [])
    if params.get("kind") != "http" or not isinstance(method, str) or not isinstance(url, str):
        return None
    if not isinstance(headers, list):
        return None
    for header in headers:
        if not _is_pair(header):
            return None
    body = _bytes(params)
    if body is None:
        return None
    return WireRequest(method, url, tuple([(name, value) for name, value in headers]), body)


_READERS = {
    "call": call_request,
    "dns": network_request,
    "env": local_request,
    "file": local_request,
    "tcp": network_request,
    "tls": network_request,
}


def _is_pair(header: Any) -> bool:
    if not isinstance(header, list) or len(header) != 2:
        return False
    return isinstance(header[0], str) and isinstance(header[1], str)


def _bytes(params: Mapping[str, Any]) -> bytes | None:
    text, encoded = params.get("body"), params.get("body_base64")
    try:
        if isinstance(text, str):
            return text.encode()
        if isinstance(encoded, str):
            return base64.b64decode(encoded, validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return b"" if text is None and encoded is None else None


def refusal(kind: str, reason: str, retry_after: float | None = None) -> dict[str, Any]:
    """The answer to one that was refused; `retry_after` is in seconds."""
    wait = {} if retry_after is None else {"retry_after": round(retry_after, 1)}
    return {"error": {"code": -32010, "message": reason, "data": {"kind": kind, **wait}}}


def answer_json(response: WireResponse) -> dict[str, Any]:
    """The `result` of one that was answered."""
    told: dict[str, Any] = {"status": response.status, "headers": response.headers}
    try:
        told["body"] = response.body.decode()
    except UnicodeDecodeError:
        told["body_base64"] = base64.b64encode(response.body).decode()
    return told
