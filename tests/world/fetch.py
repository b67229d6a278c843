"""The guarded GET of discovery, made of the real LiveHttp."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urljoin

from forge.sources import Fetch, Fetched
from sandbox.exchange import Headers, WireRequest
from sandbox.livehttp import LiveHttp
from sandbox.policy import origin_of

MAX_REDIRECTS = 5


@asynccontextmanager
async def loopback_fetch(
    *urls: str, response_bytes: int = 32 * 1024 * 1024
) -> AsyncIterator[Fetch]:
    """A Fetch that may reach the origins of these URLs although they are on loopback."""
    granted = frozenset(filter(None, map(origin_of, urls)))
    async with LiveHttp(granted, response_bytes=response_bytes, connect_seconds=2.0) as live:

        async def fetch(url: str, headers: Headers) -> Fetched:
            for _ in range(MAX_REDIRECTS + 1):
                answer = await live.send(WireRequest("GET", url, headers))
                target = urljoin(url, answer.header("location") or "")
                inside = origin_of(target) == origin_of(url)
                if answer.status not in (301, 302, 303, 307, 308) or not inside or target == url:
                    break
                url = target
            return Fetched(answer.status, answer.headers, answer.body, url)

        yield fetch
