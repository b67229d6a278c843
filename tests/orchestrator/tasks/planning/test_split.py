from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.planning.split import MAX_STEPS, split_task


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
