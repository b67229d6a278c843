from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.routing.intent import classify_task
from orchestrator.tasks.routing.kinds import TaskIntent
from orchestrator.tasks.routing.sentences import MAX_TASK

CASES = [
    line.split("\t")
    for line in Path(__file__).with_name("intents.tsv").read_text(encoding="utf-8").splitlines()
]
"""What a task is, and the task: `read` and `make` are certain, `write` asks for a change,
`maybe-make` is asked about, `no-act` may be of any kind as long as nothing is read because of it.
"""
FITTING = {
    "read": lambda found: (found.kind, found.certain, found.access) == ("command", True, "read"),
    "write": lambda found: (found.kind, found.access) == ("command", "write"),
    "make": lambda found: (found.kind, found.certain) == ("creation", True),
    "maybe-make": lambda found: (found.kind, found.certain) == ("creation", False),
    "advice": lambda found: found.kind == "advice",
    "remark": lambda found: found.kind == "remark",
    "no-act": lambda found: not may_act(found),
}
TASKS = {kind: [task for told, task in CASES if told == kind] for kind in FITTING}


def may_act(found: TaskIntent) -> bool:
    return found.kind in ("command", "creation") and found.certain


@pytest.mark.parametrize("kind", FITTING)
def test_the_kind_of_a_task(kind: str) -> None:
    found = [classify_task(task) for task in TASKS[kind]]
    assert [each for each in found if not FITTING[kind](each)] == []


def test_half_of_the_table_is_not_to_be_acted_on() -> None:
    kinds = [kind for kind, _ in CASES]
    inert = sum(kind in ("advice", "remark", "no-act") for kind in kinds)
    assert len(kinds) >= 150
    assert set(kinds) == set(FITTING)
    assert inert >= len(kinds) / 2


QUIET = [task for kind, task in CASES if kind in ("remark", "no-act", "advice")]


@pytest.mark.parametrize("lead", ["", "  ", "\n", "Hey, ", "Please "])
def test_politeness_makes_no_remark_a_command(lead: str) -> None:
    tasks = [lead + task for task in QUIET if not task.startswith(">")]
    assert [task for task in tasks if may_act(classify_task(task))] == []


def test_a_count_without_a_verb_is_a_question_that_is_asked_about() -> None:
    asked = TaskIntent("command", "question", False, "read")
    assert classify_task("how many open orders") == asked
    assert classify_task("how much milk in stock") == asked
    assert classify_task("how many times I told you").kind == "advice"
    assert classify_task("how many stars went dark").kind == "remark"


def test_whether_there_are_any_of_several_things_is_asked_about() -> None:
    assert classify_task("any open tickets for Bo?").kind == "command"
    assert not classify_task("any open tickets for Bo?").certain
    assert classify_task("any ideas?").kind == "advice"


@given(st.sampled_from([task for kind, task in CASES if kind == "read"]))
def test_a_command_that_is_quoted_is_none(task: str) -> None:
    assert not may_act(classify_task(f"\N{LEFT DOUBLE QUOTATION MARK}{task}”"))
    assert not may_act(classify_task(f"> {task}"))


@given(st.sampled_from([task for kind, task in CASES if kind == "read" and task.isascii()]))
def test_a_command_that_is_taken_back_is_none(task: str) -> None:
    assert not may_act(classify_task(f"{task}, just kidding"))
    assert not may_act(classify_task(f"{task}\nNo, never mind."))


@given(st.text())
def test_any_text_has_a_kind(task: str) -> None:
    assert classify_task(task).kind in ("command", "creation", "advice", "remark")


@given(st.text(alphabet=st.characters(exclude_categories=("L", "N")), max_size=50))
def test_nothing_said_asks_for_nothing(task: str) -> None:
    assert not may_act(classify_task(task))


def test_a_task_that_is_too_long_is_never_certain() -> None:
    assert may_act(classify_task("list the zones of " + "a" * (MAX_TASK - 100)))
    assert not may_act(classify_task("list the zones of " + "a " * MAX_TASK))
    assert not may_act(classify_task("list the zones. " + "x" * MAX_TASK))


def test_letters_that_are_not_seen_change_nothing() -> None:
    assert classify_task("do\N{ZERO WIDTH SPACE}n't list the zones").kind == "remark"
    assert classify_task("don\N{RIGHT SINGLE QUOTATION MARK}t list the zones").kind == "remark"


def test_a_stop_is_a_place_where_an_article_stands_before_it() -> None:
    assert classify_task("next trams at the stop Castle").kind == "command"
    assert classify_task("trams at Castle stop annoying me").kind != "command"


@pytest.mark.parametrize(
    "task", ["- [ ] show invoice 2", "[ ] show invoice 2", "* [x] list the berths", "[X] list them"]
)
def test_a_line_of_a_list_of_things_to_do_orders_nothing(task: str) -> None:
    assert classify_task(task) == TaskIntent("remark", "label")
    assert classify_task("- show invoice 2 with tags []").kind == "command"


@pytest.mark.parametrize(
    "task",
    [
        "berth list",
        "all printers",
        "all the berths pls",
        "zones, all of them",
        "invoices please",
        "bus stops?",
    ],
)
def test_words_without_a_verb_that_ask_for_several_are_a_listing(task: str) -> None:
    assert classify_task(task) == TaskIntent("command", "listing", False, "read")


@pytest.mark.parametrize(
    "task", ["berths", "recipe please", "recipe?", "all berths are taken", "no invoices please"]
)
def test_other_words_without_a_verb_are_none(task: str) -> None:
    assert classify_task(task).reason != "listing"


def test_please_asks_for_data_and_for_no_change() -> None:
    assert classify_task("guest 6 please") == TaskIntent("command", "terse", False, "read")
    assert classify_task("guest 6").access is None


@pytest.mark.parametrize(
    "task",
    [
        "tickets assigned to Bob",
        "the owner of dog 1",
        "price of item 3",
        "shipped orders",
        "orders that are paid",
        "cancelled appointments on 4 December",
        "booked visits with Mira Shah",
    ],
)
def test_words_for_what_there_is_order_no_write(task: str) -> None:
    assert (found := classify_task(task)).kind == "command"
    assert (found.reason, found.certain, found.access) == ("terse", False, "read")


@pytest.mark.parametrize("task", ["jobs that are not done", "customers without email"])
def test_what_has_to_be_left_out_is_asked_about(task: str) -> None:
    found = classify_task(task)
    assert (found.kind, found.certain, found.access) == ("command", False, "read")


@pytest.mark.parametrize("task", ["tickets are annoying", "shipped the order", "deleted it"])
def test_what_tells_of_things_asks_for_none(task: str) -> None:
    assert classify_task(task).kind == "remark"


def test_why_something_is_ordered_makes_it_no_statement() -> None:
    found = classify_task("delete zone 3 because it was a mistake")
    assert (found.kind, found.access) == ("command", "write")
    assert classify_task("I left because it was late").kind == "remark"


def test_a_question_about_just_one_thing_needs_no_mark() -> None:
    found = classify_task("who opened ticket 12")
    assert (found.kind, found.certain, found.access) == ("command", False, "read")
    assert classify_task("who opened the window").kind == "remark"
