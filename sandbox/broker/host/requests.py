"""Parsing and encoding of `toolwright/request` messages (docs/runtime-protocol.md)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from sandbox.broker.host.local import ENV, parse_local_request
from sandbox.broker.host.network_requests import parse_network_request
from sandbox.broker.host.tools import parse_call_request
from sandbox.wire.exchange import WireRequest, WireResponse


def read_request(params: Mapping[str, Any]) -> WireRequest | None:
    """Parse the params of a `toolwright/request`; None if they are malformed."""
    kind = params.get("kind")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        body = _decode_body(params)
        return None if body is None else read(params, body)
    method, url, headers = params.get("method"), params.get("url"), params.get("headers", [])
    if params.get("kind") != "http" or not isinstance(method, str) or not isinstance(url, str):
        return None
    if not isinstance(headers, list):
        return None
    for header in headers:
        if not _is_pair(header):
            return None
    body = _decode_body(params)
    if body is None:
        return None
    return WireRequest(method, url, tuple([(name, value) for name, value in headers]), body)


def is_secret(request: WireRequest) -> bool:
    """Whether the answer is a value that must not be written down."""
    return request.url.startswith(ENV)


_READERS = {
    "call": parse_call_request,
    "dns": parse_network_request,
    "env": parse_local_request,
    "file": parse_local_request,
    "tcp": parse_network_request,
    "tls": parse_network_request,
}


def _is_pair(header: Any) -> bool:
    if not isinstance(header, list) or len(header) != 2:
        return False
    return isinstance(header[0], str) and isinstance(header[1], str)


def _decode_body(params: Mapping[str, Any]) -> bytes | None:
    text, encoded = params.get("body"), params.get("body_base64")
    try:
        if isinstance(text, str):
            return text.encode()
        if isinstance(encoded, str):
            return base64.b64decode(encoded, validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return b"" if text is None and encoded is None else None


def encode_refusal(kind: str, reason: str, retry_after: float | None = None) -> dict[str, Any]:
    """The JSON-RPC error of a refused request; `retry_after` is in seconds."""
    wait = {} if retry_after is None else {"retry_after": round(retry_after, 1)}
    return {"error": {"code": -32010, "message": reason, "data": {"kind": kind, **wait}}}


def encode_answer(response: WireResponse) -> dict[str, Any]:
    """The JSON-RPC `result` of an answered request."""
    told: dict[str, Any] = {"status": response.status, "headers": response.headers}
    try:
        told["body"] = response.body.decode()
    except UnicodeDecodeError:
        told["body_base64"] = base64.b64encode(response.body).decode()
    return told
