"""The pages of one documentation: the one that was named, and those that it links to."""

from __future__ import annotations

import asyncio

from forge.prosedocs.page import Page, page_of
from forge.sources import Fetch
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.exchange import Headers
from sandbox.policy import origin_of

MAX_PAGES = 8
MAX_REQUESTS = 24
MAX_BYTES = 400_000
SECONDS = 30.0
ACCEPT = ("Accept", "text/html, text/markdown, text/plain;q=0.8, */*;q=0.1")


async def gather(
    first: tuple[Page, ...], fetch: Fetch, headers: Headers = (), *, seconds: float = SECONDS
) -> tuple[Page, ...]:
    """The pages with those of the same origin that they link to as documentation: at most
    MAX_PAGES, MAX_BYTES of text in all, fetched within `seconds`. What cannot be had is left out.
    """
    pages = list(first[:MAX_PAGES])
    waiting = [link for page in pages for link in page.links]
    seen = {page.location for page in pages}
    try:
        async with asyncio.timeout(seconds):
            while waiting and len(pages) < MAX_PAGES and len(seen) < MAX_REQUESTS:
                url = waiting.pop(0)
                if url in seen:
                    continue
                seen.add(url)
                page = await _fetched(url, fetch, headers)
                if page is not None and page.digest not in {known.digest for known in pages}:
                    pages.append(page)
                    waiting += page.links
    except TimeoutError:
        pass
    return within(tuple(pages))


def within(pages: tuple[Page, ...]) -> tuple[Page, ...]:
    """Those first ones whose texts are MAX_BYTES together."""
    kept: list[Page] = []
    room = MAX_BYTES
    for page in pages[:MAX_PAGES]:
        room -= len(page.text.encode())
        if room < 0 and kept:
            break
        kept.append(page)
    return tuple(kept)


async def _fetched(url: str, fetch: Fetch, headers: Headers) -> Page | None:
    try:
        answer = await fetch(url, (*headers, ACCEPT))
    except (UpstreamUnreachable, ResponseTooLarge):
        return None
    if not 200 <= answer.status < 300 or origin_of(answer.final_url) != origin_of(url):
        return None
    return await asyncio.to_thread(page_of, answer.final_url, answer.body)
