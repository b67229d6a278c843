"""What a call in the WASM engine depends on besides its code and arguments, as a value."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox.broker import Broker
from sandbox.cassette import Cassette
from sandbox.exchange import Exchange, Headers, WireRequest, WireResponse
from sandbox.policy import Policy
from sandbox.runner import Outcome


@dataclass(frozen=True)
class Inputs:
    """The time that stands still during a call (nanoseconds since 1970) and the source of all its
    randomness (64 hexadecimal digits).
    """

    time_ns: int
    seed: str


LOADING = Inputs(0, "0" * 64)
"""What code sees while it is loaded, so that a loaded server is the same every time."""


def live_inputs() -> Inputs:
    """The present time and fresh randomness."""
    return Inputs(time.time_ns(), os.urandom(32).hex())


@dataclass(frozen=True)
class Recording:
    """All that a call took in: replayed, the same code gives the same bytes.

    `component` is the digest of the component it ran in; another one may order sets differently.
    """

    component: str
    inputs: Inputs
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True)
class RecordedOutcome(Outcome):
    """An outcome with what it depends on."""

    recording: Recording | None = None


class Entropy:
    """Random bytes that a seed determines: SHA-256 over the seed and a counter."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count, self._left = seed.encode(), 0, b""

    def read(self, size: int) -> bytes:
        parts, missing = [self._left], size - len(self._left)
        while missing > 0:
            parts.append(hashlib.sha256(b"%s %d" % (self._seed, self._count)).digest())
            self._count += 1
            missing -= len(parts[-1])
        content = b"".join(parts)
        self._left = content[size:]
        return content[:size]


class Replay(Broker):
    """In place of a session's broker: answers the recorded requests in their order, and no other.

    After the last comes the first again, so a session can replay a call any number of times, one
    after another. Nothing is sent.
    """

    def __init__(self, exchanges: tuple[Exchange, ...]) -> None:
        super().__init__(Policy(()), Cassette(()))
        self._left = deque(exchanges)

    async def perform(self, request: WireRequest) -> Exchange:
        if self._left and self._left[0].request == request:
            self._left.rotate(-1)
            return self._left[-1]
        reason = f"{request.method} {request.url[:200]} is not the request that was recorded here"
        return Exchange(request, None, "refused", reason)


def to_json(recording: Recording) -> dict[str, Any]:
    return {
        "component": recording.component,
        "inputs": vars(recording.inputs),
        "exchanges": [_exchange_to_json(exchange) for exchange in recording.exchanges],
    }


def from_json(data: Mapping[str, Any]) -> Recording:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    return Recording(
        str(data["component"]),
        Inputs(int(data["inputs"]["time_ns"]), str(data["inputs"]["seed"])),
        tuple(_exchange_from_json(exchange) for exchange in data["exchanges"]),
    )


def _exchange_to_json(exchange: Exchange) -> dict[str, Any]:
    request, response = exchange.request, exchange.response
    return {
        **vars(exchange),
        "request": {**vars(request), "body": _text(request.body)},
        "response": response and {**vars(response), "body": _text(response.body)},
    }


def _exchange_from_json(data: Mapping[str, Any]) -> Exchange:
    exchange = Exchange(**{**data, "request": _request(data["request"]), "response": None})
    answer = data["response"]
    return replace(exchange, response=_response(answer)) if answer else exchange


def _request(data: Mapping[str, Any]) -> WireRequest:
    return WireRequest(**{**data, "headers": _headers(data), "body": _bytes(data["body"])})


def _response(data: Mapping[str, Any]) -> WireResponse:
    return WireResponse(**{**data, "headers": _headers(data), "body": _bytes(data["body"])})


def _headers(data: Mapping[str, Any]) -> Headers:
    return tuple((str(name), str(value)) for name, value in data["headers"])


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
