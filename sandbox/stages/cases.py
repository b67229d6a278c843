"""The cases stage: runs code that computes on its examples and on arguments derived
from schemas.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from sandbox.broker.host.tools import KnownCalls, collect_answers
from sandbox.bundle.example import Example, is_same_value
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.permissions import CLOCK, RANDOM
from sandbox.bundle.report import CaseCode, CaseResult, Finding, StageReport, Verdict
from sandbox.clock import Clock
from sandbox.errors import LoadFailed
from sandbox.schemas.boundary_values import build_extreme, build_malformed
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Outcome
from sandbox.stages.suite import is_satisfied_by_constant
from sandbox.stages.trials import (
    BUDGET_SECONDS,
    CALL_SECONDS,
    MAX_SHOWN,
    Came,
    NoOutcome,
    OpenSession,
    TrialCall,
    describe_failure,
    format_outcome,
    format_value,
    run_trials,
    serialize_result,
)

MAX_TRIALS = 200
MIN_TOLD_APART = 2
REFUSES = "the input schema refuses these arguments before the code runs"


async def prove_cases(
    bundle: Bundle,
    examples: Sequence[Example],
    open_session: OpenSession,
    *,
    seconds: float = CALL_SECONDS,
    budget: float = BUDGET_SECONDS,
    clock: Clock | None = None,
    derived: bool = True,
) -> StageReport:
    """Run the tools that call no operation of an API, which the mock stage does not cover.

    Each needs examples that a tool giving an empty or a constant result does not satisfy. Every
    example runs twice, in two sessions and in two orders, and has to give the same bytes, unless
    the bundle may know the time or use chance. What the input schema refuses must be refused, and
    what it admits must not crash the code, as far as `budget` seconds go; that is left out where
    nothing is to be `derived` from the schemas.
    """
    started = time.perf_counter()
    computing = tuple(tool for tool in bundle.tools if not tool.operation)
    if not computing:
        note = "every tool calls its API, which the mock stage imitates"
        return StageReport("cases", "skipped", 0.0, coverage=0.0, note=note)
    trials = list(_iterate_trials(computing, examples, derived))
    shown = [trial for trial in trials if trial.kind == "example"]
    try:
        others = [trial for trial in trials if trial.kind != "example"]
        first = await run_trials([*shown, *others], open_session, seconds, budget, clock)
        twice = _is_steady(bundle) and not any(isinstance(first[t], NoOutcome) for t in shown)
        again = (
            await run_trials(shown[::-1], open_session, seconds, budget, clock) if twice else first
        )
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport(
            "cases", "failed", _measure_elapsed(started), findings=(finding,), coverage=0.0
        )
    cells = [*_find_missing(computing, examples), *_find_unproved_refusals(computing, examples)]
    told = _find_told_apart(computing, examples)
    cells += [_judge_trial(trial, first[trial], again.get(trial), told) for trial in trials]
    failed = any(cell.verdict == "failed" for cell in cells)
    verdict: Verdict = "failed" if failed else "passed"
    lost = sum(cell.verdict == "inconclusive" for cell in cells)
    coverage = 1 - lost / len(cells) if cells else 1.0
    return StageReport("cases", verdict, _measure_elapsed(started), tuple(cells), coverage=coverage)


def check_examples(bundle: Bundle, examples: Sequence[Example]) -> StageReport:
    """Check examples before there is code: whether they are valid and prove anything."""
    computing = tuple(tool for tool in bundle.tools if not tool.operation)
    cells = [*_find_missing(computing, examples), *_find_unproved_refusals(computing, examples)]
    told = _find_told_apart(computing, examples)
    for trial in _iterate_trials(computing, examples):
        if trial.example is not None:
            problem = _find_unfit_reason(trial.tool, trial.example, told)
            cells.append(
                CaseResult(
                    operation=trial.tool.name,
                    case=trial.name,
                    verdict="failed" if problem.reason else "passed",
                    evidence=problem.reason,
                    given=format_value(dict(trial.arguments)),
                    expected=trial.example.format_expected()[:MAX_SHOWN],
                    code=problem.code,
                    example=trial.number,
                )
            )
    failed = any(cell.verdict == "failed" for cell in cells)
    note = "there is no code yet"
    return StageReport("cases", "failed" if failed else "passed", 0.0, tuple(cells), note=note)


def _is_steady(bundle: Bundle) -> bool:
    return not {CLOCK, RANDOM} & {*bundle.permissions}


def _iterate_trials(
    tools: Iterable[ToolDefinition], examples: Sequence[Example], derived: bool = True
) -> Iterator[TrialCall]:
    for tool in tools:
        own = [example for example in examples if example.tool == tool.name]
        for number, example in enumerate(own, 1):
            answers = KnownCalls(example.answers)
            name = f"case {number}"
            yield TrialCall(tool, name, example.arguments, "example", example, answers, number)
        if derived:
            yield from _derive_trials(tool, own)


def _derive_trials(tool: ToolDefinition, own: Sequence[Example]) -> list[TrialCall]:
    """Trials derived from the input schema and one example that has a result."""
    judge = get_checker(tool.input_schema)
    usual = [e.arguments for e in own if not e.failure and judge.find_problem(e.arguments) is None]
    if not usual:
        return []
    wrong = build_malformed(tool.input_schema, usual[0], judge)
    edges = build_extreme(tool.input_schema, usual[0], judge)
    calls = collect_answers(own, tool.name)
    made = [TrialCall(tool, f"malformed: {t.name}", t.arguments, "malformed") for t in wrong]
    made += [
        TrialCall(tool, f"extreme: {t.name}", t.arguments, "extreme", None, calls) for t in edges
    ]
    return made[:MAX_TRIALS]


def _find_missing(
    tools: Iterable[ToolDefinition], examples: Sequence[Example]
) -> Iterator[CaseResult]:
    """Failed cells for the tools whose examples a constant result would satisfy."""
    for tool in tools:
        own = [example for example in examples if example.tool == tool.name]
        proving = {example.format_expected() for example in own if not _is_refused(tool, example)}
        if not proving:
            yield CaseResult(tool.name, "cases", "failed", "there is no case for this tool")
        elif len(proving) == 1 and tool.input_schema.get("properties"):
            reason = (
                "a tool that always gives the same result passes every case: add one that expects "
                "something else"
            )
            yield CaseResult(tool.name, "cases", "failed", reason, expected=min(proving))


def _find_unproved_refusals(
    tools: Iterable[ToolDefinition], examples: Sequence[Example]
) -> Iterator[CaseResult]:
    """Failed cells for declared refusals that no case expects, and for cases of undeclared ones.

    What is declared is not counted against a server, so each of them has to be shown.
    """
    for tool in tools:
        expected = {example.code for example in examples if example.tool == tool.name} - {""}
        for code in sorted(tool.refusals.keys() - expected):
            reason = (
                f"the refusal {code} is declared and no case expects it: add one with "
                f'"failure": "tool", "code": "{code}"'
            )
            yield CaseResult(tool.name, f"refusal {code}", "failed", reason)
        for code in sorted(expected - tool.refusals.keys()):
            reason = f"a case expects the refusal {code}, which the tool's `refusals` do not have"
            yield CaseResult(tool.name, f"refusal {code}", "failed", reason)


def _is_refused(tool: ToolDefinition, example: Example) -> bool:
    return get_checker(tool.input_schema).find_problem(example.arguments) is not None


def _judge_trial(trial: TrialCall, came: Came, again: Came | None, told: Set[str]) -> CaseResult:
    if isinstance(came, NoOutcome):
        problem = _Problem(came.reason)
    elif trial.kind == "malformed":
        problem = _Problem(_check_refusal(came))
    elif trial.kind == "extreme":
        problem = _Problem(_check_crash(came))
    else:
        problem = _find_difference(trial, came, told)
        problem = problem if problem.reason else _Problem(_check_steadiness(came, again))
    expected = trial.example.format_expected() if trial.example else ""
    late = isinstance(came, NoOutcome) and came.kind == "late" and trial.example is None
    return CaseResult(
        operation=trial.tool.name,
        case=trial.name,
        verdict="inconclusive" if late else "failed" if problem.reason else "passed",
        evidence=problem.reason or _describe_outcome(came),
        given=format_value(dict(trial.arguments)),
        expected=expected[:MAX_SHOWN],
        got=format_outcome(came),
        code=problem.code,
        example=trial.number,
    )


@dataclass(frozen=True)
class _Problem:
    """What is wrong with a trial, and its code; no reason where nothing is."""

    reason: str = ""
    code: CaseCode = ""


def _find_difference(trial: TrialCall, came: Outcome, told: Set[str]) -> _Problem:
    """What is wrong with an example or with what came of it."""
    example = trial.example
    assert example is not None
    unfit = _find_unfit_reason(trial.tool, example, told)
    return unfit if unfit.reason else _Problem(_difference(example, came))


def _difference(example: Example, came: Outcome) -> str:
    """How what came differs from what an example expects; "" where it does not."""
    if example.failure:
        kind = came.failure.kind if came.failure else "a result"
        # A failure of what it asked, which it passes on, is one that its code tells too.
        told = ("tool", "upstream") if example.failure == "tool" else (example.failure,)
        if kind not in told:
            return f"expected a failure of kind {example.failure}"
        code = came.failure.code if came.failure else ""
        if example.code and code != example.code:
            return f"expected Refused({example.code!r}, …)"
        return ""
    if came.failure:
        return describe_failure(came)
    return "" if is_same_value(example.structured, came.structured) else "the result is another"


def _find_told_apart(tools: Iterable[ToolDefinition], examples: Sequence[Example]) -> Set[str]:
    """The tools whose examples expect results enough that are not empty and differ: what is truly
    empty may stand beside them.
    """
    return {
        tool.name
        for tool in tools
        if len(
            {
                example.format_expected()
                for example in examples
                if example.tool == tool.name
                and not example.failure
                and not is_satisfied_by_constant(example, tool)
            }
        )
        >= MIN_TOLD_APART
    }


def _find_unfit_reason(tool: ToolDefinition, example: Example, told: Set[str]) -> _Problem:
    """Why an example is of no use, whatever the code does. `told` are the tools that other examples
    tell from one that gives nothing.
    """
    refused = get_checker(tool.input_schema).find_problem(example.arguments)
    if refused and example.failure != "arguments":
        return _Problem(f"{REFUSES}: {refused}")
    if tool.name not in told and is_satisfied_by_constant(example, tool):
        reason = "proves nothing: a tool that always gives an empty result satisfies this case"
        return _Problem(reason, "proves_nothing")
    return _Problem()


def _check_steadiness(came: Outcome, again: Came | None) -> str:
    if isinstance(again, Outcome) and serialize_result(again) == serialize_result(came):
        return ""
    gave = format_outcome(again)[:200] if again else ""
    return (
        f"the second run, in a fresh sandbox, gave {gave}: take time and chance as arguments, and "
        "keep nothing between calls"
    )


def _check_refusal(came: Outcome) -> str:
    if came.failure and came.failure.kind == "arguments":
        return ""
    return "these arguments break the input schema and were not refused"


def _check_crash(came: Outcome) -> str:
    if came.failure is None or came.failure.kind not in ("bug", "schema"):
        return ""
    return f"the input schema admits these arguments, but {describe_failure(came)}"


def _describe_outcome(came: Came) -> str:
    if isinstance(came, NoOutcome):
        return came.reason
    return f"told as {came.failure.kind}" if came.failure else "as expected"


def _measure_elapsed(started: float) -> float:
    return (time.perf_counter() - started) * 1000
