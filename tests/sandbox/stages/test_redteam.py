"""The red team: what hostile arguments and a broken API find in code that somebody wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, RequestPattern
from sandbox.bundle.report import CaseResult, StageReport, from_json, to_json
from sandbox.schemas.hostile_values import generate_attacks, simplify_attack
from sandbox.schemas.validator import get_checker
from sandbox.stages.prove import prove_bundle
from sandbox.stages.redteam import build_attack_opener, prove_redteam
from tests.sandbox.computing import CASES, HALVE, case, computing, takes
from tests.sandbox.local import LocalRunner

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def attacked(
    bundle: Bundle,
    examples: Sequence[Example] = CASES,
    seconds: float = 60.0,
    budget: float = 120.0,
) -> StageReport:
    opened = build_attack_opener(bundle, LocalRunner())
    return asyncio.run(prove_redteam(bundle, examples, opened, seconds=seconds, budget=budget))


def code(body: str, parameter: str = "number") -> str:
    return HALVE.replace('return {"half": number / 2}', body).replace("(number)", f"({parameter})")


def found(report: StageReport) -> list[CaseResult]:
    return list(report.list_failures())


def test_sound_code_withstands() -> None:
    report = attacked(computing())
    assert report.verdict == "passed"
    assert [cell.evidence for cell in report.cases] == ["all withstood"]
    assert from_json(to_json(report)) == report


def test_the_compilers_code_has_no_red_team() -> None:
    proof = asyncio.run(prove_bundle(computing(), LocalRunner()))
    assert "redteam" not in [report.stage for report in proof.reports]
    proof = asyncio.run(prove_bundle(computing(), LocalRunner(), examples=CASES))
    assert proof.reports[-1].stage == "redteam"
    assert proof.passed


def test_a_crash_is_told_with_the_least_arguments_that_cause_it() -> None:
    body = (
        "return {'half': sum(int(part) for part in text.split() if part.isdigit()), 'of': text[:9]}"
    )
    bundle = computing(code(body, "text, other"), text=TEXT, other=TEXT)
    usual = case({"half": 3, "of": "1 2"}, text="1 2", other="x")
    cells = found(attacked(bundle, (usual,)))
    assert cells
    for cell in cells:
        assert "ValueError" in cell.evidence
        assert cell.case.startswith("attack, seed 0: ")
        assert (cell.operation, cell.expected) == ("halve", "a result or a ToolError")
        assert json.loads(cell.got)["failure"] == "bug"
        assert cell.given.startswith('{"other": "x", ')


def test_what_is_given_can_be_run_again() -> None:
    bundle = computing(code("return {'half': {'a': 1}[text[:1] or 'a']}", "text"), text=TEXT)
    cells = found(attacked(bundle, (case({"half": 1}, text="a"),)))
    assert len(cells) == 1
    again = found(attacked(bundle, (case({"half": 1}, text="a"),)))
    assert [(c.case, c.given) for c in cells] == [(c.case, c.given) for c in again]


def test_code_without_an_end_is_a_finding_and_ends_the_attack() -> None:
    body = "while len(text) > 500:\n        pass\n    return {'half': 1}"
    report = attacked(computing(code(body, "text"), text=TEXT), (case(text="a"),), seconds=0.3)
    assert "ended its sandbox" in found(report)[0].evidence
    assert report.coverage < 1


def test_code_that_never_ends_is_tried_twice_at_most() -> None:
    endless = computing(code("while True:\n        pass"))
    report = attacked(endless, seconds=0.3)
    assert found(report)[0].case == "the usual call"
    assert len(found(report)) <= 2


def test_code_that_never_ends_without_its_api_ends_the_outages() -> None:
    stuck = (
        "try:\n        http.request('GET', '/x')\n    except ToolError:\n        pass\n"
        "    while True:\n        pass"
    )
    report = attacked(api(stuck), seconds=0.3)
    cells = found(report)
    assert len(cells) == 2
    assert all("ended its sandbox" in cell.evidence for cell in cells)


def test_recursion_without_bound_is_a_finding() -> None:
    deep = "def deep(text):\n    return deep(text[1:]) + 1 if text else 0"
    body = f"return {{'half': deep(text)}}\n\n{deep}"
    (cell,) = found(attacked(computing(code(body, "text"), text=TEXT), (case(text="a"),)))
    assert "RecursionError" in cell.evidence


def test_a_result_without_measure_is_a_finding() -> None:
    body = "return {'half': text * 50}"
    cells = found(attacked(computing(code(body, "text"), text=TEXT), (case(text="a"),)))
    assert any("characters" in cell.evidence for cell in cells)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return http.request('GET', 'https://evil.test/x').body", "GET https://evil.test/x"),
        ("return {'a': files.read_text('/etc/passwd')}", "READ file:///etc/passwd"),
        ("return {'a': environment.get('HOME')}", "READ env:HOME"),
    ],
)
def test_what_is_asked_for_without_being_declared_is_a_finding(body: str, told: str) -> None:
    asking = code(body).replace("ToolError, tool", "environment, files, http, tool")
    cells = found(attacked(computing(asking)))
    assert any(told in cell.evidence for cell in cells)


def test_state_between_calls_is_a_finding() -> None:
    body = "SEEN.append(1)\n    return {'half': len(SEEN)}"
    cells = found(attacked(computing("SEEN = []\n" + code(body))))
    assert "once more, after other calls" in {cell.case for cell in cells}


def api(body: str) -> Bundle:
    asking = RequestPattern("GET", "https://api.test/x")
    bundle = computing(code(body).replace("ToolError, tool", "ToolError, http, tool"))
    tool = replace(bundle.tools[0], requests=(asking,))
    return replace(
        bundle, tools=(tool,), base_url="https://api.test", permissions=("network:api.test",)
    )


def test_an_outage_that_is_told_as_one_is_none() -> None:
    assert attacked(api("return http.request('GET', '/x')")).verdict == "passed"


def test_an_outage_that_is_told_as_a_result_is_a_finding() -> None:
    body = (
        "try:\n        return http.request('GET', '/x').body\n"
        "    except ToolError:\n        return {'half': 0}"
    )
    cells = {cell.case: cell for cell in found(attacked(api(body)))}
    assert set(cells) >= {
        "the API: refused connections",
        "the API: connections that are reset",
        "the API: no answer ever",
        "the API: a storm of 503",
    }
    refused = cells["the API: refused connections"]
    assert "out of order, it says that it succeeded" in refused.evidence
    assert refused.expected == "a failure"


def test_a_page_in_place_of_json_must_not_crash_the_code() -> None:
    cells = found(attacked(api("return {'half': http.request('GET', '/x').body['n']}")))
    assert [cell.case for cell in cells] == ["the API: a page to sign in at"]


def test_time_is_measured_out() -> None:
    report = attacked(computing(), budget=0.0)
    assert (report.verdict, report.coverage) == ("passed", 0.0)
    assert "of" in report.note


SCHEMAS = st.sampled_from(
    [
        takes(text={"type": "string", "maxLength": 50}, number={"type": "integer", "maximum": 5}),
        takes(rows={"type": "array", "items": {"type": "number"}, "maxItems": 4}),
        takes(deep={"type": "object", "properties": {"a": {"enum": ["x", "y"]}}}, any={}),
    ]
)
USUAL: dict[str, Any] = {"text": "abc", "number": 1, "rows": [1, 2], "deep": {"a": "x"}, "any": 1}


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_integers_that_no_float_holds_are_tried_where_nothing_bounds_them(kind: str) -> None:
    for bound, tried in (({}, True), ({"maximum": 9}, False)):
        schema = takes(number={"type": kind, **bound})
        made = generate_attacks(schema, {"number": 1}, get_checker(schema), Random(1))
        assert any(attack.arguments["number"] == 10**400 for attack in made) == tried


def test_nested_integers_are_tried_as_json_may_write_them_and_nested_lists_as_too_large() -> None:
    rows = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
    counts = {"type": "array", "items": {"type": "integer"}}
    schema, base = takes(rows=rows, counts=counts), {"rows": [[1, 2]], "counts": [1]}
    made = [
        attack.arguments
        for attack in generate_attacks(schema, base, get_checker(schema), Random(1))
    ]
    assert any(given["rows"][-1:] == [[1e308, 1e308]] for given in made)
    assert any(repr(given["counts"]) == "[2.0]" for given in made)


@settings(max_examples=15, deadline=None)
@given(SCHEMAS, st.integers(0, 2**32))
def test_every_attack_is_admitted_and_comes_again_from_its_seed(schema: Any, seed: int) -> None:
    base = {name: USUAL[name] for name in schema["properties"]}
    judge = get_checker(schema)
    made = list(generate_attacks(schema, base, judge, Random(seed)))
    assert made
    assert made == list(generate_attacks(schema, base, judge, Random(seed)))
    for attack in made:
        assert judge.find_problem(attack.arguments) is None
        for less in simplify_attack(attack, base, judge):
            assert judge.find_problem(less.arguments) is None
