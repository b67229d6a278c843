"""The mock stage proves that a compiled server follows pages, and rejects one that does not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import CaseResult
from sandbox.stages.prove import prove_bundle
from tests.forge.samples import compiled
from tests.sandbox.local import LocalRunner

PATHS = """
/cursors/{id}:
  get:
    operationId: cursors
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
      - {name: cursor, in: query, schema: {type: string}}
    responses: {'200': {description: '', content: {application/json: {schema:
      {type: object, required: [data], properties: {next_cursor: {type: string},
       data: {type: array, maxItems: 3, items: {type: object, required: [n],
         properties: {n: {type: integer}}}}}}}}}}
/ids:
  get:
    operationId: ids
    parameters: [{name: starting_after, in: query, schema: {type: string}}]
    responses: {'200': {description: '', content: {application/json: {schema:
      {type: object, required: [has_more, data], properties: {has_more: {type: boolean},
       data: {type: array, maxItems: 3, items: {type: object, required: [id],
         properties: {id: {type: string}}}}}}}}}}
/offsets:
  get:
    operationId: offsets
    parameters: [{name: offset, in: query, schema: {type: integer}}]
    responses: {'200': {description: '', content: {application/json: {schema: {
      type: array, items: {type: string}}}}}}
/links:
  get:
    operationId: links
    responses: {'200': {description: '', headers: {Link: {schema: {type: string}}},
      content: {application/json: {schema: {type: array, items: {type: string}}}}}}
/urls:
  get:
    operationId: urls
    parameters: [{name: limit, in: query, schema: {type: integer}}]
    responses: {'200': {description: '', content: {application/json: {schema:
      {type: object, properties: {next: {type: string}, items: {type: array, minItems: 1,
       items: {type: number}}}}}}}}
"""
BUNDLE = compiled(PATHS).bundle
WALKS = [
    (name, cell)
    for name in ("cursors", "ids", "offsets", "links", "urls")
    for cell in ("pages", "pages:some")
]


def failures(bundle: Bundle) -> list[CaseResult]:
    static, mock, *_ = asyncio.run(prove_bundle(bundle, LocalRunner())).reports
    assert static.verdict == "passed", static.findings
    cells = {(cell.operation, cell.case): cell.verdict for cell in mock.cases}
    assert all(cells[walk] != "skipped" for walk in WALKS)
    return list(mock.list_failures())


def test_every_way_of_paging_is_proved() -> None:
    assert failures(BUNDLE) == []


@pytest.mark.parametrize(
    ("written", "instead", "operation"),
    [
        ('next="/next_cursor"', 'next="/cursor"', "cursors"),
        ('by_cursor("cursor"', 'by_cursor("page"', "cursors"),
        ('query={"cursor": cursor}', "query={}", ""),
        ('item="/id"', 'item="/key"', "ids"),
        ('by_id("starting_after"', 'by_id("ending_before"', "ids"),
        (', more="/has_more"', "", "ids"),
        ('by_offset("offset", items="")', 'by_offset("offset", items="", first=1)', "offsets"),
        ('by_link(items="")', 'by_link(items="/data")', "links"),
        ("max_items=max_items", "max_items=min(max_items, 100) if max_items else max_items", ""),
        ('        pages=by_url(next="/next", items="/items"),\n', "", "urls"),
    ],
)
def test_a_server_that_follows_pages_wrongly_is_rejected(
    written: str, instead: str, operation: str
) -> None:
    assert written in BUNDLE.source_code
    source = BUNDLE.source_code.replace(written, instead)
    failed = failures(replace(BUNDLE, source_code=source))
    if operation:
        assert {cell.operation for cell in failed} == {operation}
        assert {cell.case for cell in failed} <= {"pages", "pages:some"}
    assert failed


CONNECTION = """
type Query { things(first: Int, after: String, colour: String!): Things! }
type Things { nodes: [Thing!]! pageInfo: Info! }
type Thing { id: ID! }
type Info { hasNextPage: Boolean! endCursor: String }
"""
GRAPHQL = compile_document(
    parse_document(CONNECTION.encode(), "s.graphql"), base_url="https://a.example/graphql"
).bundle


def failed_walks(bundle: Bundle) -> set[str]:
    static, mock, *_ = asyncio.run(prove_bundle(bundle, LocalRunner())).reports
    assert static.verdict == "passed", static.findings
    cells = {cell.case: cell.verdict for cell in mock.cases}
    assert cells["pages"] != "skipped" != cells["pages:some"]
    return {cell.case for cell in mock.list_failures()}


def test_the_pages_of_a_connection_are_proved() -> None:
    assert failed_walks(GRAPHQL) == set()


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("/pageInfo/endCursor", "/pageInfo/startCursor"),
        ('by_cursor(\n            "after"', 'by_cursor(\n            "before"'),
        ('more="/data/things/pageInfo/hasNextPage"', 'more=""'),
        ("/data/things/nodes", "/data/things/edges"),
        ("max_items=max_items", "max_items=1"),
    ],
)
def test_a_server_that_follows_a_connection_wrongly_is_rejected(written: str, instead: str) -> None:
    assert written in GRAPHQL.source_code
    source = GRAPHQL.source_code.replace(written, instead)
    assert failed_walks(replace(GRAPHQL, source_code=source)) & {"pages", "pages:some"}
