"""Fetching documents for the forge: the same guarded network as a sandbox's requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urljoin

from forge.sources import Fetched
from sandbox.brake import Brake
from sandbox.errors import UpstreamUnreachable
from sandbox.exchange import Headers, Upstream, WireRequest
from sandbox.policy import origin_of

MAX_REDIRECTS = 4
FETCH_SECONDS = 20.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class GuardedFetch:
    """A `forge.sources.Fetch` over an upstream that checks addresses and caps sizes."""

    upstream: Upstream
    brake: Brake

    async def __call__(self, url: str, headers: Headers) -> Fetched:
        origin = origin_of(url)
        for _ in range(MAX_REDIRECTS):
            self.brake.check()
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    answer = await self.upstream.send(WireRequest("GET", url, headers))
            except TimeoutError as error:
                raise UpstreamUnreachable(f"{origin} gave no whole answer in time") from error
            target = urljoin(url, answer.header("location") or "")
            if answer.status not in REDIRECTS or target == url or origin_of(target) != origin:
                break
            url = target
        return Fetched(answer.status, answer.headers, answer.body, url)
