"""Documentation of several pages is gathered from its own origin, within bounds."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.discovery.search import NotFound, discover_description
from forge.documentation.gather import MAX_PAGES, gather_pages
from forge.documentation.sections import split_pages
from forge.errors import NoUsableOperation
from forge.readers.page import Page, parse_page
from forge.sources import ApiSource
from tests.forge.documentation.readings import operation, read, requests, text_page
from tests.world.fetch import loopback_fetch
from tests.world.site import Page as Served
from tests.world.site import site


def html(body: str) -> bytes:
    return f"<!DOCTYPE html><html><body>{body}</body></html>".encode()


def gathered(pages: dict[str, bytes], at: str = "/docs/") -> tuple[list[str], list[str]]:
    """The paths of the pages, and those that were asked for."""

    async def run(url: str) -> tuple[Page, ...]:
        async with loopback_fetch(url) as fetch:
            first = parse_page(f"{url}{at}", pages[at])
            assert first is not None
            return await gather_pages((first,), fetch)

    with site({path: Served(content) for path, content in pages.items()}) as here:
        found = asyncio.run(run(here.url))
        return [page.location.removeprefix(here.url) for page in found], [
            asked.path for asked in here.asked
        ]


def test_pages_linked_as_documentation_are_read_and_others_are_not() -> None:
    links = (
        '<a href="errors.html">Errors</a><a href="/docs/logo.png">api logo</a>'
        '<a href="/about">About us</a><a href="http://elsewhere.example/docs/api">API</a>'
        '<a href="/docs/">API docs</a><a href="javascript:api()">api</a>'
    )
    pages = {
        "/docs/": html(f"<p>GET /a lists.</p>{links}"),
        "/docs/errors.html": html("<p>404 is not found.</p>"),
        "/about": html("<p>GET /b is not read.</p>"),
    }
    found, asked = gathered(pages)
    assert found == ["/docs/", "/docs/errors.html"]
    assert asked == ["/docs/errors.html"]


def test_no_more_than_eight_pages_are_gathered_and_none_twice() -> None:
    links = "".join(f'<a href="/docs/api{n}">x</a>' for n in range(40))
    pages = {f"/docs/api{n}": html(f"<p>GET /n{n} lists.</p>{links}") for n in range(40)}
    found, asked = gathered(pages, "/docs/api0")
    assert len(found) == MAX_PAGES
    assert len(set(asked)) == len(asked) == MAX_PAGES - 1


def test_the_texts_together_are_bounded() -> None:
    links = "".join(f'<a href="/docs/api{n}">x</a>' for n in range(5))
    filler = f"<pre>{'words of it ' * 15}\n</pre>" * 1000
    pages = {f"/docs/api{n}": html(f"{links}<p>GET /n{n}.</p>{filler}") for n in range(5)}
    found, _ = gathered(pages, "/docs/api0")
    assert 1 <= len(found) < 5


def test_short_pages_share_a_part_and_each_long_section_has_its_own_place() -> None:
    short = [text_page(f"GET /a{n} lists.", f"https://docs.example/api{n}") for n in range(4)]
    (part,), count = split_pages(short)
    assert (part.location, count) == ("https://docs.example/api0", 1)
    long = [
        text_page(f"GET /a{n} lists. " + "word\n" * 2500, f"https://d.example/{n}") for n in "ab"
    ]
    assert [part.location for part in split_pages(long)[0]] == [
        "https://d.example/a",
        "https://d.example/b",
    ]


def look(pages: dict[str, Served], at: str) -> object:
    async def run(url: str) -> object:
        async with loopback_fetch(url) as fetch:
            return await discover_description(ApiSource(f"{url}{at}"), fetch, seconds=60)

    with site(pages) as here:
        return asyncio.run(run(here.url))


@pytest.mark.parametrize("path", ["/guide.md", "/guide.html"])
def test_discovery_ends_with_the_documentation_that_was_named(path: str) -> None:
    content = html("<p>GET /a lists.</p>") if "html" in path else b"# A\n\nGET /a lists.\n"
    locked = {"/openapi.json": Served(b"no", status=401)}
    found = look({path: Served(content), **locked}, path)
    assert isinstance(found, NotFound)
    assert [page.documents_requests for page in found.documentation] == [True]


def test_a_description_wins_over_documentation() -> None:
    spec = b'{"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}'
    found = look({"/g": Served(html("<p>GET /a lists.</p>")), "/openapi.json": Served(spec)}, "/g")
    assert not isinstance(found, NotFound)


TEXT = (
    "# API\n\nGET /things lists things. POST /things makes one.\n\nDELETE /things/{id} ends it.\n"
)
BORNE_OUT = {"GET /things", "POST /things", "DELETE /things/{id}"}


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "get", ""]),
    path=st.one_of(
        st.sampled_from(["/things", "/things/{id}", "/thing", "/", "/things/", "/id", "things"]),
        st.text(max_size=12),
    ),
    quote=st.one_of(
        st.sampled_from([TEXT, "GET /things lists", "/things/{id}"]), st.text(max_size=20)
    ),
)
def test_whatever_a_model_says_only_what_stands_there_is_an_operation(
    method: str, path: str, quote: str
) -> None:
    try:
        made = read(text_page(TEXT), {"operations": [operation(method, path, quote)]})
    except NoUsableOperation:
        return
    assert requests(made) <= BORNE_OUT
