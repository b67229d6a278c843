"""Fetching documents for the forge, over the same guarded network as a sandbox's requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from forge.sources import FetchResponse
from sandbox.errors import UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Headers, Upstream, WireRequest
from sandbox.wire.policy import join_url, parse_origin
from sandbox.wire.redaction import Redaction

MAX_REDIRECTS = 4
FETCH_SECONDS = 20.0
_PLAIN = frozenset({"accept", "content-type", "if-none-match", "if-modified-since"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class GuardedFetch:
    """A `forge.sources.Fetcher` over an upstream that checks addresses and caps sizes. What is sent
    as a credential is taken out of what comes back: a description becomes a bundle.
    """

    upstream: Upstream
    kill_switch: KillSwitch

    async def __call__(self, url: str, headers: Headers, body: bytes = b"") -> FetchResponse:
        origin, hide = parse_origin(url), _build_redaction(headers)
        method = "POST" if body else "GET"
        for _ in range(1 if body else MAX_REDIRECTS):
            self.kill_switch.raise_if_engaged()
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    answer = await self.upstream.send(WireRequest(method, url, headers, body))
            except TimeoutError as error:
                raise UpstreamUnreachable(f"{origin} gave no whole answer in time") from error
            target = join_url(url, answer.get_header("location") or "")
            if body or answer.status not in REDIRECTS or target == url:
                break
            if parse_origin(target) != origin:
                break
            url = target
        clean = await asyncio.to_thread(hide.redact_response, answer)
        return FetchResponse(clean.status, clean.headers, clean.body, url)


def _build_redaction(headers: Headers) -> Redaction:
    """Removes the values of all headers that may hold a credential, and what stands behind a
    scheme's name.
    """
    values = [value for name, value in headers if name.lower() not in _PLAIN]
    return Redaction(part for value in values for part in (value, value.rpartition(" ")[2]))
