"""The adequacy stage: tests that notice no mistake, and code that knows its cases alone."""

from __future__ import annotations

import ast
import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.example import Example, parse_answers
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.schemas.boundary_values import iterate_neighbours
from sandbox.stages.adequacy import prove_adequacy
from sandbox.stages.mutants import MAX_MUTANTS, generate_mutants
from sandbox.stages.suite import build_harness
from sandbox.wire.policy import Policy
from tests.sandbox.computing import computing
from tests.sandbox.local import LocalRunner

SECONDS = 60.0
"""What all changes to the code may take: more than they do on a busy machine."""
HALVE = '''
from toolwright import ToolError, tool


@tool
def halve(number):
    """Half of it, down to the cent, of what is over 10."""
    if number < 0:
        raise ToolError("negative numbers have no half here")
    if number > 10:
        return {"half": round(number / 2, 2)}
    return {"half": 0}
'''
ROTE = '''
from toolwright import ToolError, tool

KNOWN = {20: 10, 30: 15, 44: 22, 11: 5.5}


@tool
def halve(number):
    """Half of it."""
    if number not in KNOWN:
        raise ToolError("negative numbers have no half here")
    return {"half": KNOWN[number]}
'''


def halves(*pairs: tuple[float, float]) -> list[Example]:
    return [Example("halve", {"number": n}, {"half": half}) for n, half in pairs]


THOROUGH = [
    *halves((20, 10), (11, 5.5), (10, 0), (10.5, 5.25), (0, 0), (31.125, 15.56)),
    Example("halve", {"number": -1}, failure="tool"),
]


def tried(code: str, examples: list[Example], suite: str = "") -> StageReport:
    bundle = computing(code)
    return asyncio.run(
        prove_adequacy(
            bundle, examples, suite, opened(build_harness(bundle)), opened(bundle), budget=SECONDS
        )
    )


def opened(bundle: Bundle) -> Any:
    return lambda: LocalRunner().open(bundle, Broker(Policy(()), Cassette(())))


def test_cases_that_notice_mistakes_are_enough() -> None:
    report = tried(HALVE, THOROUGH)
    assert report.verdict == "passed", report.list_failures()


def test_cases_that_notice_little_are_sent_back_with_what_they_miss() -> None:
    report = tried(HALVE, halves((20, 10), (30, 15), (44, 22)))
    assert report.verdict == "failed"
    (cell,) = report.list_failures()
    assert "line 8: number < 0 became number <= 0" in cell.evidence
    assert "raise ToolError" in cell.evidence


def test_a_suite_counts_beside_the_cases() -> None:
    suite = """
import pytest
from server import halve
from toolwright import ToolError


@pytest.mark.parametrize(("number", "half"), [(10, 0), (11, 5.5), (31.125, 15.56), (0, 0)])
def test_half(number, half):
    assert halve(number=number) == {"half": half}


def test_refused():
    with pytest.raises(ToolError):
        halve(number=-1)
"""
    assert tried(HALVE, halves((20, 10), (30, 15)), suite).verdict == "passed"


def test_a_table_of_its_own_cases_is_no_computation() -> None:
    examples = [
        *halves((20, 10), (30, 15), (44, 22), (11, 5.5)),
        Example("halve", {"number": -1}, failure="tool"),
    ]
    report = tried(ROTE, examples)
    assert [cell.case for cell in report.list_failures()] == ["by rote"]
    assert "knows its own cases" in report.list_failures()[0].evidence


def test_code_that_a_mistake_lets_run_for_ever_comes_to_an_end() -> None:
    code = '''
from toolwright import tool


@tool
def halve(number):
    """Half of it, by counting."""
    half = 0
    while number >= 2:
        number = number - 2
        half = half + 1
    return {"half": half}
'''
    report = tried(code, halves((20, 10), (4, 2), (2, 1), (0, 0)))
    assert report.verdict == "passed", report


def test_changes_that_were_not_tried_are_undecided_and_never_noticed() -> None:
    bundle = computing(HALVE)
    harness = opened(build_harness(bundle))
    proof = prove_adequacy(bundle, THOROUGH, "", harness, opened(bundle), budget=-1.0)
    report = asyncio.run(proof)
    assert report.verdict == "inconclusive"
    assert "0 of 0 changes to the code were noticed" in report.note
    assert "are undecided" in report.note


@pytest.mark.parametrize("code", [HALVE, ROTE])
def test_every_mutant_is_code_with_one_change_and_the_same_each_time(code: str) -> None:
    found = generate_mutants(code)
    assert found == generate_mutants(code)
    plain = ast.unparse(ast.parse(code))
    for mutant in found:
        changed = [
            (one, other)
            for one, other in zip(plain.splitlines(), mutant.code.splitlines(), strict=True)
            if one != other
        ]
        assert len(changed) == 1, mutant.change


def test_mutants_are_spread_over_long_code() -> None:
    functions = "\n".join(f"def f{n}(a):\n    return a + {n} < {n}\n" for n in range(100))
    found = generate_mutants(functions)
    assert len(found) == MAX_MUTANTS
    assert len({mutant.line for mutant in found}) >= MAX_MUTANTS / 2


def test_what_is_only_said_is_not_changed() -> None:
    code = 'def f(a):\n    """1 + 1"""\n    raise ToolError("over %d" % 5)\n'
    assert [mutant.change for mutant in generate_mutants(code)] == [
        "raise ToolError('over %d' % 5) became pass"
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_a_neighbour_differs_in_one_argument(arguments: dict[str, Any]) -> None:
    for near in iterate_neighbours(arguments):
        assert near.keys() == arguments.keys()
        assert sum(repr(near[name]) != repr(arguments[name]) for name in near) <= 1


def test_a_case_with_several_answers_to_one_call_is_tried_with_them_in_order() -> None:
    code = """
from toolwright import servers, tool


@tool
def halve(number):
    for turn in range(3):
        if servers.call("jobs.get", {"id": number})["state"] == "done":
            return {"turns": turn}
    return {"turns": 9}
"""
    answers = [
        {"tool": "jobs.get", "arguments": {"id": 7}, "result": {"state": state}}
        for state in ("pending", "done")
    ]
    case = Example("halve", {"number": 7}, {"turns": 1}, answers=parse_answers(answers))
    assert "changes were tried" in tried(code, [case]).note
