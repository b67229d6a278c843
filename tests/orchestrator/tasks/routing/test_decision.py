from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.settings import DecisionBands
from orchestrator.tasks.model import Reading
from orchestrator.tasks.routing.decision import Candidate, RoutingDecision, decide
from orchestrator.tasks.routing.intent import classify_task
from orchestrator.tasks.routing.kinds import TaskIntent
from registry.models import Route, ToolMatch

BANDS = DecisionBands()
MATCH = ToolMatch("harbour", "list_berths", 1.0, "List berths.", "Harbour", "Berths of a harbour.")
SURE = Route((MATCH,), 0.95, (), True)
GOOD = Candidate("harbour", "list_berths", "read", "active", "standard")
FULL = Reading({"free": True}, {"free": "task"})
COMMAND = TaskIntent("command", "imperative", True, "read")
MAKING = TaskIntent("creation", "making", True, "write")
ADVICE = TaskIntent("advice", "how or why")
REMARK = TaskIntent("remark", "statement")


def decided(
    route: Route = SURE,
    candidate: Candidate | None = GOOD,
    reading: Reading = FULL,
    intent: TaskIntent = COMMAND,
    margin: float = 0.5,
    same_api: str = "",
) -> RoutingDecision:
    return decide(route, candidate, reading, intent, BANDS, margin=margin, same_api=same_api)


def test_a_sure_read_of_a_proven_server_is_made() -> None:
    assert decided() == RoutingDecision("act")
    assert decided(candidate=replace(GOOD, level="trusted")) == RoutingDecision("act")
    own = replace(GOOD, level="probationary", made_by_run=True)
    assert decided(candidate=own) == RoutingDecision("act")


def test_a_tool_whose_whole_name_is_said_may_be_called_at_a_lower_probability() -> None:
    named, likely = replace(GOOD, is_named=True), replace(SURE, probability=0.5)
    assert decided(likely, named) == RoutingDecision("act")
    assert decided(likely).kind == "confirm"
    assert decided(replace(SURE, probability=0.39), named).kind == "choose"
    assert decided(likely, replace(named, unnamed=("free",))).kind == "confirm"
    assert decided(likely, named, margin=0.04).kind == "choose"


def test_a_whole_name_with_values_of_its_own_and_nothing_else_is_enough() -> None:
    named, doubtful = replace(GOOD, is_named=True), replace(SURE, probability=0.2)
    said = replace(FULL, evidence={"free": "free"})
    assert decided(doubtful, named, said) == RoutingDecision("act")
    assert decided(doubtful, named, FULL).reasons == ("below_confirm",)
    assert decided(replace(doubtful, probability=0.05), named, said).kind == "forge"
    left = decided(doubtful, named, replace(said, unused=("Bergen",)))
    assert left == RoutingDecision("confirm", ("below_confirm", "unused_values"))
    perhaps = decided(doubtful, named, replace(said, doubtful=("free",)))
    assert perhaps == RoutingDecision("confirm", ("below_confirm", "doubtful_value"))
    assert decided(replace(doubtful, vetoes=("another verb",)), named, said).kind == "choose"
    assert decided(doubtful, replace(named, unnamed=("gold",)), said).kind != "act"
    assert decided(doubtful, named, said, margin=0.0).kind == "choose"
    assert decided(doubtful, named, replace(said, missing=("berth",))).kind == "choose"
    assert decided(doubtful, GOOD, said).kind == "choose"


@pytest.mark.parametrize("task", ["show that one", "show it", "open that", "delete this one"])
def test_words_that_only_point_at_something_make_no_server(task: str) -> None:
    intent = classify_task(task)
    assert (intent.reason, intent.certain) == ("deictic", False)
    nothing = decided(replace(SURE, matches=()), None, intent=intent)
    assert nothing == RoutingDecision("answer", ("deictic", "no_candidate"))
    assert decided(replace(SURE, probability=0.01), intent=intent).kind == "answer"


def test_words_without_a_verb_act_only_where_they_say_a_whole_call() -> None:
    terse = TaskIntent("command", "terse", False, None)
    named, read = replace(GOOD, is_named=True), replace(FULL, evidence={"free": "free"})
    assert decided(candidate=named, reading=read, intent=terse) == RoutingDecision("act")
    assert decided(candidate=named, intent=terse).reasons == ("uncertain_intent",)
    assert decided(reading=read, intent=terse).reasons == ("uncertain_intent",)
    listing = TaskIntent("command", "listing", False, "read")
    assert decided(candidate=named, intent=listing) == RoutingDecision("act")
    assert decided(intent=listing).reasons == ("uncertain_intent",)
    unsure = replace(terse, reason="figurative")
    assert decided(candidate=named, reading=read, intent=unsure).reasons == ("uncertain_intent",)


def test_who_says_a_tools_whole_name_means_it_by_words_alone_and_of_a_new_server_too() -> None:
    named = replace(GOOD, is_named=True, level="probationary")
    assert decided(candidate=named, route=replace(SURE, by_meaning=False)).kind == "act"
    failing = replace(named, level="degraded")
    assert decided(candidate=failing).reasons == ("untrusted",)
    foreign = replace(named, third_party=True)
    assert decided(candidate=foreign).reasons == ("third_party",)


CONFIRMED: list[tuple[str, dict[str, Any]]] = [
    ("below_act", {"route": replace(SURE, probability=0.849)}),
    ("unnamed_words", {"candidate": replace(GOOD, unnamed=("tomorrow",))}),
    ("words_only", {"route": replace(SURE, by_meaning=False)}),
    ("writes", {"candidate": replace(GOOD, access="write")}),
    ("writes", {"candidate": replace(GOOD, access="write", level="trusted")}),
    ("untrusted", {"candidate": replace(GOOD, level="probationary")}),
    ("untrusted", {"candidate": replace(GOOD, level="degraded")}),
    ("untrusted", {"candidate": replace(GOOD, level="degraded", made_by_run=True)}),
    ("experimental", {"candidate": replace(GOOD, state="experimental", level="trusted")}),
    ("experimental", {"candidate": replace(GOOD, level="experimental", made_by_run=True)}),
    ("third_party", {"candidate": replace(GOOD, third_party=True)}),
    ("from_prose", {"candidate": replace(GOOD, from_prose=True)}),
    ("incomplete", {"reading": replace(FULL, missing=("berth",))}),
    ("invalid", {"reading": replace(FULL, problem="/free: is no boolean")}),
    ("unused_values", {"reading": replace(FULL, unused=("tomorrow",))}),
    ("doubtful_value", {"reading": replace(FULL, doubtful=("city",))}),
    ("example_value", {"reading": replace(FULL, origins={"free": "example"})}),
    ("memory_value", {"reading": replace(FULL, origins={"free": "memory"})}),
    ("carried_value", {"candidate": replace(GOOD, carries=True)}),
    ("uncertain_intent", {"intent": replace(COMMAND, certain=False)}),
    ("words_write", {"intent": replace(COMMAND, access="write")}),
]
CHOSEN: list[tuple[str, dict[str, Any]]] = [
    ("below_confirm", {"route": replace(SURE, probability=0.399)}),
    ("below_confirm", {"route": replace(SURE, probability=0.1)}),
    ("near_tie", {"margin": 0.049}),
    ("near_tie", {"margin": nan}),
    ("veto", {"route": replace(SURE, vetoes=("another verb",))}),
    ("veto", {"route": replace(SURE, vetoes=("another vendor",))}),
    ("inactive", {"candidate": replace(GOOD, state="quarantined")}),
    ("inactive", {"candidate": replace(GOOD, state="archived")}),
    ("other_api", {"same_api": "powerdns"}),
    ("creation", {"intent": replace(MAKING, certain=False)}),
]


@pytest.mark.parametrize(("reason", "changed"), CONFIRMED)
def test_one_doubt_is_enough_to_ask(reason: str, changed: dict[str, Any]) -> None:
    found = decided(**changed)
    assert found.kind == "confirm"
    assert reason in found.reasons


@pytest.mark.parametrize(("reason", "changed"), CHOSEN)
def test_where_it_is_unclear_which_tool_is_meant_there_is_a_choice(
    reason: str, changed: dict[str, Any]
) -> None:
    found = decided(**changed)
    assert found.kind == "choose"
    assert reason in found.reasons


@pytest.mark.parametrize(("one", "other"), list(product(CONFIRMED, CHOSEN))[::7])
def test_doubts_do_not_cancel_each_other(
    one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]
) -> None:
    if {*one[1]} & {*other[1]}:
        assert decided(**one[1]).kind != "act"
        return
    found = decided(**one[1], **other[1])
    assert found.kind == "choose"
    assert {one[0], other[0]} <= {*found.reasons}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"route": replace(SURE, matches=())}, RoutingDecision("forge", ("no_candidate",))),
        ({"candidate": None}, RoutingDecision("forge", ("no_candidate",))),
        ({"route": replace(SURE, probability=0.099)}, RoutingDecision("forge", ("below_forge",))),
        ({"route": replace(SURE, probability=nan)}, RoutingDecision("forge", ("below_forge",))),
        (
            {"route": replace(SURE, probability=0.05), "same_api": "powerdns"},
            RoutingDecision("adapt", ("same_api", "below_forge"), "powerdns", "adapt"),
        ),
        (
            {"candidate": None, "intent": replace(COMMAND, certain=False)},
            RoutingDecision("choose", ("uncertain_intent", "no_candidate")),
        ),
        (
            {"candidate": None, "same_api": "x", "intent": replace(COMMAND, certain=False)},
            RoutingDecision("choose", ("uncertain_intent", "no_candidate")),
        ),
        ({"intent": MAKING, "route": replace(SURE, probability=0.2)},
         RoutingDecision("forge", ("creation",), "", "forced")),
        ({"intent": MAKING},
         RoutingDecision("adapt", ("creation", "near_match"), "harbour", "adapt")),
        ({"intent": MAKING, "candidate": replace(GOOD, third_party=True, extensible=False)},
         RoutingDecision("forge", ("creation",), "", "forced")),
        ({"intent": MAKING, "candidate": replace(GOOD, state="archived")},
         RoutingDecision("forge", ("creation",), "", "forced")),
        ({"intent": MAKING, "candidate": None, "same_api": "powerdns"},
         RoutingDecision("adapt", ("creation", "same_api"), "powerdns", "adapt")),
        ({"intent": ADVICE}, RoutingDecision("choose", ("advice",))),
        ({"intent": REMARK}, RoutingDecision("choose", ("remark",))),
        ({"intent": REMARK, "route": replace(SURE, probability=0.3)},
         RoutingDecision("answer", ("remark",))),
        ({"intent": ADVICE, "candidate": None}, RoutingDecision("answer", ("advice",))),
        ({"intent": ADVICE, "candidate": None, "same_api": "x"},
         RoutingDecision("answer", ("advice",))),
    ],
)  # fmt: skip
def test_what_is_done_where_nothing_is_called(
    changed: dict[str, Any], expected: RoutingDecision
) -> None:
    assert decided(**changed) == expected


def test_a_server_of_the_same_api_that_lacks_the_operation_is_extended() -> None:
    unsure = replace(SURE, probability=0.3)
    for same in ("harbour", "powerdns"):
        found = decided(unsure, same_api=same)
        assert (found.kind, found.server, found.strategy) == ("adapt", same, "adapt")
    guessed = decided(unsure, same_api="harbour", intent=replace(COMMAND, certain=False))
    assert guessed.kind == "choose"


@given(
    probability=st.floats(0, 1),
    margin=st.floats(-1, 1),
    access=st.sampled_from(["read", "write"]),
    state=st.sampled_from(["active", "experimental", "quarantined", "archived"]),
    level=st.sampled_from(["probationary", "standard", "trusted", "degraded", "experimental"]),
    flags=st.lists(st.booleans(), min_size=6, max_size=6),
    task=st.sampled_from(["list berths", "how do I list berths?", "weather this", "book berth 1"]),
    origin=st.sampled_from(["task", "given", "default", "example", "memory", "step", "model"]),
)
def test_nothing_acts_but_a_plain_read(
    probability: float,
    margin: float,
    access: Any,
    state: Any,
    level: Any,
    flags: list[bool],
    task: str,
    origin: Any,
) -> None:
    third, prose, own, meaning, veto, unused = flags
    route = Route((MATCH,), probability, ("another verb",) if veto else (), meaning)
    candidate = Candidate("harbour", "x", access, state, level, third, prose, own)
    reading = Reading({"a": 1}, {"a": origin}, unused=("x",) if unused else ())
    found = decide(route, candidate, reading, classify_task(task), BANDS, margin=margin)
    if found.kind == "act":
        assert task == "list berths"
        assert (access, state) == ("read", "active")
        assert level in ("standard", "trusted") or (own and level == "probationary")
        assert meaning
        assert {third, prose, veto, unused} == {False}
        assert origin not in ("example", "memory")
        assert probability >= BANDS.act
        assert margin >= BANDS.margin
    assert (not found.reasons) == (found.kind == "act")


def test_bands_are_settings() -> None:
    wide = DecisionBands(act=0.5, confirm=0.2, margin=0.0)
    route = replace(SURE, probability=0.6)
    assert decide(route, GOOD, FULL, COMMAND, wide, margin=0.0).kind == "act"
    assert decide(route, GOOD, FULL, COMMAND, BANDS, margin=0.0).kind == "choose"
    assert {f.name for f in fields(DecisionBands)} == {"act", "confirm", "adapt", "forge", "margin"}
