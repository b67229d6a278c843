"""Collection of the pages of one documentation: the named ones, and those that they link to."""

from __future__ import annotations

import asyncio

from forge.readers.page import Page, parse_page
from forge.sources import Fetcher
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.wire.exchange import Headers
from sandbox.wire.policy import parse_origin

MAX_PAGES = 8
MAX_REQUESTS = 24
MAX_BYTES = 400_000
SECONDS = 30.0
# Text for people first, of which Markdown needs no conversion.
ACCEPT = ("Accept", "text/html, text/markdown, text/plain;q=0.8, */*;q=0.1")


async def gather_pages(
    first: tuple[Page, ...], fetch: Fetcher, headers: Headers = (), *, seconds: float = SECONDS
) -> tuple[Page, ...]:
    """Return the pages with those of the same origin that they link to as documentation: at most
    MAX_PAGES, and MAX_BYTES of text in all, fetched within `seconds`. Pages that cannot be fetched
    are skipped.
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
                page = await _fetch_page(url, fetch, headers)
                if page is not None and page.digest not in {known.digest for known in pages}:
                    pages.append(page)
                    waiting += page.links
    except TimeoutError:
        pass
    return limit_pages(tuple(pages))


def limit_pages(pages: tuple[Page, ...]) -> tuple[Page, ...]:
    """Return the first pages whose texts together stay within MAX_BYTES, at least one."""
    kept: list[Page] = []
    room = MAX_BYTES
    for page in pages[:MAX_PAGES]:
        room -= len(page.text.encode())
        if room < 0 and kept:
            break
        kept.append(page)
    return tuple(kept)


async def _fetch_page(url: str, fetch: Fetcher, headers: Headers) -> Page | None:
    try:
        answer = await fetch(url, (*headers, ACCEPT))
    except (UpstreamUnreachable, ResponseTooLarge):
        return None
    if not 200 <= answer.status < 300 or parse_origin(answer.final_url) != parse_origin(url):
        return None
    return await asyncio.to_thread(parse_page, answer.final_url, answer.body)
