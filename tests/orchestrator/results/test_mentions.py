"""Words of a task that mean an earlier answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.results.keeper import ANSWER_BYTES
from orchestrator.results.mentions import MAX_MENTIONS, resolve_mentions
from orchestrator.results.session import describe_session
from orchestrator.results.shape import measure_json
from registry.sessions.memory import SessionApproval, SessionCall, SessionMemory, SessionRun

ZONES = [{"id": 11, "name": "a.example"}, {"id": 22, "name": "b.example"}, {"id": 33, "name": "c"}]
BOAT = {"id": 7, "name": "Swift", "owner": {"name": "Ann"}}


def exchange(call: str, tool: str, value: Any, **more: Any) -> SessionCall:
    return SessionCall(call, tool, 100.0, value=value, **more)


LISTED = exchange("c1", "dns.list_zones", {"status": 200, "body": {"zones": ZONES}}, handle="r1")
SHOWN = exchange("c2", "harbour.get_boat", {"status": 200, "body": BOAT})


def meant(task: str, *exchanges: SessionCall) -> list[tuple[str, Any, str, str]]:
    found = resolve_mentions(task, SessionMemory(exchanges))
    assert all(each.origin == "memory" for each in found)
    return [(each.words, each.value, each.path, each.handle) for each in found]


@pytest.mark.parametrize(
    ("task", "words", "index"),
    [
        ("delete the second one", "the second one", 1),
        ("show records of the 3rd zone", "the 3rd zone", 2),
        ("open the last item, please", "the last item", 2),
        ("show number 1", "number 1", 0),
        ("show #2", "#2", 1),
    ],
)
def test_a_counted_item_is_the_element_of_the_newest_list(
    task: str, words: str, index: int
) -> None:
    path = f"$.body.zones[{index}]"
    assert meant(task, SHOWN, LISTED) == [(words, ZONES[index], path, "r1")]


@pytest.mark.parametrize("task", ["sort that data", "send those results to me", "count them."])
def test_the_whole_is_the_newest_answer(task: str) -> None:
    ((_, value, path, handle),) = meant(task, LISTED, SHOWN)
    assert (value, path, handle) == (ZONES, "$.body.zones", "r1")


def test_a_noun_finds_the_answer_that_is_about_it() -> None:
    assert meant("rename that boat", LISTED, SHOWN) == [("that boat", BOAT, "$.body", "")]
    assert meant("call that owner", SHOWN) == [("that owner", BOAT["owner"], "$.body.owner", "")]


@pytest.mark.parametrize(
    "task",
    [
        "list the zones",
        "that ship has sailed",
        "delete the ninth one",
        "show the second berth",
        "what a day it was",
        "",
        "first things first",
    ],
)
def test_what_mentions_nothing_or_nothing_that_there_is_has_no_value(task: str) -> None:
    assert meant(task, LISTED) == []


def test_without_a_successful_answer_nothing_is_meant() -> None:
    failed = exchange("c3", "dns.list_zones", None, outcome="http")
    assert meant("delete it", failed) == []
    assert meant("delete it") == []


def test_mentions_are_few_and_each_word_is_read_once() -> None:
    assert len(meant("it, it, it, it, it, it, it, it.", LISTED)) == MAX_MENTIONS
    assert len(meant("delete those results and the second one", LISTED)) == 2
    assert len(meant("x " * 100_000 + "it.", LISTED)) == 0


def test_a_session_is_told_by_what_was_done_and_why_and_what_waits() -> None:
    write = exchange("c9", "dns.delete_zone", None, outcome="http", task="clean up", access="write")
    told = describe_session(
        SessionMemory(
            (write, LISTED),
            (SessionApproval("a1", "dns.delete_zone", "pending", 1.0),),
            (SessionRun("j1", "do", "waiting", "find a boat", "Which boat?", 2.0),),
        )
    )
    assert told["summary"] == (
        "Since 00:01 UTC: dns.delete_zone (1), dns.list_zones (1). 1 of these calls did not "
        "succeed. The last was dns.delete_zone for “clean up”: http. 1 writes wait for a person. "
        "A do is waiting: Which boat?"
    )
    assert told["waits"] == [{"approval": "a1", "tool": "dns.delete_zone", "state": "pending"}]
    assert told["calls"][1]["result"] == "r1"


def test_the_description_of_a_session_is_short_whatever_was_said_in_it() -> None:
    loud = {"task": "t" * 4_000, "reason": "r" * 4_000, "arguments": {"a": "x" * 100_000}}
    calls = tuple(exchange(f"c{n}", "dns.list_zones", None, **loud) for n in range(10))
    runs = tuple(SessionRun(f"j{n}", "do", "done", "t" * 4_000, "m" * 9_000, 1.0) for n in range(5))
    told = describe_session(SessionMemory(calls, (), runs))
    assert measure_json(told) <= ANSWER_BYTES
    assert told["calls"]
    assert describe_session(SessionMemory())["summary"] == "Nothing is known of this session."


def test_that_one_is_the_newest_answer_or_the_only_item_of_it() -> None:
    assert meant("show that one", SHOWN) == [("that one", BOAT, "$.body", "")]
    ((_, several, _, _),) = meant("show that one", LISTED)
    assert several == ZONES
    one = replace(LISTED, value={"status": 200, "body": {"zones": ZONES[:1]}})
    ((_, only, path, _),) = meant("show this one", one)
    assert (only, path) == (ZONES[0], "$.body.zones[0]")
