from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.tasks.planning.pages import describe_count, describe_page, describe_unapplied
from sandbox.bundle.model import Paging, ToolDefinition

WHOLE = {"type": "integer"}


def tool(**properties: Any) -> ToolDefinition:
    takes = {"type": "object", "properties": properties}
    return ToolDefinition("list_boats", "GET /boats.", takes, {}, "read")


SIZED = tool(limit={"type": "integer", "default": 3}, kind={"type": "string"})
FOLLOWED = tool(limit=SIZED.input_schema["properties"]["limit"], most={"x-in": "pages", **WHOLE})
UNSIZED = tool(page=WHOLE)


@pytest.mark.parametrize(
    ("takes", "arguments", "answer", "told"),
    [
        (SIZED, {}, [1, 2, 3], "There may be more than these 3."),
        (SIZED, {"kind": "sail"}, {"boats": [1, 2, 3]}, "There may be more than these 3."),
        (FOLLOWED, {}, [1, 2, 3], "There may be more than these 3; `most` follows the pages."),
        (UNSIZED, {}, [*range(10)], "There may be more than these 10."),
        (SIZED, {}, [1, 2], ""),
        (SIZED, {"limit": 3}, [1, 2, 3], ""),
        (FOLLOWED, {"most": 3}, [1, 2, 3], ""),
        (UNSIZED, {}, [*range(9)], ""),
        (SIZED, {}, {"a": [1, 2, 3], "b": []}, ""),
        (SIZED, {}, "text", ""),
        (tool(kind={"type": "string"}), {}, [*range(50)], ""),
    ],
)
def test_a_full_page_of_a_list_may_have_more_behind_it(
    takes: ToolDefinition, arguments: dict[str, Any], answer: Any, told: str
) -> None:
    assert describe_page(takes, arguments, answer) == told


CURSOR = replace(
    tool(after={"type": "string"}), paging=Paging("cursor", "/boats", "after", "/next")
)
SHIPS = replace(
    tool(first=WHOLE, after={"type": "string"}, most={"x-in": "pages", **WHOLE}),
    paging=Paging(
        "cursor",
        "/data/boats/nodes",
        "after",
        "/data/boats/pageInfo/endCursor",
        more="/data/boats/pageInfo/hasNextPage",
    ),
)


def connection(count: int, more: Any, **beside: Any) -> Any:
    info = {"hasNextPage": more, "endCursor": "c"}
    return {"data": {"boats": {"nodes": [*range(count)], "pageInfo": info, **beside}}}


@pytest.mark.parametrize(
    ("takes", "answer", "told"),
    [
        (CURSOR, {"boats": [1, 2], "next": "b"}, "There are more than these 2."),
        (CURSOR, {"boats": [*range(50)], "next": None}, ""),
        (CURSOR, {"boats": [*range(50)]}, ""),
        (SHIPS, connection(2, True), "There are more than these 2; `most` follows the pages."),
        (SHIPS, connection(50, False), ""),
        (SHIPS, connection(50, None), "There may be more than these 50; `most` follows the pages."),
    ],
)
def test_an_answer_that_says_whether_its_list_goes_on_is_believed(
    takes: ToolDefinition, answer: Any, told: str
) -> None:
    assert describe_page(takes, {}, answer) == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (connection(50, False), "There are 50."),
        (connection(2, True), ""),
        (connection(2, True, totalCount=70), "There are 70 (`totalCount`)."),
    ],
)
def test_how_many_a_graphql_list_has_is_told(answer: Any, told: str) -> None:
    assert describe_count(SHIPS, {}, answer) == told


NAMED = {"type": "object", "properties": {"id": WHOLE, "isSail": {"type": "boolean"}}}


@pytest.mark.parametrize(
    "value",
    [
        {"type": "array", "items": NAMED},
        {"type": "object", "properties": {"nodes": {"type": "array", "items": NAMED},
                                          "pageInfo": {"type": "object"}}},
        {"type": "object", "properties": {
            "edges": {"type": "array", "items": {"properties": {"node": NAMED}}},
            "pageInfo": {"type": "object"}}},
    ],
)  # fmt: skip
def test_words_that_narrow_nothing_are_told_of_graphql_rows(value: dict[str, Any]) -> None:
    data = {"type": ["object", "null"], "properties": {"boats": value}}
    body = {"type": "object", "properties": {"data": data}}
    gives = {"type": "object", "properties": {"body": body}}
    takes = replace(tool(), output_schema=gives)
    told = "It is not narrowed by 'sail', for which it has no argument."
    assert describe_unapplied("list the sail boats", takes, {}) == told


@pytest.mark.parametrize(
    ("takes", "arguments", "answer", "told"),
    [
        (SIZED, {}, [1, 2], "There are 2."),
        (SIZED, {}, {"boats": [1]}, "There is 1."),
        (SIZED, {}, [1, 2, 3], ""),
        (SIZED, {"limit": 2}, [1, 2], ""),
        (SIZED, {}, {"boats": [1, 2, 3], "total_count": 40}, "There are 40 (`total_count`)."),
        (SIZED, {}, {"boats": [1, 2, 3], "total_pages": 4}, ""),
        (SIZED, {}, {"total": 40}, ""),
        (tool(), {}, [], "There are 0."),
    ],
)
def test_how_many_there_are_is_told_as_far_as_the_answer_says(
    takes: ToolDefinition, arguments: dict[str, Any], answer: Any, told: str
) -> None:
    assert describe_count(takes, arguments, answer) == told


ROW = {"type": "object", "properties": {
    "in_stock": {"type": ["boolean", "null"]},
    "state": {"anyOf": [{"type": "string", "enum": ["open", "in_progress"]}, {"type": "null"}]},
}}  # fmt: skip


def listing(body: Any, name: str = "list_boats") -> ToolDefinition:
    built = {"allOf": [{"$ref": "#/$defs/Row"}, {"properties": {"id": {"type": "integer"}}}]}
    defined = {"Row": ROW, "Built": built}
    answers = {"type": "object", "properties": {"body": body}, "$defs": defined}
    return ToolDefinition(name, "GET /boats.", {}, answers, "read")


ROWS = {"type": ["array", "null"], "items": {"$ref": "#/$defs/Row"}}
BUILT = {"type": "array", "items": {"$ref": "#/$defs/Built"}}


@pytest.mark.parametrize(
    ("task", "takes", "evidence", "told"),
    [
        ("list the boats in stock", listing(ROWS), {}, "'in stock'"),
        ("list open boats", listing({"type": "object", "properties": {"b": ROWS}}), {}, "'open'"),
        ("list boats in progress", listing(ROWS), {}, "'in progress'"),
        ("list open boats", listing(BUILT), {}, "'open'"),
        ("list open boats", listing(ROWS), {"state": "open"}, ""),
        ("list open boats", listing(ROWS, "list_open_boats"), {}, ""),
        ("list the boats", listing(ROWS), {}, ""),
        ("open boat 3", listing(ROW), {}, ""),
    ],
)
def test_a_state_of_the_rows_that_no_argument_took_is_told(
    task: str, takes: ToolDefinition, evidence: dict[str, str], told: str
) -> None:
    assert describe_unapplied(task, takes, evidence) == (
        f"It is not narrowed by {told}, for which it has no argument." if told else ""
    )


LENT = {"type": "array", "items": {"type": "object", "properties": {
    "id": {"type": "integer"}, "returned_on": {"type": "string"}, "due_date": {"type": "string"},
}}}  # fmt: skip


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("list the returned boats", "'returned'"),
        ("list the boats that were returned", "'returned'"),
        ("list the boats that are due", "'due'"),
        ("list the boats with their due date", ""),
        ("list the boats returned since 1 March", ""),
    ],
)
def test_what_a_day_of_the_rows_tells_of_them_is_told_where_no_argument_took_it(
    task: str, told: str
) -> None:
    assert describe_unapplied(task, listing(LENT), {}) == (
        f"It is not narrowed by {told}, for which it has no argument." if told else ""
    )
