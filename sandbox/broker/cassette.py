"""Recorded exchanges as an upstream: what an API once answered, answered again."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from sandbox.errors import BundleInvalid, UpstreamUnreachable
from sandbox.exchange import (
    Exchange,
    Upstream,
    WireRequest,
    WireResponse,
    request_from_json,
    request_to_json,
    response_from_json,
    response_to_json,
)

MAX_BYTES = 256 * 1024 * 1024
REDACTED = "[redacted]"


@dataclass(frozen=True)
class Take:
    """One recorded request and its answer."""

    request: WireRequest
    response: WireResponse


class Cassette:
    """Replays takes: a request is answered by the first unused take of the same method, URL and
    body. Once they are used up, the last one answers again.
    """

    def __init__(self, takes: Iterable[Take]) -> None:
        self.takes = tuple(takes)
        self._left: dict[str, deque[WireResponse]] = defaultdict(deque)
        for take in self.takes:
            self._left[_key(take.request)].append(take.response)

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> Cassette:
        """The cassette of what a broker logged; exchanges without an answer are not on it."""
        answered = ((e.request, e.response) for e in exchanges if e.response is not None)
        return cls(Take(request, response) for request, response in answered)

    async def send(self, request: WireRequest) -> WireResponse:
        """The recorded answer. Raises UpstreamUnreachable for a request that was not recorded."""
        left = self._left.get(_key(request))
        if not left:
            raise UpstreamUnreachable(
                f"{request.method} {request.url[:300]} with {len(request.body)} bytes of body is "
                "not on the cassette. Record it again against the live API."
            )
        return left.popleft() if len(left) > 1 else left[0]


class Recorder:
    """An upstream that passes on to another and keeps what it answered.

    `secrets` are blotted out of what is kept, plain or percent-encoded: the requests that reach an
    upstream carry credentials.
    """

    def __init__(self, upstream: Upstream, secrets: Iterable[str] = ()) -> None:
        self._upstream = upstream
        self._secrets = tuple(form for secret in secrets if secret for form in _forms(secret))
        self._takes: list[Take] = []

    async def send(self, request: WireRequest) -> WireResponse:
        response = await self._upstream.send(request)
        self._takes.append(Take(self._clean_request(request), self._clean_response(response)))
        return response

    def cassette(self) -> Cassette:
        """What was recorded so far."""
        return Cassette(self._takes)

    def _clean_request(self, request: WireRequest) -> WireRequest:
        return WireRequest(
            request.method,
            self._clean(request.url),
            tuple((name, self._clean(value)) for name, value in request.headers),
            self._clean_bytes(request.body),
        )

    def _clean_response(self, response: WireResponse) -> WireResponse:
        headers = tuple((name, self._clean(value)) for name, value in response.headers)
        return replace(response, headers=headers, body=self._clean_bytes(response.body))

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def _clean_bytes(self, content: bytes) -> bytes:
        for secret in self._secrets:
            content = content.replace(secret.encode(), REDACTED.encode())
        return content


def _forms(secret: str) -> tuple[str, ...]:
    basic = base64.b64encode(secret.encode()).decode()
    return secret, quote(secret, safe=""), quote_plus(secret), basic


def save(cassette: Cassette, path: Path) -> None:
    """Write the cassette as JSON lines."""
    lines = (json.dumps(_to_json(take), ensure_ascii=False) for take in cassette.takes)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def load(path: Path) -> Cassette:
    """The cassette of a file. Raises BundleInvalid naming the file, the line and the reason."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BundleInvalid(str(path.parent), path.name, f"larger than {MAX_BYTES} bytes")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleInvalid(str(path.parent), path.name, str(error)) from error
    return Cassette(
        _take(line, number, path) for number, line in enumerate(lines, 1) if line.strip()
    )


def _take(line: str, number: int, path: Path) -> Take:
    try:
        return _from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"line {number}: {type(error).__name__}: {error}"
        raise BundleInvalid(str(path.parent), path.name, reason) from error


def _key(request: WireRequest) -> str:
    head = f"{request.method}\n{request.url}\n".encode()
    return hashlib.sha256(head + request.body).hexdigest()


def _to_json(take: Take) -> dict[str, Any]:
    return {
        "request": request_to_json(take.request),
        "response": response_to_json(take.response),
    }


def _from_json(data: dict[str, Any]) -> Take:
    return Take(request_from_json(data["request"]), response_from_json(data["response"]))
