"""The cases stage: what computes is proved by examples, and by what nobody thought of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, read_bundle
from sandbox.bundle.report import CaseResult, StageReport, from_json, to_json
from sandbox.clock import VirtualClock
from sandbox.session.interface import Outcome, Session
from sandbox.stages.cases import prove_cases
from sandbox.stages.prove import prove_bundle
from sandbox.wire.policy import Policy
from tests.sandbox.computing import CASES, HALVE, NUMBER, case, computing
from tests.sandbox.local import LocalRunner

WHOLE = {"type": "integer"}
TEXT = {"type": "string"}


def tried(
    bundle: Bundle, examples: Sequence[Example] = CASES, seconds: float = 60.0
) -> StageReport:
    runner = LocalRunner()

    def opened() -> Any:
        return runner.open(bundle, Broker(Policy(()), Cassette(())))

    return asyncio.run(prove_cases(bundle, examples, opened, seconds=seconds, budget=120.0))


def failed(report: StageReport) -> dict[str, CaseResult]:
    return {cell.case: cell for cell in report.list_failures()}


def code(body: str, parameter: str = "number") -> str:
    return HALVE.replace('return {"half": number / 2}', body).replace("(number)", f"({parameter})")


def test_code_that_does_what_its_examples_say_passes() -> None:
    report = tried(computing())
    assert report.verdict == "passed"
    assert {cell.case.partition(":")[0] for cell in report.cases} == {
        "case 1",
        "case 2",
        "malformed",
        "extreme",
    }
    assert from_json(to_json(report)) == report


def test_a_wrong_result_is_told_with_what_went_in_what_came_out_and_what_was_expected() -> None:
    (wrong,) = failed(tried(computing(), (case({"half": 3}, number=4), *CASES))).values()
    assert (wrong.operation, wrong.case, wrong.given) == ("halve", "case 1", '{"number": 4}')
    assert (wrong.expected, wrong.got) == ('{"half": 3}', '{"half": 2.0}')


@pytest.mark.parametrize("result", [{}, 0, "", [], None, False, {"half": 0}])
def test_an_example_that_an_empty_result_satisfies_is_sent_back(result: Any) -> None:
    body = f"return {result!r} if number == 7 else {{'half': number / 2}}"
    bundle = computing(code(body))
    shaped = replace(
        bundle.tools[0],
        output_schema={"type": "object", "properties": {"half": {"type": "number"}}},
    )
    bundle = replace(bundle, tools=(shaped,))
    found = failed(tried(bundle, (CASES[0], case(result, number=7))))
    assert "proves nothing" in found["case 2"].evidence
    assert (found["case 2"].code, found["case 2"].example) == ("proves_nothing", 2)
    # Beside two that are not empty and differ it says what is truly empty.
    assert "case 3" not in failed(tried(bundle, (*CASES, case(result, number=7))))


def test_examples_that_one_constant_satisfies_are_sent_back() -> None:
    constant = computing(code('return {"half": 2}'))
    found = failed(tried(constant, (CASES[0], case({"half": 2}, number=4.0))))
    assert "always gives the same result" in found["cases"].evidence
    assert "case 2" in failed(tried(constant))


def test_a_tool_without_arguments_needs_but_one_example() -> None:
    bundle = computing(code('return {"pi": 3}', ""))
    nothing = replace(bundle.tools[0], input_schema={"type": "object", "properties": {}})
    assert tried(replace(bundle, tools=(nothing,)), (case({"pi": 3}),)).verdict == "passed"


def test_a_tool_without_an_example_is_sent_back() -> None:
    assert "no case" in failed(tried(computing(), ()))["cases"].evidence


def test_an_example_whose_arguments_the_schema_refuses_proves_nothing_of_the_code() -> None:
    refused = case(failure="arguments", number="four")
    assert tried(computing(), (*CASES, refused)).verdict == "passed"
    assert "cases" in failed(tried(computing(), (CASES[0], refused)))
    expected = case({"half": 2}, number="four")
    assert (
        "refuses these arguments"
        in failed(tried(computing(), (*CASES, expected)))["case 3"].evidence
    )


def test_a_failure_that_was_expected_is_told_from_one_that_was_not() -> None:
    strict = computing(code('raise ToolError("no")'))
    found = failed(tried(strict, (case(failure="tool", number=1), case({"half": 1}, number=2))))
    assert set(found) == {"case 2"}
    assert '"failure": "tool"' in found["case 2"].got


@pytest.mark.parametrize(
    "body",
    [
        "return {'half': number / 2, 'id': str(__import__('uuid').uuid4())}",
        "SEEN.append(number); return {'half': number / 2 if len(SEEN) != 2 else 9}",
        "return {'half': number / 2, 'at': __import__('time').time_ns()}",
    ],
)
def test_what_differs_between_two_runs_is_sent_back(body: str) -> None:
    unsteady = computing("SEEN = []\n" + code(body))
    cells = tried(unsteady, (case({"half": 2}, number=4), case({"half": 3}, number=6)))
    assert cells.verdict == "failed"


def test_chance_and_time_may_differ_where_the_bundle_may_have_them() -> None:
    body = "return {'half': number / 2} if not SEEN.append(1) and len(SEEN) < 99 else None"
    bundle = computing("SEEN = []\n" + code(body), permissions=("random",))
    assert tried(bundle).verdict == "passed"


DIGITS = {"type": "string", "pattern": "^[0-9]+$"}
NUMBERS = {"type": "array", "items": {"type": "number"}}
ROWS = {
    "type": "array",
    "items": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
}
MANY_DIGITS, TOO_MUCH = "5,000 digits", "a sum that no float holds"


@pytest.mark.parametrize(
    ("body", "properties", "arguments", "crash"),
    [
        ("return {'half': 10 / number}", {"number": WHOLE}, ({"number": 2}, {"number": 5}), "zero"),
        ("return {'half': number * 1e10}", {"number": {"type": "number"}}, (), "huge"),
        ("return {'half': float(number)}", {"number": TEXT}, ({"number": "1"},), "empty"),
        ("return {'half': number[0]}", {"number": {"type": "array"}}, ({"number": [3]},), "empty"),
        ("return {'half': eval('(' * 99 + number)}", {"number": TEXT}, (), "long"),
        ("return {'half': int(number)}", {"number": DIGITS}, (), MANY_DIGITS),
        ("return {'half': sum(number)}", {"number": NUMBERS}, ({"number": [3]},), TOO_MUCH),
        (
            "return {'half': sum(row['n'] for row in number)}",
            {"number": ROWS},
            ({"number": [{"n": 3}]},),
            TOO_MUCH,
        ),
    ],
)
def test_what_the_schema_admits_must_not_crash_the_code(
    body: str, properties: dict[str, Any], arguments: tuple[dict[str, Any], ...], crash: str
) -> None:
    given = [*arguments, {"number": "1" if properties["number"] in (TEXT, DIGITS) else 4}]
    examples = [case({"half": -1}, **one) for one in given]
    found = failed(tried(computing(code(body), **properties), examples))
    assert f"extreme: number: {crash}" in found
    assert "bug" in found[f"extreme: number: {crash}"].evidence


def test_numbers_that_are_huge_together_must_not_crash_the_code() -> None:
    huge = {"type": "number", "maximum": 1e308, "minimum": 0}
    bundle = computing(
        code("return {'half': (number + other) / 2}", "number, other"), number=huge, other=huge
    )
    found = failed(
        tried(bundle, [case({"half": 3}, number=2, other=4), case({"half": 4}, number=4, other=4)])
    )
    assert [*found] == ["extreme: every number huge"]


def test_a_crash_is_told_with_the_line_it_happened_at() -> None:
    (crash,) = [
        cell
        for cell in tried(computing(code("return {'half': 1 / number}"))).list_failures()
        if cell.case == "extreme: number: zero"
    ]
    assert "ZeroDivisionError at server.py line 6" in crash.evidence


def test_code_that_does_not_end_is_cut_and_the_rest_is_still_tried() -> None:
    endless = computing(code("while number == 0:\n        pass\n    return {'half': number / 2}"))
    report = tried(endless, seconds=2.0)
    assert "within 2 s" in failed(report)["extreme: number: zero"].evidence
    assert "extreme: number: the maximum" not in failed(report)


def test_sessions_that_break_again_and_again_are_not_replaced_for_ever() -> None:
    endless = computing(code("while True:\n        pass"))
    report = tried(endless, seconds=0.1)
    assert "not run" in report.list_failures()[-1].evidence


@dataclass(frozen=True)
class Slowly:
    """A session whose calls take 0.4 s each by a clock that nothing else moves."""

    session: Session
    clock: VirtualClock

    async def call(self, *given: Any) -> Outcome:
        await self.clock.sleep(0.4)
        return await self.session.call(*given)


def tried_slowly(budget: float) -> StageReport:
    bundle, clock = computing(), VirtualClock()

    @asynccontextmanager
    async def opened() -> Any:
        async with LocalRunner().open(bundle, Broker(Policy(()), Cassette(()))) as session:
            yield Slowly(session, clock)

    return asyncio.run(prove_cases(bundle, CASES, opened, budget=budget, clock=clock))


def test_slow_code_is_tried_with_all_its_cases_and_as_much_else_as_there_is_time() -> None:
    report = tried_slowly(budget=1.0)
    assert report.verdict == "passed"
    assert report.coverage < 1
    verdicts = {cell.case: cell.verdict for cell in report.cases}
    assert (verdicts["case 1"], verdicts["case 2"]) == ("passed", "passed")
    assert "inconclusive" in verdicts.values()


def test_cases_that_take_too_long_in_all_are_sent_back() -> None:
    report = tried_slowly(budget=0.3)
    assert failed(report)["case 2"].evidence == "not run: the calls before it took too long"


def test_code_that_does_not_load_fails_the_stage() -> None:
    report = tried(computing(HALVE + "\nX = [1][5]\n"))
    assert [finding.rule for finding in report.findings] == ["load"]


def test_tools_that_call_an_api_are_left_to_the_mock_stage() -> None:
    good = read_bundle(Path(__file__).parents[2] / "fixtures" / "bad_bundles" / "good")
    assert tried(good, ()).verdict == "skipped"


def test_the_stage_comes_after_the_static_one_and_only_with_examples() -> None:
    with_examples = asyncio.run(prove_bundle(computing(), LocalRunner(), examples=CASES))
    stages = ["static", "cases", "adequacy", "mock", "live", "redteam"]
    assert [report.stage for report in with_examples.reports] == stages
    assert with_examples.passed
    without = asyncio.run(prove_bundle(computing(), LocalRunner()))
    assert [report.stage for report in without.reports] == ["static", "mock", "live"]
    wrong = asyncio.run(prove_bundle(computing(), LocalRunner(), examples=CASES[:1]))
    assert [report.stage for report in wrong.reports] == ["static", "cases"]


def test_an_unbounded_number_is_tried_beyond_what_a_float_holds() -> None:
    bounded = {cell.case for cell in tried(computing(number=NUMBER)).cases}
    assert "extreme: number: the maximum" in bounded
    whole = {cell.case for cell in tried(computing(number=WHOLE)).cases}
    assert "extreme: number: huge" in whole


def test_what_the_static_stage_refuses_is_not_fit_even_to_be_an_experiment() -> None:
    unsafe = computing(
        "import os\nfrom toolwright import tool\n\n\n@tool\ndef halve(number):\n    return {}\n"
    )
    refused = asyncio.run(prove_bundle(unsafe, LocalRunner(), examples=CASES))
    assert not refused.passed
    assert not refused.admissible
    wrong = asyncio.run(
        prove_bundle(computing(), LocalRunner(), examples=(case({"half": 3}, number=4),))
    )
    assert not wrong.passed
    assert wrong.admissible
