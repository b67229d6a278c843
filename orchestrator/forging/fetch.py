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
from sandbox.redaction import Redaction

MAX_REDIRECTS = 4
FETCH_SECONDS = 20.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class GuardedFetch:
    """A `forge.sources.Fetch` over an upstream that checks addresses and caps sizes. What is sent
    as a credential is taken out of what comes back: a description becomes a bundle.
    """

    upstream: Upstream
    brake: Brake

    async def __call__(self, url: str, headers: Headers) -> Fetched:
        origin, hide = origin_of(url), _redaction(headers)
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
        clean = hide.response(answer)
        return Fetched(clean.status, clean.headers, clean.body, url)


def _redaction(headers: Headers) -> Redaction:
    """Removes the values of all headers but Accept, and what stands behind a scheme's name."""
    values = [value for name, value in headers if name.lower() != "accept"]
    return Redaction(part for value in values for part in (value, value.rpartition(" ")[2]))
