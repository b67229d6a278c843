"""Superlatives are read where one field can be meant, and told where the whole list is there."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.planning.ranking import describe_ranking, find_ranking
from orchestrator.tasks.run.task_words import read_words
from sandbox.bundle.model import ToolDefinition

NUMBER = {"type": "number"}
TEXT = {"type": "string"}
MOMENT = {"type": "string", "format": "date-time"}
BOAT = {"id": {"type": "integer"}, "name": TEXT, "price": NUMBER, "length_m": NUMBER,
        "built": {"type": "string", "format": "date"}}  # fmt: skip
ORDER = {"id": {"type": "integer"}, "total": NUMBER, "created_at": MOMENT, "due_at": MOMENT}
PAGES = {"x-in": "pages", "type": "integer"}


def listing(name: str, row: dict[str, Any], **takes: Any) -> ToolDefinition:
    rows = {"type": "array", "items": {"type": "object", "properties": row}}
    gives = {"type": "object", "properties": {"body": rows}}
    schema = {"type": "object", "properties": takes}
    return ToolDefinition(name, f"GET /{name}.", schema, gives, "read")


BOATS = listing("list_boats", BOAT)
COLOURED = listing("list_boats", BOAT, colour=TEXT)
ORDERS = listing("list_orders", ORDER, limit={"type": "integer", "default": 3}, max_items=PAGES)
UNFOLLOWED = listing("list_orders", ORDER, limit={"type": "integer"}, offset={"type": "integer"})
SORTED = listing("list_boats", BOAT, sort={"type": "string", "enum": ["newest", "oldest"]})
FLEET = [
    {"id": 1, "name": "Ada", "price": 1200, "length_m": 4, "built": "1990-01-03"},
    {"id": 2, "name": "Bea", "price": 80.5, "length_m": 9, "built": "2004-05-03"},
    {"id": 3, "name": "Cora", "price": 900, "length_m": 5, "built": "1997-02-03"},
    {"id": 4, "name": "Dora", "price": 900, "length_m": 5, "built": "1999-02-03"},
]


@pytest.mark.parametrize(
    ("task", "takes", "field", "is_highest", "count", "words"),
    [
        ("list the cheapest boats", BOATS, "price", False, None, "list boats"),
        ("show the cheapest boat", BOATS, "price", False, 1, "show boat"),
        ("list the 3 most expensive boats", BOATS, "price", True, 3, "list boats"),
        ("the three newest boats", BOATS, "built", True, 3, "boats"),
        ("list boats, cheapest first", BOATS, "price", False, None, "list boats"),
        ("which boat is the cheapest?", BOATS, "price", False, 1, "which boat ?"),
        ("the longest boat", BOATS, "length_m", True, 1, "boat"),
        ("the newest orders", ORDERS, "created_at", True, None, "orders"),
        ("the biggest order of customer 2", ORDERS, "total", True, 1, "order of customer 2"),
        ("the latest 2 orders", ORDERS, "created_at", True, 2, "orders"),
    ],
)
def test_a_superlative_is_read_by_the_one_field_that_it_can_mean(
    task: str, takes: ToolDefinition, field: str, is_highest: bool, count: int | None, words: str
) -> None:
    found = find_ranking(task, takes)
    assert found is not None
    assert (found.field, found.is_highest, found.count) == (field, is_highest, count)
    assert found.words == words


@pytest.mark.parametrize(
    ("task", "takes"),
    [
        ("the biggest boat", BOATS),
        ("the heaviest boat", BOATS),
        ("the second cheapest boat", BOATS),
        ("the boats but not the cheapest boat", BOATS),
        ("the cheapest and the newest boat", BOATS),
        ("the customer of the newest order", ORDERS),
        ("the newest customer", ORDERS),
        ("the oldest customer's boats", BOATS),
        ("which boat isn't the cheapest", BOATS),
        ("the best boats", BOATS),
        ("the newest orders", UNFOLLOWED),
        ("list the newest boats", SORTED),
        ("list the boats", BOATS),
        ("the newest boat", listing("list_boats", {"due_at": MOMENT, "checked_at": MOMENT})),
        ("the cheapest boat", listing("list_boats", {"price": NUMBER, "cost": NUMBER})),
    ],
)
def test_a_superlative_with_two_readings_or_none_is_not_read(
    task: str, takes: ToolDefinition
) -> None:
    assert find_ranking(task, takes) is None


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("the cheapest boat", "By `price`, the lowest of all 4: id 2 name Bea price 80.5."),
        ("the oldest boat", "By `built`, the earliest of all 4: id 1 name Ada built 1990-01-03."),
        (
            "the two cheapest boats",
            "By `price`, the lowest of all 4: id 2 name Bea price 80.5, id 3 name Cora price 900, "
            "id 4 name Dora price 900.",
        ),
        ("list the boats", ""),
    ],
)
def test_what_is_ranked_is_told_with_all_that_are_equal(task: str, told: str) -> None:
    assert describe_ranking(task, BOATS, {}, FLEET) == told


@pytest.mark.parametrize(
    "row",
    [
        {"id": 5, "name": "Elsa"},
        {"id": 5, "name": "Elsa", "price": None},
        {"id": 5, "name": "Elsa", "price": "on request"},
        {"id": 5, "name": "Elsa", "price": 3, "currency": "EUR"},
    ],
)
def test_rows_that_cannot_be_compared_are_not_ranked(row: dict[str, Any]) -> None:
    told = describe_ranking("the cheapest boat", BOATS, {}, [*FLEET, row])
    assert told.startswith("Which of them is the cheapest, cannot be told")


@pytest.mark.parametrize(
    ("arguments", "answer", "is_ranked"),
    [
        ({"max_items": 1000}, 3, True),
        ({"max_items": 3}, 3, False),
        ({"limit": 3, "max_items": 1000}, 3, False),
        ({}, 3, False),
        ({}, 2, True),
    ],
)
def test_only_a_whole_list_is_ranked(
    arguments: dict[str, Any], answer: int, is_ranked: bool
) -> None:
    rows = [{"id": n, "total": n, "created_at": f"2026-01-0{n}T00:00:00Z"} for n in (1, 2, 3)]
    told = describe_ranking("the newest order", ORDERS, arguments, rows[:answer])
    assert told.startswith("By `created_at`" if is_ranked else "Which of them is the newest, only")
    more = {"items": rows[:answer], "total": 9}
    assert "only the whole list" in describe_ranking("the newest order", ORDERS, arguments, more)


def test_all_rows_are_asked_for_and_the_number_is_no_bound() -> None:
    found = read_words("list the 3 newest orders", ORDERS, {}, "shop")
    assert (found.arguments, found.unused) == ({"max_items": 1000}, ())


def test_words_beside_a_superlative_are_still_told() -> None:
    assert read_words("list the 3 cheapest wooden boats", COLOURED, {}, "shop").unused == (
        "wooden",
    )


def test_a_list_without_arguments_is_not_ranked_past_words_that_narrow_it() -> None:
    assert read_words("list the cheapest red boats", BOATS, {}, "shop").unused == ("red",)
    assert read_words("list the cheapest boats in Kiel", BOATS, {}, "shop").unused == ("Kiel",)
    assert read_words("list the cheapest boats", BOATS, {}, "shop").unused == ()


def test_a_superlative_by_a_number_of_rows_is_told_where_nothing_ranks() -> None:
    bare = listing("list_orders", {"id": {"type": "integer"}}, limit={"type": "integer"})
    found = read_words("list the newest 3 orders", bare, {}, "shop")
    assert (found.arguments, found.unused) == ({"limit": 3}, ("newest",))
