"""The order of a step's candidates, once it is known what the words ask for and what each takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.tasks.model import Reading
from orchestrator.tasks.routing.intent import classify_task
from orchestrator.tasks.routing.naming import Naming
from orchestrator.tasks.run.step_decision import (
    may_be_write,
    order_by_access,
    order_shown,
    prefer_fitting,
    prefer_ordered,
)
from orchestrator.tasks.run.task_words import strip_addresses
from orchestrator.tasks.suggestions import Suggestion
from registry.models import ToolMatch
from tests.registry.samples import BLANK

STANDING = replace(BLANK, level="standard")


def suggest(name: str, access: Any = "read", server: str = "house") -> Suggestion:
    match = ToolMatch(server, name, 1.0, "", server, "")
    return Suggestion(match, STANDING, access)


HEAT, ROOMS, ROOM = suggest("set_heating", "write"), suggest("list_rooms"), suggest("get_room")
WHOLE = Reading({"room": "hall"}, {"room": "task"}, {"room": "hall"})
LEFT = Reading(unused=("hall",))


def test_a_question_is_never_answered_with_a_write() -> None:
    asked = classify_task("is it warmer in the kitchen or the hall")
    assert order_by_access([HEAT, ROOMS], asked) == [ROOMS]
    assert order_by_access([HEAT], asked) == []


def test_an_order_to_show_puts_what_reads_first_and_keeps_the_rest() -> None:
    asked = classify_task("show the heating of the hall")
    assert order_by_access([HEAT, ROOMS], asked) == [ROOMS, HEAT]
    told = classify_task("set the heating of the hall to 20")
    assert order_by_access([HEAT, ROOMS], told) == [HEAT, ROOMS]


def test_who_orders_a_write_is_offered_the_writes_of_the_firsts_server_first() -> None:
    other = suggest("set_price", "write", server="hotel")
    ordered = classify_task("set the heating of the hall to 20")
    assert order_shown([ROOM, other, ROOMS, HEAT], ordered) == [HEAT, ROOM, other, ROOMS]
    asked = classify_task("show the heating of the hall")
    assert order_shown([ROOM, HEAT], asked) == [ROOM, HEAT]
    assert order_shown([], ordered) == []


def test_an_order_to_write_is_no_read_that_it_does_not_name_where_the_server_writes() -> None:
    said, asked = "close room 12", "show room 12"
    ordered, reads = classify_task(said), classify_task(asked)
    assert may_be_write(said, ordered, [ROOM, HEAT], "house.get_room")
    assert not may_be_write(asked, reads, [ROOM, HEAT], "house.get_room")
    assert not may_be_write(said, ordered, [ROOM, ROOMS], "house.get_room")
    assert not may_be_write(said, ordered, [ROOM, HEAT], "house.set_heating")
    own = suggest("close_room")
    assert not may_be_write(said, ordered, [own, HEAT], "house.close_room")


def test_the_one_tool_of_a_server_that_takes_what_is_said_comes_first() -> None:
    readings = {("house", "list_rooms"): LEFT, ("house", "get_room"): WHOLE}
    assert prefer_fitting([ROOMS, ROOM], readings) == [ROOM, ROOMS]
    assert prefer_fitting([ROOM, ROOMS], readings) == [ROOM, ROOMS]


def test_what_needs_more_than_is_said_gives_way_to_what_is_named_of_several() -> None:
    needs, plain = Reading(missing=("room",)), Reading()
    readings = {("house", "get_room"): needs, ("house", "list_rooms"): plain}
    named = {("house", "list_rooms"): Naming((), True, True)}
    assert prefer_fitting([ROOM, ROOMS], readings, named) == [ROOMS, ROOM]
    assert prefer_fitting([ROOM, ROOMS], readings) == [ROOM, ROOMS]
    said = {**readings, ("house", "get_room"): Reading({"size": 3}, evidence={"size": "3"})}
    assert prefer_fitting([ROOM, ROOMS], said, named) == [ROOM, ROOMS]
    other = suggest("list_rooms", server="hotel")
    elsewhere = {("hotel", "list_rooms"): plain, ("house", "get_room"): needs}
    many = dict.fromkeys(elsewhere, Naming((), True, True))
    assert prefer_fitting([ROOM, other], elsewhere, many) == [ROOM, other]


def test_nothing_comes_first_that_writes_or_is_of_another_server_or_is_one_of_two() -> None:
    readings = {("house", name): WHOLE for name in ("get_room", "set_heating", "find_room")}
    readings["house", "list_rooms"] = LEFT
    other = suggest("get_room", server="hotel")
    assert prefer_fitting([ROOMS, HEAT], readings) == [ROOMS, HEAT]
    assert prefer_fitting([ROOMS, other], readings) == [ROOMS, other]
    both = [ROOMS, ROOM, suggest("find_room")]
    assert prefer_fitting(both, readings) == both
    named = {("house", "find_room"): Naming((), True), ("house", "get_room"): Naming(("two",))}
    assert prefer_fitting(both, readings, named)[0] == both[2]


def test_an_order_is_led_by_the_one_write_that_takes_all_of_it_and_that_it_names_whole() -> None:
    names = {("house", "set_heating"): Naming((), True), ("house", "drop_room"): Naming(("warm",))}
    readings = dict.fromkeys(names, WHOLE)
    drop = suggest("drop_room", "write")
    assert prefer_ordered([drop, HEAT], readings, names) == [HEAT, drop]
    both = dict.fromkeys(names, Naming((), True))
    assert prefer_ordered([drop, HEAT], readings, both) == [drop, HEAT]
    unread = {**readings, ("house", "set_heating"): LEFT}
    assert prefer_ordered([drop, HEAT], unread, names) == [drop, HEAT]


def test_the_url_of_an_api_is_no_word_of_a_task() -> None:
    task = "next trams at the stop Castle, the API is at http://127.0.0.1:8000/v1"
    assert strip_addresses(task) == "next trams at the stop Castle"
    assert strip_addresses("http://127.0.0.1:8000/v1") == "http://127.0.0.1:8000/v1"
