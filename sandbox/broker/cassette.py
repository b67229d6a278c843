"""Cassettes: recorded exchanges replayed as an upstream."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.broker.host.tools import ToolCalls
from sandbox.errors import BundleInvalid, UpstreamUnreachable
from sandbox.wire.exchange import (
    Exchange,
    Upstream,
    WireRequest,
    WireResponse,
    request_from_json,
    request_to_json,
    response_from_json,
    response_to_json,
)
from sandbox.wire.policy import Policy
from sandbox.wire.redaction import Redaction

MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class RecordedExchange:
    """One recorded request and its answer."""

    request: WireRequest
    response: WireResponse


class Cassette:
    """Replays takes: a request is answered by the first unused take of the same method, URL and
    body. Once they are used up, the last one answers again.
    """

    def __init__(self, takes: Iterable[RecordedExchange]) -> None:
        self.takes = tuple(takes)
        self._left: dict[str, deque[WireResponse]] = defaultdict(deque)
        for take in self.takes:
            self._left[_hash_request(take.request)].append(take.response)

    @classmethod
    def from_exchanges(cls, exchanges: Iterable[Exchange]) -> Cassette:
        """A cassette of logged exchanges; those without an answer are left out."""
        answered = ((e.request, e.response) for e in exchanges if e.response is not None)
        return cls(RecordedExchange(request, response) for request, response in answered)

    async def send(self, request: WireRequest) -> WireResponse:
        """The recorded answer. Raises UpstreamUnreachable for a request that was not recorded."""
        left = self._left.get(_hash_request(request))
        if not left:
            raise UpstreamUnreachable(
                f"{request.method} {request.url[:300]} with {len(request.body)} bytes of body is "
                "not on the cassette. Record it again against the live API."
            )
        return left.popleft() if len(left) > 1 else left[0]


class CassetteRecorder:
    """An upstream that forwards to another one and records its answers.

    `secrets` are redacted in the recording: the requests that reach an upstream carry credentials.
    """

    def __init__(self, upstream: Upstream, secrets: Iterable[str] = ()) -> None:
        self._upstream = upstream
        self._hide = Redaction(secrets)
        self._takes: list[RecordedExchange] = []

    async def send(self, request: WireRequest) -> WireResponse:
        response = await self._upstream.send(request)
        self._takes.append(
            RecordedExchange(self._clean_request(request), self._hide.redact_response(response))
        )
        return response

    def to_cassette(self) -> Cassette:
        """A cassette of all exchanges recorded so far."""
        return Cassette(self._takes)

    def _clean_request(self, request: WireRequest) -> WireRequest:
        return WireRequest(
            request.method,
            self._hide.redact_text(request.url),
            self._hide.redact_headers(request.headers),
            self._hide.redact_bytes(request.body),
        )


def save_cassette(cassette: Cassette, path: Path) -> None:
    """Write the cassette as JSON lines."""
    lines = (json.dumps(_to_json(take), ensure_ascii=False) for take in cassette.takes)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def load_cassette(path: Path) -> Cassette:
    """Read a cassette from a file. Raises BundleInvalid with the file, the line and the reason."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BundleInvalid(str(path.parent), path.name, f"larger than {MAX_BYTES} bytes")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleInvalid(str(path.parent), path.name, str(error)) from error
    return Cassette(
        _parse_line(line, number, path) for number, line in enumerate(lines, 1) if line.strip()
    )


def _parse_line(line: str, number: int, path: Path) -> RecordedExchange:
    try:
        return _from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"line {number}: {type(error).__name__}: {error}"
        raise BundleInvalid(str(path.parent), path.name, reason) from error


def _hash_request(request: WireRequest) -> str:
    head = f"{request.method}\n{request.url}\n".encode()
    return hashlib.sha256(head + request.body).hexdigest()


def _to_json(take: RecordedExchange) -> dict[str, Any]:
    return {
        "request": request_to_json(take.request),
        "response": response_to_json(take.response),
    }


def _from_json(data: dict[str, Any]) -> RecordedExchange:
    return RecordedExchange(
        request_from_json(data["request"]), response_from_json(data["response"])
    )


class ReplayBroker(Broker):
    """A broker that answers the recorded requests in their order and refuses all others.

    Nothing is sent, and no credential is known. A request other than the next recorded one is
    refused and added to `surprises` with its position; the position does not advance.
    """

    def __init__(self, exchanges: tuple[Exchange, ...]) -> None:
        super().__init__(Policy(()), Cassette(()))
        self.exchanges = exchanges
        self.answered = 0
        self.surprises: list[tuple[int, WireRequest]] = []

    @property
    def unused(self) -> tuple[Exchange, ...]:
        """Recorded exchanges that were not asked for yet."""
        return self.exchanges[self.answered :]

    async def perform(self, request: WireRequest, calls: ToolCalls | None = None) -> Exchange:
        unused = self.unused
        if unused and unused[0].request == request:
            self.answered += 1
            return unused[0]
        self.surprises.append((self.answered, request))
        reason = f"{request.method} {request.url[:200]} is not the request that was recorded here"
        return Exchange(request, None, "refused", reason)
