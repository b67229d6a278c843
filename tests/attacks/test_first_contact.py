"""A hostile origin at first contact: what it names leads to no request but the search's own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from forge.discovery.prefix import find_prefix, is_below
from forge.discovery.search import MAX_REQUESTS, FoundDocument, NotFound, discover_description
from forge.readers.document import parse_document
from forge.sources import ApiSource
from orchestrator.forging.fetch import GuardedFetch
from sandbox.broker.live import LiveHttp
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Upstream, WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.world.site import Answer, Page, Site, site

SPEC = b'{"openapi": "3.1.0", "info": {"title": "t"}, "paths": {"/a": {"get": {}}}}'
GRAPHQL = b'{"errors": [{"message": "Must provide query string."}]}'


def discover(here: Site, *granted: Site, at: str = "/") -> Any:
    """What a search at a site comes to, where the others could be reached as well."""

    async def run() -> Any:
        origins = frozenset(filter(None, (parse_origin(each.url) for each in (here, *granted))))
        async with LiveHttp(origins, connect_seconds=60.0) as live:
            fetch = GuardedFetch(live, KillSwitch())
            source = ApiSource(here.url + at, (("X-API-Key", "k3y"),))
            return await discover_description(source, fetch, seconds=60.0)

    return asyncio.run(run())


@dataclass
class Arriving:
    """An upstream that says when the answer of another has arrived."""

    inner: Upstream
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, request: WireRequest) -> WireResponse:
        answer = await self.inner.send(request)
        self.arrived.set()
        return answer


LURES = {
    "a page's base": "<base href='{other}/'><redoc spec-url='spec.json'></redoc>",
    "a script's configuration": "<script>X({{configUrl: '{other}/swagger-config'}})</script>",
    "a definition of several": "<script>urls: [{{url: '{other}/a', name: 'API'}}]</script>",
    "a data source": "<div data-source='{other}/spec.json'></div>",
    "a link to documentation": "<a href='{other}/redoc'>our API</a>",
}


@pytest.mark.parametrize("lure", LURES)
def test_what_a_page_names_elsewhere_is_told_and_not_asked(lure: str) -> None:
    with site({"/spec.json": Page(SPEC), "/a": Page(SPEC)}) as other, site() as here:
        page = LURES[lure].format(other=other.url)
        here.pages["/"] = Page(f"<html>{page}</html>".encode())
        found = discover(here, other)
        assert isinstance(found, NotFound)
        assert found.elsewhere
        assert other.asked == []
    assert len(here.asked) <= MAX_REQUESTS


@pytest.mark.parametrize("lure", LURES)
def test_what_a_page_names_at_its_own_host_is_read(lure: str) -> None:
    with site() as here:
        page = LURES[lure].format(other=here.url)
        redoc = Page(b"<html><redoc spec-url='/spec.json'></redoc></html>")
        config = Page(b'{"url": "/spec.json"}')
        here.pages |= {"/": Page(f"<html>{page}</html>".encode()), "/spec.json": Page(SPEC)}
        here.pages |= {"/a": Page(SPEC), "/redoc": redoc, "/swagger-config": config}
        assert isinstance(discover(here), FoundDocument)


@pytest.mark.parametrize("target", ["http://[", "//[::1"])
def test_a_redirect_to_what_is_no_url_leads_nowhere_and_ends_no_search(target: str) -> None:
    with site({"/openapi.json": Page(SPEC)}) as here:
        here.pages["/"] = Page(b"", 302, (("Location", target),))
        assert isinstance(discover(here), FoundDocument)


def test_a_query_is_posted_to_the_named_endpoint_and_never_where_it_redirects() -> None:
    with site() as here:
        moved = Page(b"", 307, (("Location", "/orders"),))
        lure = Page(b"<html>GraphiQL <script>X({url: '/orders'})</script></html>")
        pages: dict[str, Answer] = {"/api/graphql": moved, "/orders": Page(GRAPHQL, 400)}
        here.pages |= {**pages, "/": lure, "/graphql": moved}
        discover(here, at="/api/graphql")
        posted = [asked.path for asked in here.asked if asked.method == "POST"]
    assert set(posted) <= {"/api/graphql", "/graphql"}


def test_a_named_endpoint_that_says_it_wants_a_query_gets_one() -> None:
    with site({"/ask": Page(GRAPHQL, 400)}) as here:
        discover(here, at="/ask")
        posted = [asked.path for asked in here.asked if asked.method == "POST"]
    assert posted[0] == "/ask"
    assert set(posted) <= {"/ask", "/graphql"}


def test_nothing_waits_until_a_large_description_is_searched_for_what_was_sent() -> None:
    text = "a\u200b" * 2_000_000
    with site({"/openapi.json": Page(text.encode())}) as here:

        async def run() -> int:
            origin = parse_origin(here.url)
            assert origin is not None
            async with LiveHttp(frozenset({origin}), response_bytes=len(text) * 4) as live:
                upstream, turns = Arriving(live), 0
                fetching = asyncio.create_task(
                    GuardedFetch(upstream, KillSwitch())(
                        f"{here.url}/openapi.json", (("X-API-Key", "k3y-of-the-api"),)
                    )
                )
                await upstream.arrived.wait()
                while not fetching.done():
                    turns += 1
                    await asyncio.sleep(0)
                assert (await fetching).body == text.encode()
                return turns

        assert asyncio.run(run()) > 100


def test_a_small_description_comes_without_what_was_sent() -> None:
    with site({"/openapi.json": Page(b"your key is k3y-of-the-api")}) as here:

        async def run() -> bytes:
            origin = parse_origin(here.url)
            assert origin is not None
            async with LiveHttp(frozenset({origin})) as live:
                headers = (("X-API-Key", "k3y-of-the-api"),)
                fetch = GuardedFetch(live, KillSwitch())
                return (await fetch(f"{here.url}/openapi.json", headers)).body

        assert asyncio.run(run()) == b"your key is [redacted]"


HOSTILE_PATHS = {
    "another authority": "//{other}/a",
    "a backslash": "/\\{other}/a",
    "user info": "@{other}/a",
    "a parent directory": "/../a",
    "an escape": "/%2e%2e/a",
    "a query": "/a?run=1",
    "an act by name": "/users/delete-all",
    "a log-out": "/logout",
}


def probe(path: str, pages: dict[str, Answer]) -> tuple[list[str], list[str]]:
    """The paths that were asked of the description's host and of another one."""
    with site() as other, site(pages) as here:
        written = path.format(other=other.url.removeprefix("http://"))
        root = {"openapi": "3.1.0", "paths": {written: {"get": {}}}}
        document = parse_document(
            json.dumps(root).encode(), "x", url=f"{here.url}/shop/openapi.json"
        )

        async def run() -> None:
            origins = frozenset(filter(None, map(parse_origin, (here.url, other.url))))
            async with LiveHttp(origins, connect_seconds=60.0) as live:
                prefix = find_prefix(document)
                await is_below(document, prefix, GuardedFetch(live, KillSwitch()))

        asyncio.run(run())
        return here.paths, other.paths


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_no_path_of_a_description_leads_a_probe_astray(path: str) -> None:
    assert probe(HOSTILE_PATHS[path], {}) == ([], [])


def test_a_plain_read_is_probed() -> None:
    assert probe("/pets", {"/shop/pets": Page(b"[]")}) == (["/shop/pets", "/pets"], [])
