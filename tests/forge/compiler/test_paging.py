"""Which way of paging a document shows, and that nothing else is taken for one."""

from __future__ import annotations

import pytest

from forge.compiler.paging import MAX_ITEMS, detect_paging
from sandbox.bundle.model import Paging
from tests.forge.samples import compiled, reading

ITEMS = "data: {type: array, maxItems: 50, items: {type: object}}"
KNOWN = "data: {type: array, items: {type: object, properties: {id: {type: string}}}}"
HREF = "{properties: {href: {type: string}}}"
TEXT = "{anyOf: [{type: string}, {type: 'null'}]}"
CURSOR = "{name: cursor, in: query, schema: {type: string}}"


def found(parameters: str, properties: str, headers: str = "{}", method: str = "get") -> object:
    schema = f"{{type: object, properties: {{{properties}}}}}"
    if properties.startswith("["):
        schema = "{type: array, items: {type: object}}"
    spec = reading(
        f"""
        /things:
          {method}:
            parameters: [{parameters}]
            responses:
              '200': {{description: '', headers: {headers},
                content: {{application/json: {{schema: {schema}}}}}}}
        """
    ).spec
    return detect_paging(spec, spec.operations[0])


def _nullable(name: str, kind: str) -> str:
    either = f"anyOf: [{{type: {kind}}}, {{type: 'null'}}]"
    return f"{{name: '{name}', in: query, schema: {{{either}}}}}"


def _integer(name: str, more: str = "") -> str:
    return f"{{name: {name}, in: query, schema: {{type: integer{more}}}}}"


@pytest.mark.parametrize(
    ("parameters", "properties", "meant"),
    [
        (
            CURSOR,
            f"{ITEMS}, next_cursor: {{type: string}}",
            Paging("cursor", "/data", "cursor", "/next_cursor"),
        ),
        (
            "{name: pageToken, in: query, schema: {type: string}}",
            "zones: {type: array}, nextPageToken: {type: string}",
            Paging("cursor", "/zones", "pageToken", "/nextPageToken"),
        ),
        (
            "{name: continue, in: query, schema: {type: string}}",
            "items: {type: array}, metadata: {properties: {continue: {type: string}}}",
            Paging("cursor", "/items", "continue", "/metadata/continue"),
        ),
        (
            "{name: 'page[cursor]', in: query, schema: {type: string}}",
            f"{ITEMS}, meta: {{properties: {{next_cursor: {{type: string}}}}}}",
            Paging("cursor", "/data", "page[cursor]", "/meta/next_cursor"),
        ),
        (
            "{name: 'page[after]', in: query, schema: {type: string}}, " + _integer("limit"),
            f"{ITEMS}, links: {{properties: {{next: {{type: string}}}}}}",
            Paging("url", "/data", next="/links/next"),
        ),
        (
            _integer("limit") + ", " + _integer("offset"),
            "count: {type: integer}, next: {type: string, format: uri}, results: {type: array}",
            Paging("url", "/results", next="/next"),
        ),
        (
            _integer("size"),
            f"{ITEMS}, _links: {{properties: {{next: {HREF}}}}}",
            Paging("url", "/data", next="/_links/next/href"),
        ),
        (
            "{name: starting_after, in: query, schema: {type: string}}",
            f"{KNOWN}, has_more: {{type: boolean}}, url: {{type: string}}",
            Paging("id", "/data", "starting_after", "/id", more="/has_more"),
        ),
        (
            "{name: after, in: query, schema: {type: string}}",
            f"{KNOWN}, meta: {{properties: {{hasMore: {{type: boolean}}}}}}",
            Paging("id", "/data", "after", "/id", more="/meta/hasMore"),
        ),
        (
            "{name: after_id, in: query, schema: {type: string}}",
            KNOWN,
            Paging("id", "/data", "after_id", "/id"),
        ),
        (
            _integer("limit") + ", " + _integer("offset"),
            ITEMS,
            Paging("offset", "/data", "offset"),
        ),
        (
            _integer("startIndex"),
            "Resources: {type: array}",
            Paging("offset", "/Resources", "startIndex", first=1),
        ),
        (_integer("page", ", default: 1"), ITEMS, Paging("page", "/data", "page", first=1)),
        (_integer("page", ", minimum: 0"), ITEMS, Paging("page", "/data", "page", first=0)),
        (_integer("'page[number]'"), "[", Paging("page", "", "page[number]", first=1)),
        (_integer("page"), "[", Paging("page", "", "page", first=1)),
        (
            _nullable("offset", "integer, minimum: 0") + ", " + _integer("limit"),
            "data: {anyOf: [{type: array, items: {type: object}}, {type: 'null'}]}",
            Paging("offset", "/data", "offset"),
        ),
        (
            _nullable("page[offset]", "integer"),
            f"{ITEMS}, links: {{anyOf: [{{properties: {{next: {TEXT}}}}}, {{type: 'null'}}]}}",
            Paging("url", "/data", next="/links/next"),
        ),
        (_nullable("page", "integer, minimum: 0"), ITEMS, Paging("page", "/data", "page", first=0)),
        (
            _integer("page"),
            "hits: {properties: {hits: {type: array}}}, other: {type: array}",
            Paging("page", "/hits/hits", "page", first=1),
        ),
    ],
)
def test_the_shapes_of_paging(parameters: str, properties: str, meant: Paging) -> None:
    assert found(parameters, properties) == meant


@pytest.mark.parametrize(
    ("parameters", "properties"),
    [
        (CURSOR, ITEMS),
        ("", f"{ITEMS}, next_cursor: {{type: string}}"),
        (_integer("start"), ITEMS),
        (_integer("page"), "a: {type: array}, b: {type: array}"),
        (_integer("page"), "name: {type: string}"),
        ("{name: page, in: query, schema: {type: string}}", ITEMS),
        ("{name: page, in: header, schema: {type: integer}}", ITEMS),
        (_integer("id"), ITEMS),
    ],
)
def test_what_shows_no_pages_has_none(parameters: str, properties: str) -> None:
    assert found(parameters, properties) is None


def test_a_documented_link_header_is_followed_before_numbers_are() -> None:
    headers = "{Link: {schema: {type: string}}}"
    assert found(_integer("page"), "[", headers) == Paging("link", "")


def test_only_what_reads_is_paged() -> None:
    assert found(_integer("page"), ITEMS, method="post") is None


def test_a_paged_tool_takes_max_items_and_its_list_may_be_longer_than_a_page() -> None:
    made = compiled(
        f"""
        /things:
          get:
            operationId: listThings
            parameters: [{_integer("page")}, {_integer("max_items")}]
            responses: {{'200': {{description: '', content: {{application/json: {{schema:
              {{type: object, properties: {{{ITEMS}}}}}}}}}}}}}
        """
    ).bundle
    tool = made.get_tool("list_things")
    assert tool.paging == Paging("page", "/data", "page", first=1)
    assert tool.input_schema["properties"]["max_items"]["x-in"] == "query:max_items"
    pager = tool.input_schema["properties"]["max_items_2"]
    assert (pager["x-in"], pager["maximum"]) == ("pages", MAX_ITEMS)
    assert "required" not in tool.input_schema
    assert "maxItems" not in tool.output_schema["properties"]["body"]["properties"]["data"]
    assert 'pages=by_page("page", items="/data")' in made.source_code
    assert "max_items=max_items_2" in made.source_code
