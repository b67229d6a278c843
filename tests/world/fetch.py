"""The guarded GET of discovery, made of the real LiveHttp."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urljoin

from forge.sources import Fetcher, FetchResponse
from sandbox.broker.live import LiveHttp
from sandbox.wire.exchange import Headers, WireRequest
from sandbox.wire.policy import parse_origin

MAX_REDIRECTS = 5


@asynccontextmanager
async def loopback_fetch(
    *urls: str, response_bytes: int = 32 * 1024 * 1024
) -> AsyncIterator[Fetcher]:
    """A Fetch that may reach the origins of these URLs although they are on loopback."""
    granted = frozenset(filter(None, map(parse_origin, urls)))
    async with LiveHttp(granted, response_bytes=response_bytes, connect_seconds=60.0) as live:

        async def fetch(url: str, headers: Headers, body: bytes = b"") -> FetchResponse:
            method = "POST" if body else "GET"
            for _ in range(1 if body else MAX_REDIRECTS + 1):
                answer = await live.send(WireRequest(method, url, headers, body))
                target = urljoin(url, answer.get_header("location") or "")
                inside = parse_origin(target) == parse_origin(url)
                if body or answer.status not in (301, 302, 303, 307, 308) or not inside:
                    break
                if target == url:
                    break
                url = target
            return FetchResponse(answer.status, answer.headers, answer.body, url)

        yield fetch
