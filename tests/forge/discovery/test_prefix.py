"""An API behind a prefix that its description does not know, against real servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from forge.discovery.prefix import find_prefix, guess_prefix, is_below, may_be_own_server
from forge.readers.document import Document, parse_document
from tests.world.fetch import loopback_fetch
from tests.world.site import Answer, Page, Site, site

READ = {"get": {"responses": {"200": {"description": "ok"}}}}


def document(url: str, paths: dict[str, Any], **more: Any) -> Document:
    root = {"openapi": "3.1.0", "paths": paths, **more}
    return parse_document(json.dumps(root).encode(), "x", url=url)


@pytest.mark.parametrize(
    ("place", "paths", "more", "prefix"),
    [
        ("/shop/openapi.json", {"/pets": READ}, {}, "/shop"),
        ("/shop/v1/openapi.json", {"/pets": READ}, {"servers": [{"url": "/"}]}, "/shop/v1"),
        ("/shop/v3/api-docs", {"/pets": READ}, {}, "/shop"),
        ("/openapi.json", {"/pets": READ}, {}, ""),
        ("/docs/openapi.json", {"/pets": READ}, {}, ""),
        ("/swagger/v1/swagger.json", {"/pets": READ}, {}, ""),
        ("/api/schema/", {"/api/pets": READ}, {}, ""),
        ("/shop/openapi.json", {"/pets": READ}, {"servers": [{"url": "/v2"}]}, ""),
        ("/shop/openapi.json", {"/pets": READ}, {"servers": [{"url": "https://x.test"}]}, ""),
        ("/../x/%2e/openapi.json", {"/pets": READ}, {}, ""),
    ],
)
def test_a_prefix_may_be_meant_where_the_description_names_no_path(
    place: str, paths: dict[str, Any], more: dict[str, Any], prefix: str
) -> None:
    assert find_prefix(document(f"http://h.example{place}", paths, **more)) == prefix


@pytest.mark.parametrize(
    ("place", "paths", "more", "prefix"),
    [
        ("/openapi.json", {"/pets": READ}, {}, "/api"),
        ("/openapi.json", {"/api/pets": READ}, {}, ""),
        ("/openapi.json", {"/pets": READ}, {"servers": [{"url": "/"}]}, ""),
        ("/openapi.json", {"/pets": READ}, {"swagger": "2.0"}, ""),
        ("/shop/openapi.json", {"/pets": READ}, {}, ""),
    ],
)
def test_the_usual_prefix_is_guessed_where_a_description_at_the_root_names_no_server(
    place: str, paths: dict[str, Any], more: dict[str, Any], prefix: str
) -> None:
    assert guess_prefix(document(f"http://h.example{place}", paths, **more)) == prefix


def below(pages: dict[str, Answer], paths: dict[str, Any]) -> tuple[bool, Site]:
    async def run(url: str) -> bool:
        async with loopback_fetch(url) as fetch:
            return await is_below(document(f"{url}/shop/openapi.json", paths), "/shop", fetch)

    with site(pages) as here:
        return asyncio.run(run(here.url)), here


@pytest.mark.parametrize(
    ("pages", "answers_below"),
    [
        ({"/shop/pets": Page(b"[]")}, True),
        ({"/shop/pets": Page(b"", 401), "/pets": Page(b"<!doctype html><p>home")}, True),
        ({"/pets": Page(b"[]")}, False),
        ({"/shop/pets": Page(b"[]"), "/pets": Page(b"[]")}, False),
        ({}, False),
    ],
)
def test_what_answers_decides_where_an_api_is(
    pages: dict[str, Answer], answers_below: bool
) -> None:
    assert below(pages, {"/pets": READ})[0] == answers_below


def test_only_a_few_plain_reads_are_asked_and_none_that_may_do_something() -> None:
    names = ("/logout", "/pets/{id}", "/cache/clear", "/export", "/a", "/b", "/c", "/tokens")
    paths: dict[str, Any] = dict.fromkeys(names, READ)
    paths |= {"/w": {"post": READ["get"]}, "/q": {"get": {"parameters": [{"required": True}]}}}
    found, here = below({}, paths)
    assert not found
    assert here.paths == ["/shop/a", "/shop/b"]
    assert {asked.method for asked in here.asked} == {"GET"}


def own(pages: dict[str, Answer], **more: Any) -> tuple[bool, list[str]]:
    """Whether a served document's server may be the API's, and what it was asked."""

    async def run(url: str) -> bool:
        async with loopback_fetch(url) as fetch:
            made = document(f"{url}/openapi.json", {"/pets": READ}, **more)
            return await may_be_own_server(made, fetch)

    with site(pages) as here:
        return asyncio.run(run(here.url)), here.paths


@pytest.mark.parametrize(
    ("pages", "named", "mine"),
    [
        ({"/api/pets": Page(b"[]")}, "http://localhost:1/api", True),
        ({"/api/pets": Page(b"", 401)}, "http://127.0.0.1:1/api/", True),
        ({"/pets": Page(b"[]")}, "http://localhost:1/api", False),
        ({}, "http://localhost:1/api", False),
        ({"/pets": Page(b"<html><p>no API")}, "http://localhost:1", False),
    ],
)
def test_of_two_servers_on_one_machine_what_answers_decides_which_is_the_api(
    pages: dict[str, Answer], named: str, mine: bool
) -> None:
    assert own(pages, servers=[{"url": named}])[0] == mine


@pytest.mark.parametrize("named", ["/api", "https://pets.example", "/"])
def test_nothing_is_asked_where_no_server_is_in_doubt(named: str) -> None:
    assert own({}, servers=[{"url": named}]) == (True, [])
