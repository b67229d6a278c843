"""What a second reading says of calls is held against a server; a third says who is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.bundle.report import CaseResult, StageReport
from sandbox.stages.acceptance import RULINGS, Ruling, apply_rulings, is_within

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_has_all_that_is_expected_of_itself(value: Any) -> None:
    assert is_within(value, value)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), VALUES)
def test_more_keys_than_expected_do_no_harm_and_a_missing_one_does(
    value: dict[str, Any], more: Any
) -> None:
    larger = {**value, "another": more}
    assert is_within(value, larger)
    assert not is_within({**larger, "more": 1}, larger)


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        (1, True),
        ([1], [1, 2]),
        ([1, 2], [1]),
        ({"a": 1}, [1]),
        ("1", 1),
        ({"a": {"b": 1}}, {"a": {}}),
    ],
)
def test_other_values_are_not_taken_for_what_is_expected(expected: Any, given: Any) -> None:
    assert not is_within(expected, given)


def report(*verdicts: str) -> StageReport:
    cells = tuple(
        CaseResult("t", f"claim {at}", v, "another: the task says 'x'", "{}", "1", "2")  # type: ignore[arg-type]
        for at, v in enumerate(verdicts, 1)
    )
    failed = "failed" in verdicts
    return StageReport("acceptance", "failed" if failed else "passed", 1.0, cells)


@pytest.mark.parametrize(
    ("ruling", "verdict"),
    [("claim", "failed"), ("neither", "failed"), ("server", "passed"), ("open", "passed")],
)
def test_only_a_claim_that_a_third_reading_does_not_uphold_is_taken_back(
    ruling: Ruling, verdict: str
) -> None:
    after = apply_rulings(report("passed", "failed"), {"claim 2": ruling})
    assert after.verdict == verdict
    assert after.cases[0].verdict == "passed"


def test_what_nobody_ruled_on_stays_failed() -> None:
    after = apply_rulings(report("failed", "failed"), {"claim 1": "server"})
    assert [cell.verdict for cell in after.cases] == ["passed", "failed"]
    assert after.verdict == "failed"


@pytest.mark.parametrize("ruling", RULINGS)
def test_a_cell_that_passed_is_nobodys_to_rule_on(ruling: Ruling) -> None:
    assert apply_rulings(report("passed"), {"claim 1": ruling}) == report("passed")


def test_what_the_task_leaves_open_is_told_as_that_and_not_as_passed() -> None:
    cell = apply_rulings(report("failed"), {"claim 1": "open"}).cases[0]
    assert (cell.verdict, cell.evidence) == ("inconclusive", "the task leaves it open")
