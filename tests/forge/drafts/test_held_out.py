"""Cases that the code's author does not see: they ask for more than the tests, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.held_out import find_repeated_cases, merge_cases


def drafted(**changed: Any) -> Draft:
    draft = parse_draft({**EXAMPLE, **changed})
    assert isinstance(draft, Draft), draft
    return draft


def case(numeral: str, number: int) -> dict[str, Any]:
    arguments = {"numeral": numeral}
    return {"tool": "from_roman", "arguments": arguments, "result": {"number": number}}


def test_the_example_asks_for_what_its_tests_do_not() -> None:
    assert find_repeated_cases(drafted()) == ()


@pytest.mark.parametrize(
    "cases", [[], [case("XIV", 14), case("mdc", 1600)], [case("XIV", 14), case("XLII", 42)]]
)
def test_cases_that_repeat_the_tests_are_sent_back(cases: list[dict[str, Any]]) -> None:
    (problem,) = find_repeated_cases(drafted(cases=cases))
    assert problem.where == "/cases"
    assert "from_roman" in problem.reason


def test_a_tool_that_can_be_asked_for_little_needs_none() -> None:
    flag = {"type": "object", "properties": {"on": {"type": "boolean"}}}
    tool = {**EXAMPLE["tools"][0], "input_schema": flag}
    assert find_repeated_cases(drafted(tools=[tool], cases=[])) == ()


def test_a_changed_case_takes_the_place_of_its_like_and_no_other_is_lost() -> None:
    before = [case("XLII", 41), case("X", 10)]
    assert merge_cases(before, [case("XLII", 42)]) == [case("X", 10), case("XLII", 42)]
    assert merge_cases(before, []) == before
    assert merge_cases(None, [case("V", 5)]) == [case("V", 5)]
    assert merge_cases(before, "none") == before
