"""Tests from one draft to the next."""

from __future__ import annotations

from typing import Any

import pytest

from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.brief import EXAMPLE, EXAMPLE_CODE
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.suite import carry_tests
from sandbox.stages.static.suite import check_suite

FIRST = """import math

import pytest
from server import area, halve

ROWS = [(4, 2), (6, 3)]


@pytest.mark.parametrize(("number", "half"), ROWS)
def test_half(number, half):
    assert halve(number=number) == {"half": half}


def near(value, wanted):
    return math.isclose(value, wanted)


def test_area():
    assert near(area(radius=1)["area"], 3.14159265358979)
"""
MORE = """from server import halve


def test_third():
    assert halve(number=9) == {"half": 4.5}
"""


def whole(tests: str, why: str = "", gone: Any = ()) -> str:
    made = carry_tests(tests, FIRST, why, gone)
    assert isinstance(made, str), made
    assert check_suite(made) == ()
    return made


def test_tests_that_a_draft_leaves_out_stay_with_all_that_they_use() -> None:
    made = whole(MORE)
    for kept in ("def test_third", "def test_half", "def test_area", "ROWS = ", "def near"):
        assert made.count(kept) == 1
    assert "def test_half" in whole("")


def test_the_same_tests_once_more_are_the_same_tests() -> None:
    assert whole(FIRST) == FIRST
    assert carry_tests(FIRST, "", "") == FIRST
    assert carry_tests("", "", "") == ""
    assert carry_tests("", FIRST, "", {"area", "halve"}) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('== {"half": half}', "!= None"),
        ("(4, 2)", "(4, 3)"),
        ("ROWS = [(4, 2), (6, 3)]", "ROWS = [(4, 2)]"),
        ('{"half": half}', '{"half": half} or True'),
    ],
)
def test_a_test_is_not_changed_without_a_word(old: str, new: str) -> None:
    weaker = FIRST.replace(old, new)
    problems = carry_tests(weaker, FIRST, "better code", ())
    assert not isinstance(problems, str)
    assert [problem.where for problem in problems] == ["/tests"]
    assert "test_half" in problems[0].reason
    assert carry_tests(weaker, FIRST, "test_half expected the wrong half", ()) == weaker


def test_what_a_kept_test_uses_is_not_changed_under_it() -> None:
    loose = "def near(value, wanted):\n    return True\n\n\n" + MORE
    problems = carry_tests(loose, FIRST, "", ())
    assert not isinstance(problems, str)
    assert "test_area" in problems[0].reason


def test_a_test_is_dropped_only_where_it_is_said() -> None:
    assert "def test_area" not in whole(MORE, "drop test_area: the task has no circles")
    assert "def test_area" in whole(MORE, "test_area passes by now")


def test_tests_of_tools_that_are_left_out_go_with_them() -> None:
    made = whole("", gone={"area"})
    assert "def test_area" not in made
    assert "area" not in made.replace("def test_half", "")


def test_code_that_is_no_python_is_left_to_the_gate() -> None:
    assert carry_tests("def (", FIRST, "") == "def ("


def drafted(**changes: Any) -> Draft:
    made = parse_draft({**EXAMPLE, **changes})
    assert isinstance(made, Draft), made
    return made


def test_tools_cases_and_tests_without_code_are_a_specification() -> None:
    given = {key: value for key, value in EXAMPLE.items() if key != "code"}
    made = parse_draft(given)
    assert isinstance(made, Draft)
    assert made.is_specification
    assert not drafted().is_specification
    without_tests = {key: value for key, value in given.items() if key != "tests"}
    assert not isinstance(parse_draft(without_tests), Draft)


def test_other_tests_and_packages_make_another_draft() -> None:
    digests = {
        drafted().compute_digest(),
        drafted(tests=MORE).compute_digest(),
        drafted(packages=["a"]).compute_digest(),
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    "packages", ["six", [""], ["six>=1"], ["git+https://x"], ["./a.whl"], ["-r x"], ["a"] * 17, [3]]
)
def test_what_is_no_exact_package_is_refused(packages: Any) -> None:
    problems = parse_draft({**EXAMPLE, "packages": packages})
    assert isinstance(problems, tuple)
    assert problems[0].where.startswith("/packages")


def test_a_mutant_is_held_to_its_parents_tests() -> None:
    parent = build_bundle(drafted(), Purpose("roman", "roman", ""))
    kept = parse_draft({"tools": [{"name": "from_roman"}]}, parent, (), str(EXAMPLE["tests"]))
    assert isinstance(kept, Draft)
    assert kept.tests == EXAMPLE["tests"]
    assert not kept.is_specification
    assert kept.source_code.strip().endswith(EXAMPLE_CODE.strip()[-40:])
