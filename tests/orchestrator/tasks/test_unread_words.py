"""Words of a task that its call would leave out are told, also where they name an argument."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from orchestrator.tasks.run.task_words import LocalZone, list_doubts, read_words
from sandbox.bundle.model import ToolDefinition

TAKES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "lang": {"type": "string", "enum": ["de", "en"], "description": "`de` - German"},
        "ordering": {"type": "string", "description": "Which field to use when ordering."},
        "page": {"type": "integer", "description": "A page number within the result set."},
        "price__gte": {"type": "number"},
    },
    "additionalProperties": False,
}
BOOK = {"type": "object", "properties": {"title": {"type": "string"}, "price": {"type": "string"}}}
ANSWERS = {"type": "object", "properties": {"body": {"type": "array", "items": BOOK}}}
BOOKS = ToolDefinition("books_list", "GET /api/books/.", TAKES, ANSWERS, "read", group="books")


@pytest.mark.parametrize(
    ("task", "arguments", "told"),
    [
        ("list all books ordered by price, page 2", {"page": 2}, ("ordered",)),
        ("list all books ordered by title", {}, ("ordered",)),
        ("list all books, page 2", {"page": 2}, ()),
        ("list the titles of all books", {}, ()),
        ("list all books with their price", {}, ()),
    ],
)
def test_a_word_that_names_an_argument_without_a_value_is_told_as_left_out(
    task: str, arguments: dict[str, Any], told: tuple[str, ...]
) -> None:
    reading = read_words(task, BOOKS, {}, "Library")
    assert (reading.arguments, reading.unused) == (arguments, told)
    assert list_doubts(reading) == tuple(
        f"{word!r} of the task went into no argument." for word in told
    )


ONE: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
    "additionalProperties": False,
}
FIELDS: dict[str, Any] = {"id": {}, "title": {}, "author": {}, "isbn": {}}
ANSWER = {"type": "object", "properties": {"body": {"type": "object", "properties": FIELDS}}}
GET = ToolDefinition("books_retrieve", "GET /api/books/{id}/.", ONE, ANSWER, "read", group="books")


@pytest.mark.parametrize(
    ("task", "doubtful"),
    [
        ("show book 3", ()),
        ("show the book with the id 3", ()),
        ("show the title of book 3", ()),
        ("show the book called 3", ()),
        ("find the book titled Book 3", ("id",)),
        ("show the book called Apollo 3", ("id",)),
        ("show the book with the title Terminator 3", ("id",)),
        ("show the book of author 3", ("id",)),
        ("show the book with isbn 3", ("id",)),
    ],
)
def test_a_number_in_a_name_or_of_another_field_is_no_id_without_a_question(
    task: str, doubtful: tuple[str, ...]
) -> None:
    reading = read_words(task, GET, {}, "Library")
    assert (reading.arguments, reading.doubtful) == ({"id": 3}, doubtful)


FIELDS_OF_A_NOTE = {"title": {"type": "string"}, "priority": {"enum": ["low", "high"]}}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "body": {"type": "object", "properties": FIELDS_OF_A_NOTE, "required": ["title"]}
    },
    "required": ["body"],
    "additionalProperties": False,
}
CREATE = ToolDefinition("create_note", "POST /notes.", NOTE, {}, "write", group="notes")


def test_words_that_no_field_of_a_body_took_are_told_as_left_out() -> None:
    reading = read_words("create a note 'Login' about green buttons", CREATE, {}, "Notes")
    assert reading.arguments == {"body": {"title": "Login"}}
    assert reading.unused == ("green", "buttons")
    whole = read_words("create a low note 'Login'", CREATE, {}, "Notes")
    assert (whole.arguments["body"]["priority"], whole.unused) == ("low", ())


CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
PEOPLE = ToolDefinition("list_customers", "GET /customers.", CITY, {}, "read", group="people")
OWNED: dict[str, Any] = {"type": "object", "properties": {"assignee": {"type": "string"}}}
TICKETS = ToolDefinition("list_tickets", "GET /tickets.", OWNED, {}, "read", group="tickets")


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("list customers not in London", ("not",)),
        ("list customers except those in London", ("except",)),
        ("liste clients sauf ceux de Paris", ("sauf",)),
        ("list customers in London", ()),
    ],
)
def test_what_turns_a_reading_into_its_opposite_is_told(task: str, told: tuple[str, ...]) -> None:
    assert {*told} <= {*read_words(task, PEOPLE, {}, "Shop").unused}
    assert bool(told) == bool(read_words(task, PEOPLE, {}, "Shop").unused)


def test_my_things_are_not_everybody_s_where_a_person_can_be_given() -> None:
    assert read_words("list my tickets", TICKETS, {}, "Tracker").unused == ("my",)
    assert read_words("list my customers", PEOPLE, {}, "Shop").unused == ()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_day_has_its_own_offset_whenever_it_is_said() -> None:
    zone = LocalZone()
    assert datetime(2030, 1, 10, 9, tzinfo=zone).isoformat() == "2030-01-10T09:00:00+01:00"
    assert datetime(2030, 6, 10, 9, tzinfo=zone).isoformat() == "2030-06-10T09:00:00+02:00"


def listing(takes: dict[str, Any], row: dict[str, Any]) -> ToolDefinition:
    rows = {"type": "array", "items": {"type": "object", "properties": row}}
    answer = {"type": "object", "properties": {"body": rows}}
    schema = {"type": "object", "properties": takes}
    return ToolDefinition("list_expenses", "GET /expenses.", schema, answer, "read", group="money")


KINDS = {"enum": ["travel", "meals", "tools"]}


@pytest.mark.parametrize(
    "takes", [{"category": {"type": "string"}}, {"person": {"type": "string"}}]
)
def test_a_value_that_rows_may_have_is_told_where_the_list_is_not_narrowed_by_it(
    takes: dict[str, Any],
) -> None:
    tool = listing(takes, {"id": {"type": "integer"}, "category": KINDS})
    assert read_words("list the travel expenses", tool, {}, "Payroll").unused == ("travel",)
    of_ada = read_words("list the travel expenses of person Ada", tool, {}, "Payroll")
    assert "travel" in of_ada.unused


def test_a_value_that_what_is_written_may_have_is_told_where_it_is_not_sent() -> None:
    taken = {"amount": {"type": "number"}, "method": {"enum": ["card", "cash"]}}
    body = {"type": "object", "properties": taken, "required": ["amount"]}
    schema = {"type": "object", "properties": {"body": body}, "required": ["body"]}
    answer = {"type": "object", "properties": {"body": {"type": "object", "properties": taken}}}
    tool = ToolDefinition("record_payment", "POST /payments.", schema, answer, "write", group="p")
    reading = read_words("record a payment with amount 99.50 by card", tool, {}, "Ledger")
    assert (reading.arguments, reading.unused) == ({"body": {"amount": 99.5}}, ("card",))


def test_a_state_of_one_thing_is_no_word_that_its_read_left_out() -> None:
    ticket = {"id": {"type": "integer"}, "state": {"enum": ["open", "closed"]}}
    answer = {"type": "object", "properties": {"body": {"type": "object", "properties": ticket}}}
    tool = ToolDefinition("get_ticket", "GET /tickets/{id}.", ONE, answer, "read", group="tickets")
    reading = read_words("is ticket 3 open", tool, {}, "Tracker")
    assert (reading.arguments, reading.unused) == ({"id": 3}, ())


def test_a_state_that_no_filter_takes_is_told_beside_a_name_that_went_nowhere() -> None:
    tool = listing({"due_before": {"type": "string", "format": "date"}}, {"id": {}, "total": {}})
    told = read_words("overdue expenses of Ann Lee", tool, {}, "Ledger").unused
    assert told == ("Ann Lee", "overdue")


POWER = {"type": "string", "enum": ["on", "off"]}
LAMPS = ToolDefinition(
    "list_lamps",
    "GET /lamps.",
    {"type": "object", "properties": {"power": POWER, "room": {"type": "string"}}},
    {},
    "read",
    group="lamps",
)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("which lamps are on?", {"power": "on"}),
        ("list the lamps that are switched on in the kitchen", {"power": "on"}),
        ("list the lamps that are on", {"power": "on"}),
        ("list the lamps on the first floor", {}),
        ("list the lamps on Monday", {}),
        ("which lamps are not on", {}),
        ("which lamps are off", {"power": "off"}),
    ],
)
def test_a_state_that_is_called_on_is_read_where_a_clause_says_it_of_something(
    task: str, expected: dict[str, Any]
) -> None:
    reading = read_words(task, LAMPS, {}, "Home")
    assert {k: v for k, v in reading.arguments.items() if k == "power"} == expected


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("list the books by price", ("by price",)),
        ("list the books by Ann Lee", ("Ann Lee",)),
    ],
)
def test_the_field_by_which_a_list_is_wanted_is_told_where_nothing_orders_it(
    task: str, told: tuple[str, ...]
) -> None:
    assert read_words(task, BOOKS, {}, "Library").unused == told


def test_what_stands_behind_the_name_of_a_filter_is_told_whatever_word_it_is() -> None:
    takes = {"tag": {"type": "string"}, "environment": {"enum": ["production", "staging"]}}
    tool = listing(takes, {"tags": {"type": "array", "items": {"type": "string"}}})
    task = "expenses with tag search in production"
    reading = read_words(task, tool, {}, "Flags")
    assert (reading.arguments, reading.unused) == ({"environment": "production"}, ("search",))
    assert read_words("expenses in production", tool, {}, "Flags").unused == ()


def test_a_word_that_is_a_field_of_the_rows_is_no_form_of_a_value_without_a_question() -> None:
    kinds = {"kind": {"type": "string", "enum": ["lamp", "lock"]}}
    rows = {"kind": {"type": "string"}, "locked": {"type": "boolean"}}
    locked = read_words("list the locked expenses", listing(kinds, rows), {}, "Hub")
    assert (locked.arguments, locked.doubtful) == ({"kind": "lock"}, ("kind",))
    locks = read_words("list the locks", listing(kinds, rows), {}, "Hub")
    assert (locks.arguments, locks.doubtful) == ({"kind": "lock"}, ())
