from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.planning.split import (
    MAX_STEPS,
    find_order,
    plan_task,
    spell_out,
    split_task,
)


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        ("list the zones", ("list the zones",)),
        ("list the zones, then delete one", ("list the zones", "delete one")),
        ("list the zones and then delete one", ("list the zones", "delete one")),
        ("one; two;three", ("one", "two", "three")),
        ("1. one\n2) two\n- three\n• four", ("one", "two", "three", "four")),
        ("strengthen the fence", ("strengthen the fence",)),
        ("pick authentic items", ("pick authentic items",)),
        ("send 1.5 units", ("send 1.5 units",)),
        ("", ("",)),
        (" ; ;\n", (" ; ;\n",)),
        ("\n".join(map(str, range(100, 200))), tuple(map(str, range(100, 100 + MAX_STEPS)))),
    ],
)
def test_a_task_is_split_where_it_says_so_and_nowhere_else(
    task: str, steps: tuple[str, ...]
) -> None:
    assert split_task(task) == steps


@given(st.text())
def test_any_text_has_one_to_ten_steps_made_of_its_own_words(task: str) -> None:
    steps = split_task(task)
    assert 1 <= len(steps) <= MAX_STEPS
    assert all(step in task for step in steps)


@pytest.mark.parametrize(
    ("task", "order"),
    [
        ("manage ski resorts: list the open lifts", "list the open lifts"),
        ("Manage ski resorts. List the open lifts.", "List the open lifts."),
        ("manage ski resorts, and list the open lifts", "list the open lifts"),
        ("work with invoices - show invoice 2", "show invoice 2"),
        ("manage ski resorts", "manage ski resorts"),
        ("manage ski resorts: it is fun", "manage ski resorts: it is fun"),
        ("manage expectations: don't list the lifts", "manage expectations: don't list the lifts"),
        ("list the lifts: open ones", "list the lifts: open ones"),
    ],
)
def test_what_a_tool_is_for_is_no_order_beside_the_order_that_follows(
    task: str, order: str
) -> None:
    assert find_order(task) == order


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        (
            "show ticket 3 and its comments",
            ("show ticket 3", "show the comments of ticket 3"),
        ),
        (
            "Please show me the order APP-12, and also all its open items.",
            ("Please show me the order APP-12, and also all its open items.",),
        ),
        (
            "Please show me the order 12, and also its open items.",
            ("Please show me the order 12", "Please show me the open items of the order 12"),
        ),
        ("show order 15 and order 16", ("show order 15", "show order 16")),
        ("show order 15 and boat 16", ("show order 15 and boat 16",)),
        ("show the tickets and the people", ("show the tickets", "show the people")),
        (
            "list the boats, all orders and customers",
            ("list the boats", "list all orders", "list customers"),
        ),
        ("list open and closed tickets", ("list open and closed tickets",)),
        ("list the tickets of Ada and Bo", ("list the tickets of Ada and Bo",)),
        ("cancel the orders and the bookings", ("cancel the orders and the bookings",)),
        ("show ticket 3 with its comments", ("show ticket 3 with its comments",)),
        ("delete ticket 3 and its comments", ("delete ticket 3 and its comments",)),
        ("list the tickets and their comments", ("list the tickets and their comments",)),
    ],
)
def test_an_order_to_show_a_thing_and_what_it_has_is_two_steps(
    task: str, steps: tuple[str, ...]
) -> None:
    assert spell_out(task) == steps
    assert tuple(step.task for step in plan_task(task).steps) == tuple(
        step.strip(" .,") if len(steps) > 1 else step.rstrip(".") for step in steps
    )
