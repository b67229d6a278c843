"""HTTP as the broker sees it: the request a container asked for, the answer, and who answers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class WireRequest:
    """A request as it will be sent, credentials not yet added. `url` is absolute and encoded."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return first(self.headers, name)


@dataclass(frozen=True)
class WireResponse:
    status: int
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return first(self.headers, name)


@dataclass(frozen=True)
class Exchange:
    """One request that the broker was asked for and what became of it.

    `response` is None where none arrived; `refusal` then says why (see `sandbox.sender.Refusal`),
    and `retry_after` when another try makes sense, in seconds. `attempts` counts what was sent,
    `sent_at` when (seconds since 1970): all but the last were refused for a while (429, 503) or
    wanted another credential (401).
    """

    request: WireRequest
    response: WireResponse | None
    refusal: str = ""
    reason: str = ""
    attempts: int = 1
    elapsed_ms: float = 0.0
    retry_after: float | None = None
    sent_at: tuple[float, ...] = field(default=(), compare=False)

    def lasting(self, elapsed_ms: float) -> Exchange:
        """The same with its duration; `replace` takes five times as long."""
        return Exchange(
            self.request,
            self.response,
            self.refusal,
            self.reason,
            self.attempts,
            elapsed_ms,
            self.retry_after,
            self.sent_at,
        )


class Upstream(Protocol):
    """The broker's far side: a mock, a cassette, or the live network."""

    async def send(self, request: WireRequest) -> WireResponse:
        """Answer the request. Raises `UpstreamUnreachable` where no answer can be had."""
        ...


def first(headers: Headers, name: str) -> str | None:
    """The first value of a header; names compare without case (RFC 9110 section 5.1)."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def wire_digest(request: WireRequest) -> str:
    """sha256 (hex) over method, URL, headers in order with lower-case names, and body."""
    total = hashlib.sha256(f"{request.method}\n{request.url}\n".encode())
    for name, value in request.headers:
        total.update(f"{name.lower()}: {value}\n".encode())
    total.update(b"\n" + request.body)
    return total.hexdigest()


def to_json(exchange: Exchange) -> dict[str, Any]:
    """An exchange as plain JSON values, whole: bodies as text where they are UTF-8, else base64."""
    response = exchange.response
    return {
        **vars(exchange),
        "request": request_to_json(exchange.request),
        "response": response and response_to_json(response),
    }


def from_json(data: Mapping[str, Any]) -> Exchange:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    response = data["response"]
    ends = {
        "request": request_from_json(data["request"]),
        "response": response and response_from_json(response),
        "sent_at": tuple(map(float, data.get("sent_at", ()))),
    }
    return Exchange(**{**data, **ends})


def request_to_json(request: WireRequest) -> dict[str, Any]:
    head = {"method": request.method, "url": request.url, "headers": request.headers}
    return {**head, **_body_to_json(request.body)}


def request_from_json(data: Mapping[str, Any]) -> WireRequest:
    return WireRequest(
        str(data["method"]), str(data["url"]), _headers_from_json(data), _body_from_json(data)
    )


def response_to_json(response: WireResponse) -> dict[str, Any]:
    head = {"status": response.status, "headers": response.headers}
    return {**head, **_body_to_json(response.body)}


def response_from_json(data: Mapping[str, Any]) -> WireResponse:
    return WireResponse(int(data["status"]), _headers_from_json(data), _body_from_json(data))


def _headers_from_json(data: Mapping[str, Any]) -> Headers:
    return tuple((str(name), str(value)) for name, value in data["headers"])


def _body_to_json(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _body_from_json(data: Mapping[str, Any]) -> bytes:
    if "body_base64" in data:
        return base64.b64decode(data["body_base64"], validate=True)
    return str(data["body"]).encode()
