"""HTTP as the broker sees it: the request a container asked for, the answer, and who answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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

    `response` is None where none arrived; `refusal` then says why (see `sandbox.broker.Refusal`).
    Times are milliseconds.
    """

    request: WireRequest
    response: WireResponse | None
    refusal: str = ""
    reason: str = ""
    attempts: int = 1
    elapsed_ms: float = 0.0


class Upstream(Protocol):
    """The broker's far side: a mock, a cassette, or the live network."""

    async def send(self, request: WireRequest) -> WireResponse:
        """Answer the request. Raises `UpstreamUnreachable` where no answer can be had."""
        ...


def first(headers: Headers, name: str) -> str | None:
    """The first value of a header; names compare without case (RFC 9110 section 5.1)."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)
