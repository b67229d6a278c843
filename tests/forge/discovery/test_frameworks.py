"""First contact with what frameworks serve: their own pages, as they were recorded word by word.

A recording in `tests/fixtures/first_contact` is named after the tool and its version.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from forge.compiler.compile import compile_document
from forge.discovery.search import FoundDocument, discover_description
from forge.readers.document import parse_document
from forge.sources import ApiSource
from tests.world.fetch import loopback_fetch
from tests.world.site import Page, Site, site

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "first_contact"
DOCUMENT = b'{"openapi": "3.1.0", "info": {"title": "%s"}, "paths": {"/a": {"get": {}}}}'


def serve(recording: str) -> dict[str, Page]:
    recorded = json.loads((RECORDINGS / f"{recording}.json").read_text())
    pages = {
        path: Page(body.encode(), headers=(("Content-Type", media),))
        for path, (media, body) in recorded.items()
    }
    return pages


def look(here: Site, at: str, task: str = "") -> FoundDocument:
    async def run() -> FoundDocument:
        async with loopback_fetch(here.url) as fetch:
            found = await discover_description(
                ApiSource(here.url + at), fetch, task=task, seconds=60.0
            )
            assert isinstance(found, FoundDocument), found
            return found

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("recording", "at", "found", "name", "base", "requests"),
    [
        ("fastapi-0.165.0", "", "/openapi.json", "pets", "", 5),
        ("fastapi-0.165.0", "/docs", "/openapi.json", "pets", "", 2),
        ("fastapi-0.165.0", "/redoc", "/openapi.json", "pets", "", 2),
        ("flask-restx-1.3.2", "", "/swagger.json", "pets", "", 2),
        ("flask-smorest-0.47.0", "/doc/ui", "/doc/openapi.json", "pets", "", 2),
        ("flask-smorest-0.47.0", "/doc/redoc", "/doc/openapi.json", "pets", "", 2),
        ("flask-smorest-0.47.0", "/doc/rapidoc", "/doc/openapi.json", "pets", "", 2),
        ("flasgger-0.9.7.1", "/apidocs/", "/apispec_1.json", "pets", "", 2),
        ("flasgger-0.9.7.1", "", "/apispec_1.json", "pets", "", 29),
        ("drf-spectacular-0.30.0", "", "/api/schema/", "pets", "", 13),
        ("drf-spectacular-0.30.0", "/api/docs/", "/api/schema/", "pets", "", 2),
        ("drf-spectacular-0.30.0", "/api/redoc/", "/api/schema/", "pets", "", 2),
        ("django-ninja-1.7.1", "", "/api/openapi.json", "pets", "", 9),
        ("django-ninja-1.7.1", "/api/docs", "/api/openapi.json", "pets", "", 2),
        ("litestar-2.25.0", "/schema", "/schema", "pets", "", 1),
        ("litestar-2.25.0", "", "/schema/openapi.json", "pets", "", 17),
        ("scalar-fastapi-1.9.1", "/scalar", "/hidden/openapi.json", "pets", "", 2),
        (
            "swagger-ui-express-5.0.1",
            "/api-docs/",
            "/api-docs/swagger-ui-init.js",
            "express_pets",
            "/api",
            2,
        ),
        ("fastify-swagger-ui-6.1.3", "", "/documentation/json", "pets", "", 21),
    ],
)
def test_a_frameworks_own_pages_lead_to_its_description(
    recording: str, at: str, found: str, name: str, base: str, requests: int
) -> None:
    with site(serve(recording)) as here:
        result = look(here, at)
    assert result.location == here.url + found
    assert len(here.asked) <= requests
    document = parse_document(result.content, result.location, url=result.location)
    bundle = compile_document(document).bundle
    assert bundle.name == name
    assert bundle.base_url == here.url + base


@pytest.mark.parametrize(
    ("task", "chosen", "other"),
    [("", "pets", "orders"), ("place an order", "orders", "pets"), ("list pets", "pets", "orders")],
)
def test_of_several_definitions_the_one_that_the_task_names_is_read_and_the_others_told(
    task: str, chosen: str, other: str
) -> None:
    pages = serve("swagger-ui-express-5.0.1-urls")
    pages |= {f"/defs/{each}.json": Page(DOCUMENT % each.encode()) for each in ("orders", "pets")}
    with site(pages) as here:
        result = look(here, "/help/", task)
    assert result.location == f"{here.url}/defs/{chosen}.json"
    assert result.also == (f"{here.url}/defs/{other}.json",)


def test_what_a_configuration_names_is_relative_to_the_page_that_loads_it() -> None:
    with site() as here:
        here.pages |= {
            "/app/": Page(b"<html><script src='static/swagger-initializer.js'></script></html>"),
            "/app/static/swagger-initializer.js": Page(b"X({url: 'v1/spec.json'})"),
            "/app/v1/spec.json": Page(DOCUMENT % b"Pets"),
        }
        assert look(here, "/app/").location == f"{here.url}/app/v1/spec.json"


def test_a_pages_base_counts_for_what_it_names() -> None:
    with site() as here:
        page = b"<html><base href='/shop/'><redoc spec-url='spec.json'></redoc></html>"
        here.pages |= {"/help": Page(page), "/shop/spec.json": Page(DOCUMENT % b"Pets")}
        assert look(here, "/help").location == f"{here.url}/shop/spec.json"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><script>Redoc.init('/hidden/spec', {}, document.body)</script></html>",
        b"<html><script>X({url: window.location.origin + '/hidden/spec'})</script></html>",
        b"<html><div data-configuration='{&quot;url&quot;:&quot;/hidden/spec&quot;}'></div></html>",
        b'<html><div id="swagger-ui" data-source="/hidden/spec"></div></html>',
        b"<html><p>See <a href='/manual/redoc'>our API</a>.</p></html>",
        b"<html><p>See <a href='/$api-docs/odata/shop'>Open API</a>.</p></html>",
    ],
)
def test_other_ways_in_which_pages_name_a_description(page: bytes) -> None:
    with site() as here:
        here.pages |= {
            "/manual": Page(page),
            "/manual/redoc": Page(b"<html><redoc spec-url='/hidden/spec'></redoc></html>"),
            "/$api-docs/odata/shop": Page(b"<html><script>url: '/hidden/spec'</script></html>"),
            "/hidden/spec": Page(DOCUMENT % b"Pets"),
        }
        assert look(here, "/manual").location == f"{here.url}/hidden/spec"


def test_a_page_made_to_be_slow_to_search_holds_no_description() -> None:
    for part in (b'{"openapi": "3.0.0",', b'{"a":' * 50, b'"openapi": "3.0'):
        with site(
            {"/": Page(b"<html>" + part * 20_000), "/swagger.json": Page(DOCUMENT % b"P")}
        ) as here:
            assert look(here, "").location == f"{here.url}/swagger.json"
