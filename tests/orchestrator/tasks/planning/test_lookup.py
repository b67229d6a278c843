"""An id that a task says by a name: which list has it, what the name is, which row is called so."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.model import Reading
from orchestrator.tasks.planning.lookup import (
    MAX_ROWS,
    Found,
    Lookup,
    SaidName,
    build_reference,
    find_lookup,
    find_rows,
    find_said_name,
)
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.accepted import PAGES

FILM = {"film_id": "string", "title": "string", "year": "integer"}
PAGING = {"max_items": {"type": "integer", "x-in": PAGES}}


def rows_of(fields: dict[str, str], under: str = "") -> dict[str, Any]:
    row = {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}}
    listed = {"type": "array", "items": row}
    return {"type": "object", "properties": {under: listed}} if under else listed


def tool(
    name: str,
    takes: dict[str, Any] | None = None,
    gives: dict[str, Any] | None = None,
    access: Access = "read",
    required: tuple[str, ...] = (),
) -> ToolDefinition:
    schema = {"type": "object", "properties": takes or {}, "required": list(required)}
    return ToolDefinition(name, "", schema, gives or {}, access)


def needing(name: str, parameter: str, kind: str = "string", access: Access = "read") -> Any:
    taken = {parameter: {"type": kind, "x-in": f"path:{parameter}"}}
    return tool(name, taken, {}, access, (parameter,))


GET_FILM = needing("get_film", "film_id")
LIST_FILMS = tool("list_films", {}, rows_of(FILM))


def films() -> Lookup:
    found = find_lookup(GET_FILM, [GET_FILM, LIST_FILMS], "film_id")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("target", "listed", "parameter"),
    [
        (GET_FILM, LIST_FILMS, "film_id"),
        (GET_FILM,
         tool("films_list", {}, rows_of({"id": "string", "name": "string"})), "film_id"),
        (needing("get_recipe", "id", "integer"),
         tool("search_recipes", {}, rows_of({"id": "integer", "title": "string"})), "id"),
        (needing("rent_film", "film_id", access="write"), LIST_FILMS, "film_id"),
        (needing("list_records", "zone_id"),
         tool("list_zones", {}, rows_of({"id": "string", "name": "string"}, "zones")), "zone_id"),
        (needing("get_book", "isbn"),
         tool("search_books", {}, rows_of({"isbn": "string", "title": "string"})), "isbn"),
        (needing("get_entry", "id"),
         tool("browse", {}, rows_of({"id": "string", "entry": "string"}, "entries")), "id"),
    ],
)  # fmt: skip
def test_a_list_of_such_things_with_ids_and_names_is_found(
    target: ToolDefinition, listed: ToolDefinition, parameter: str
) -> None:
    found = find_lookup(target, [target, listed], parameter)
    assert found is not None
    assert found.tool == listed.name


@pytest.mark.parametrize(
    "listed",
    [
        tool("list_directors", {}, rows_of({"id": "string", "name": "string"})),
        tool("list_rentals", {}, rows_of({"film_id": "string", "name": "string"})),
        tool("list_films", {}, rows_of({"film_id": "integer", "title": "string"})),
        tool("list_films", {}, rows_of({"film_id": "string", "year": "integer"})),
        tool("list_films", {}, {"type": "object", "properties": {"film_id": {"type": "string"}}}),
        tool("list_films", {}, rows_of(FILM), "write"),
        tool("list_films", {"year": {"type": "integer"}}, rows_of(FILM), "read", ("year",)),
    ],
)
def test_a_list_of_other_things_or_without_names_is_none(listed: ToolDefinition) -> None:
    assert find_lookup(GET_FILM, [GET_FILM, listed], "film_id") is None


def test_a_list_that_needs_arguments_is_taken_where_the_task_has_them() -> None:
    hall = {"hall": {"type": "string"}}
    listed = tool("list_films", hall, rows_of(FILM), required=("hall",))
    assert find_lookup(GET_FILM, [listed], "film_id") is None
    found = find_lookup(GET_FILM, [listed], "film_id", is_callable=lambda each: each is listed)
    assert found is not None
    assert found.tool == "list_films"
    both = [listed, tool("browse_films", {}, rows_of(FILM))]
    assert find_lookup(GET_FILM, both, "film_id", is_callable=lambda each: False) is not None


def test_of_two_lists_neither_is_taken() -> None:
    both = [GET_FILM, LIST_FILMS, tool("search_films", {}, rows_of(FILM))]
    assert find_lookup(GET_FILM, both, "film_id") is None


@pytest.mark.parametrize("parameter", ["title", "year", "no_such"])
def test_what_is_no_id_is_not_looked_up(parameter: str) -> None:
    taken = {"title": {"type": "string"}, "year": {"type": "integer"}}
    target = tool("get_film", taken, {}, "read", ("title", "year"))
    assert find_lookup(target, [target, LIST_FILMS], parameter) is None


def said(task: str, **reading: Any) -> SaidName | None:
    told = Reading(**{"missing": ("film_id",), **reading})
    return find_said_name(task, GET_FILM, "cinema", "Cinema", told, "film_id")


@pytest.mark.parametrize(
    ("task", "name", "plain"),
    [
        ("show the film Metropolis", "Metropolis", True),
        ("show the film 'the third man'", "the third man", True),
        ("show the film The Third Man", "Third Man", True),
        ("show the film Printer on fire", "Printer on fire", True),
        ("show the film metropolis", "metropolis", False),
        ("show the film metropolis please", "metropolis", False),
        ("show the film Handbook", "Handbook", False),
        ("show the film Industry Statistics", "Industry Statistics", False),
        ("show the film 'Handbook'", "Handbook", True),
    ],
)
def test_what_stands_behind_the_thing_is_its_name(task: str, name: str, plain: bool) -> None:
    assert said(task) == SaidName(name, plain)


@pytest.mark.parametrize(
    "task",
    [
        "show the film",
        "show the film of 2031-01-01",
        "get lost",
        "show film critics of Oslo and 3",
        "which films does Mira Holt have?",
    ],
)
def test_words_that_name_nothing_are_no_name(task: str) -> None:
    assert said(task) is None


def test_a_name_that_was_read_as_the_id_is_one_and_an_id_is_none() -> None:
    def read(value: str, evidence: str) -> SaidName | None:
        told = {"film_id": value}
        return said(
            f"show the {evidence}", missing=(), arguments=told, evidence={"film_id": evidence}
        )

    assert read("Metropolis", "film Metropolis") == SaidName("Metropolis", True)
    assert read("Handbook", "film Handbook") == SaidName("Handbook", False)
    assert read("Metropolis", "film id Metropolis") is None
    assert read("f-17", "film f-17") is None


def test_a_task_that_lacks_more_than_the_id_is_not_looked_up() -> None:
    assert said("show the film Metropolis", missing=("film_id", "day")) is None


ROWS: list[Any] = [
    {"film_id": "f-1", "title": "Metropolis", "year": 1927},
    {"film_id": "f-2", "title": "Amélie", "year": 2001},
    {"film_id": "f-3", "title": "Nosferatu", "year": 1922},
    {"film_id": "f-4", "title": "Nosferatu", "year": 1979},
    {"film_id": "f-5", "title": "The Third Man"},
    {"film_id": None, "title": "Lost"},
    "no row",
]


@pytest.mark.parametrize(
    ("name", "identities"),
    [
        ("Metropolis", ["f-1"]),
        ("METROPOLIS", ["f-1"]),
        ("amelie", ["f-2"]),
        ("Nosferatu", ["f-3", "f-4"]),
        ("Third Man", ["f-5"]),
        ("f-2", ["f-2"]),
        ("Metro", []),
        ("Metropolis 2", []),
        ("Lost", []),
        ("…", []),
    ],
)
def test_a_row_is_called_so_where_its_whole_name_is_the_same(
    name: str, identities: list[str]
) -> None:
    found = find_rows(films(), name, ROWS)
    assert [row.identity for row in found.matches] == identities
    assert found.is_whole


@pytest.mark.parametrize("answer", [None, {}, "text", {"films": ROWS}, 7])
def test_an_answer_of_another_form_has_no_rows(answer: Any) -> None:
    assert find_rows(films(), "Metropolis", answer) == Found((), (), False)


def test_no_more_rows_are_looked_at_than_a_thousand() -> None:
    many = [{"film_id": f"f-{n}", "title": f"Film {n}"} for n in range(MAX_ROWS + 1)]
    last = find_rows(films(), f"Film {MAX_ROWS}", many)
    assert (last.matches, last.is_whole, len(last.rows)) == ((), False, MAX_ROWS)


def test_a_page_of_a_longer_list_is_not_the_whole_list() -> None:
    paged = tool("list_films", PAGING, rows_of(FILM))
    lookup = find_lookup(GET_FILM, [GET_FILM, paged], "film_id")
    assert lookup is not None
    assert lookup.most == "max_items"
    many = [{"film_id": f"f-{n}", "title": f"Film {n}"} for n in range(30)]
    assert not find_rows(lookup, "Film 3", many).is_whole
    assert find_rows(lookup, "Metropolis", ROWS).is_whole


def test_an_id_that_the_argument_does_not_take_is_none() -> None:
    rows = [{"film_id": 7, "title": "Metropolis"}, {"film_id": True, "title": "Metropolis"}]
    assert find_rows(films(), "Metropolis", rows).matches == ()


def test_the_reference_points_at_the_rows_own_id() -> None:
    (row,) = find_rows(films(), "amelie", ROWS).matches
    assert build_reference(films(), "find_s1", row) == {
        "$ref": "find_s1",
        "path": "$[1]['film_id']",
    }


def lending(**fields: str) -> ToolDefinition:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    body = {"type": "object", "properties": properties, "required": [*fields]}
    return tool("lend_film", {"body": body}, {}, "write", ("body",))


MEMBERS = tool("list_members", {}, rows_of({"id": "integer", "name": "string"}))


def test_an_id_in_a_body_is_looked_up_where_its_name_says_of_what_it_is_one() -> None:
    lend = lending(film_id="string", member_id="integer")
    found = find_lookup(lend, [lend, LIST_FILMS, MEMBERS], "body.member_id")
    assert found is not None
    assert (found.tool, found.parameter) == ("list_members", "body.member_id")
    assert find_lookup(lend, [lend, LIST_FILMS, MEMBERS], "body.film_id") is not None
    own = lending(id="string")
    assert find_lookup(own, [own, tool("films", {}, rows_of({"id": "string", "title": "string"}))],
                       "body.id") is None  # fmt: skip


def test_the_name_for_an_id_in_a_body_is_what_its_other_fields_do_not_say() -> None:
    reading = Reading(
        {"body": {"film_id": "f-1"}},
        evidence={"body.film_id": "f-1"},
        missing=("body.member_id",),
    )
    lend = lending(film_id="string", member_id="integer")
    said = find_said_name("lend f-1 to Eva", lend, "cinema", "", reading, "body.member_id")
    assert said == SaidName("Eva", True)


def test_a_name_beside_words_of_the_description_is_one_that_has_to_be_shown() -> None:
    taken = {"member_id": {"type": "integer", "x-in": "path:member_id"}}
    target = ToolDefinition(
        "list_member_rentals",
        "List what a member has borrowed.",
        {"type": "object", "properties": taken, "required": ["member_id"]},
        {},
        "read",
    )
    reading = Reading(missing=("member_id",))

    def say(task: str) -> SaidName | None:
        return find_said_name(task, target, "cinema", "Cinema", reading, "member_id")

    assert say("what has Eva Novak borrowed?") == SaidName("Eva Novak", False)
    assert say("what has Eva Novak stolen?") is None


LOCK = needing("lock_device", "device_id", access="write")


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("lock the front door", "front door"),
        ("lock the front-door device", "front-door"),
        ("lock the front door until 5 March", "front door"),
        ("lock the good old door", "good old door"),
        ("lock the newest device", None),
        ("lock all doors", None),
        ("lock German devices", None),
        ("lock the door of the neighbour", None),
        ("lock a door", None),
    ],
)
def test_words_of_an_order_that_stand_together_may_be_a_name_that_a_list_has(
    task: str, name: str | None
) -> None:
    evidence = {"until": "5 March"} if "March" in task else {}
    reading = Reading(missing=("device_id",), evidence=evidence)
    found = find_said_name(task, LOCK, "hub", "Hub", reading, "device_id")
    assert (found.text if found else None) == name
    assert found is None or not found.is_plain


PEOPLE = [
    {"film_id": "p-1", "title": "Dr Paul Weiss"},
    {"film_id": "p-2", "title": "Mira Shah"},
    {"film_id": "p-3", "title": "Weiss Paul"},
]


@pytest.mark.parametrize(
    ("name", "near"),
    [("Dr Weiss", ["p-1"]), ("Ms Shah", ["p-2"]), ("Shah", []), ("Dr Paul", ["p-3"]), ("Dr", [])],
)
def test_a_title_and_a_family_name_are_near_a_whole_name_and_never_the_same(
    name: str, near: list[str]
) -> None:
    found = find_rows(films(), name, PEOPLE)
    assert found.matches == ()
    assert [row.identity for row in found.near] == near
