"""HTTP values of the broker: request, response, exchange, limits, and the upstream interface."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Headers = tuple[tuple[str, str], ...]

REFUSED = frozenset({"refused", "redirect", "credential", "not_allowed"})
"""Refusals of an `Exchange` that are reported to the sandbox as `refused`."""


@dataclass(frozen=True)
class WireRequest:
    """A request as it will be sent, before credentials. `url` is absolute and percent-encoded."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""

    def get_header(self, name: str) -> str | None:
        return find_header(self.headers, name)


@dataclass(frozen=True)
class WireResponse:
    status: int
    headers: Headers = ()
    body: bytes = b""

    def get_header(self, name: str) -> str | None:
        return find_header(self.headers, name)


@dataclass(frozen=True)
class Exchange:
    """A request that a sandbox asked the broker for, and its result.

    `response` is None if none arrived; `refusal` then holds the code (see
    `sandbox.broker.sender.Refusal`), `reason` a sentence, and `retry_after` the seconds after which
    another try makes sense. `attempts` counts the requests sent, `sent_at` holds their times
    (seconds since 1970); all but the last got 429 or 503, or 401 for want of a credential.
    `answered` is the status of an answer that came and was not taken, 0 where there is none.
    """

    request: WireRequest
    response: WireResponse | None
    refusal: str = ""
    reason: str = ""
    attempts: int = 1
    elapsed_ms: float = 0.0
    retry_after: float | None = None
    sent_at: tuple[float, ...] = field(default=(), compare=False)
    answered: int = 0

    @property
    def kind(self) -> str:
        """The refusal as reported to the sandbox (docs/runtime-protocol.md, section 2)."""
        return "refused" if self.refusal in REFUSED else self.refusal

    def replace_elapsed(self, elapsed_ms: float) -> Exchange:
        """A copy with this duration. `dataclasses.replace` takes five times as long."""
        return Exchange(
            self.request,
            self.response,
            self.refusal,
            self.reason,
            self.attempts,
            elapsed_ms,
            self.retry_after,
            self.sent_at,
            self.answered,
        )


class Upstream(Protocol):
    """The broker's far side: a mock, a cassette, or the live network."""

    async def send(self, request: WireRequest) -> WireResponse:
        """Send the request and return the response. Raises `UpstreamUnreachable`."""
        ...


def find_header(headers: Headers, name: str) -> str | None:
    """The first value of a header; names compare without case (RFC 9110 section 5.1)."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def digest_request(request: WireRequest) -> str:
    """sha256 (hex) over method, URL, headers in order with lower-case names, and body."""
    total = hashlib.sha256(f"{request.method}\n{request.url}\n".encode())
    for name, value in request.headers:
        total.update(f"{name.lower()}: {value}\n".encode())
    total.update(b"\n" + request.body)
    return total.hexdigest()


def measure_request(request: WireRequest) -> int:
    """Bytes that are held of a request, roughly."""
    heads = sum([len(name) + len(value) for name, value in request.headers])
    return len(request.url) + heads + len(request.body)


def measure_response(response: WireResponse) -> int:
    """Bytes that are held of an answer, roughly."""
    return sum([len(name) + len(value) for name, value in response.headers]) + len(response.body)


def measure_exchange(exchange: Exchange) -> int:
    """Bytes that are held of an exchange, roughly."""
    answered = measure_response(exchange.response) if exchange.response else 0
    return measure_request(exchange.request) + answered


def to_json(exchange: Exchange) -> dict[str, Any]:
    """All of an exchange as plain JSON values; bodies are text if they are UTF-8, else base64."""
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
    return {**head, **_encode_body(request.body)}


def request_from_json(data: Mapping[str, Any]) -> WireRequest:
    return WireRequest(
        str(data["method"]), str(data["url"]), _parse_headers(data), _decode_body(data)
    )


def response_to_json(response: WireResponse) -> dict[str, Any]:
    head = {"status": response.status, "headers": response.headers}
    return {**head, **_encode_body(response.body)}


def response_from_json(data: Mapping[str, Any]) -> WireResponse:
    return WireResponse(int(data["status"]), _parse_headers(data), _decode_body(data))


def _parse_headers(data: Mapping[str, Any]) -> Headers:
    return tuple((str(name), str(value)) for name, value in data["headers"])


def _encode_body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _decode_body(data: Mapping[str, Any]) -> bytes:
    if "body_base64" in data:
        return base64.b64decode(data["body_base64"], validate=True)
    return str(data["body"]).encode()


@dataclass(frozen=True)
class Caps:
    """Limits of one session's requests. Sizes are bytes after decompression, times are seconds.
    `attempts`, and `retry_budget_seconds` for all waits between them, concern requests that may be
    repeated.
    """

    request_bytes: int = 8 * 1024 * 1024
    response_bytes: int = 8 * 1024 * 1024
    url_bytes: int = 16 * 1024
    headers: int = 64
    header_bytes: int = 16 * 1024
    seconds: float = 30.0
    attempts: int = 3
    retry_budget_seconds: float = 20.0
    redirects: int = 3
    exchanges: int = 1000


@dataclass(frozen=True)
class CredentialUse:
    """A credential that a tool's requests get: its `name` in the bundle, the vault's name of its
    `secret`, and a `mark`, which another value of that secret does not have. The last two are ""
    where no secret is set.
    """

    name: str
    secret: str = ""
    mark: str = ""


@dataclass(frozen=True)
class WriteStep:
    """A tool that a write goes through: its server with the version and the digest of the bundle
    that runs, and the credentials that its requests get.
    """

    server: str
    version: int
    digest: str
    tool: str
    credentials: tuple[CredentialUse, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True)
class Release:
    """One write may be sent: the request with this digest, or the first one if it is None. With
    `steps` it has to go through exactly these tools, the outermost first; the last one sends it.
    """

    digest: str | None
    steps: tuple[WriteStep, ...] | None = None


@dataclass(frozen=True)
class Capture:
    """Writes are captured and not sent."""


WriteMode = Release | Capture | None
