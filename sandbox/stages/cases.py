"""The cases stage: code that computes, tried with its examples and with what nobody thought of."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from sandbox.bundle import Bundle, ToolDefinition
from sandbox.errors import LoadFailed
from sandbox.evidence import MAX_SHOWN, got, shown, whole
from sandbox.example import Example, same
from sandbox.extremes import extreme, malformed
from sandbox.recording import CLOCK, RANDOM
from sandbox.report import CaseResult, Finding, StageReport, Verdict
from sandbox.runner import Outcome
from sandbox.stub import satisfies
from sandbox.toolcall import KnownCalls, answers_in
from sandbox.trials import (
    BUDGET_SECONDS,
    CALL_SECONDS,
    LATE,
    Came,
    OpenSession,
    Trial,
    ran,
    told_failure,
)
from sandbox.validation import checker

MAX_TRIALS = 200
REFUSES = "the input schema refuses these arguments before the code runs"


async def prove_cases(
    bundle: Bundle,
    examples: Sequence[Example],
    open_session: OpenSession,
    *,
    seconds: float = CALL_SECONDS,
    budget: float = BUDGET_SECONDS,
) -> StageReport:
    """Try the tools that call no operation of an API, which the mock stage does not see.

    Each needs examples that a tool giving an empty or a constant result does not satisfy. Every
    example runs twice, in two sessions and in two orders, and has to give the same bytes, unless
    the bundle may know the time or use chance. What the input schema refuses must be refused, and
    what it admits must not crash the code, as far as `budget` seconds go.
    """
    started = time.perf_counter()
    computing = tuple(tool for tool in bundle.tools if not tool.operation)
    if not computing:
        note = "every tool calls its API, which the mock stage imitates"
        return StageReport("cases", "skipped", 0.0, coverage=0.0, note=note)
    trials = list(_trials(computing, examples))
    shown = [trial for trial in trials if trial.kind == "example"]
    try:
        others = [trial for trial in trials if trial.kind != "example"]
        first = await ran([*shown, *others], open_session, seconds, budget)
        twice = _is_steady(bundle) and not any(isinstance(first[t], str) for t in shown)
        again = await ran(shown[::-1], open_session, seconds, budget) if twice else first
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport("cases", "failed", _since(started), findings=(finding,), coverage=0.0)
    cells = [*_missing(computing, examples)]
    cells += [_judged(trial, first[trial], again.get(trial)) for trial in trials]
    failed = any(cell.verdict == "failed" for cell in cells)
    verdict: Verdict = "failed" if failed else "passed"
    lost = sum(cell.verdict == "inconclusive" for cell in cells)
    coverage = 1 - lost / len(cells) if cells else 1.0
    return StageReport("cases", verdict, _since(started), tuple(cells), coverage=coverage)


def check_examples(bundle: Bundle, examples: Sequence[Example]) -> StageReport:
    """What can be told of examples before there is code: whether they prove anything."""
    computing = tuple(tool for tool in bundle.tools if not tool.operation)
    cells = [*_missing(computing, examples)]
    for trial in _trials(computing, examples):
        if trial.example is not None:
            problem = _unfit(trial.tool, trial.example)
            verdict: Verdict = "failed" if problem else "passed"
            expected = trial.example.expected()[:MAX_SHOWN]
            given = shown(dict(trial.arguments))
            cells.append(CaseResult(trial.tool.name, trial.name, verdict, problem, given, expected))
    failed = any(cell.verdict == "failed" for cell in cells)
    note = "there is no code yet"
    return StageReport("cases", "failed" if failed else "passed", 0.0, tuple(cells), note=note)


def _is_steady(bundle: Bundle) -> bool:
    return not {CLOCK, RANDOM} & {*bundle.permissions}


def _trials(tools: Iterable[ToolDefinition], examples: Sequence[Example]) -> Iterator[Trial]:
    for tool in tools:
        own = [example for example in examples if example.tool == tool.name]
        for number, example in enumerate(own, 1):
            answers = KnownCalls(example.answers)
            yield Trial(tool, f"case {number}", example.arguments, "example", example, answers)
        yield from _derived(tool, own)


def _derived(tool: ToolDefinition, own: Sequence[Example]) -> list[Trial]:
    """What follows from the input schema and one example that the tool has a result for."""
    judge = checker(tool.input_schema)
    usual = [e.arguments for e in own if not e.failure and judge.problem(e.arguments) is None]
    if not usual:
        return []
    wrong = malformed(tool.input_schema, usual[0], judge)
    edges = extreme(tool.input_schema, usual[0], judge)
    calls = answers_in(own, tool.name)
    made = [Trial(tool, f"malformed: {t.name}", t.arguments, "malformed") for t in wrong]
    made += [Trial(tool, f"extreme: {t.name}", t.arguments, "extreme", None, calls) for t in edges]
    return made[:MAX_TRIALS]


def _missing(tools: Iterable[ToolDefinition], examples: Sequence[Example]) -> Iterator[CaseResult]:
    """The tools whose examples would not tell them from one that gives a constant."""
    for tool in tools:
        own = [example for example in examples if example.tool == tool.name]
        proving = {example.expected() for example in own if not _is_refused(tool, example)}
        if not proving:
            yield CaseResult(tool.name, "cases", "failed", "there is no case for this tool")
        elif len(proving) == 1 and tool.input_schema.get("properties"):
            reason = (
                "a tool that always gives the same result passes every case: add one that expects "
                "something else"
            )
            yield CaseResult(tool.name, "cases", "failed", reason, expected=min(proving))


def _is_refused(tool: ToolDefinition, example: Example) -> bool:
    return checker(tool.input_schema).problem(example.arguments) is not None


def _judged(trial: Trial, came: Came, again: Came | None) -> CaseResult:
    if isinstance(came, str):
        problem = came
    elif trial.kind == "malformed":
        problem = _not_refused(came)
    elif trial.kind == "extreme":
        problem = _crash(came)
    else:
        problem = _unlike(trial, came) or _unsteady(came, again)
    expected = trial.example.expected() if trial.example else ""
    late = came == LATE and trial.example is None
    return CaseResult(
        operation=trial.tool.name,
        case=trial.name,
        verdict="inconclusive" if late else "failed" if problem else "passed",
        evidence=problem or _told(came),
        given=shown(dict(trial.arguments)),
        expected=expected[:MAX_SHOWN],
        got=got(came),
    )


def _unlike(trial: Trial, came: Outcome) -> str:
    """What is wrong with an example or with what came of it; "" where nothing is."""
    example = trial.example
    assert example is not None
    if unfit := _unfit(trial.tool, example):
        return unfit
    if example.failure:
        kind = came.failure.kind if came.failure else "a result"
        return "" if kind == example.failure else f"expected a failure of kind {example.failure}"
    if came.failure:
        return told_failure(came)
    return "" if same(example.structured, came.structured) else "the result is another"


def _unfit(tool: ToolDefinition, example: Example) -> str:
    """Why an example proves nothing, whatever the code does; "" where it does."""
    refused = checker(tool.input_schema).problem(example.arguments)
    if refused and example.failure != "arguments":
        return f"{REFUSES}: {refused.where or '/'}: {refused.reason}"
    if satisfies(example, tool):
        return "proves nothing: a tool that always gives an empty result satisfies this case"
    return ""


def _unsteady(came: Outcome, again: Came | None) -> str:
    if isinstance(again, Outcome) and whole(again) == whole(came):
        return ""
    return (
        f"the second run, in a fresh sandbox, gave {got(again or '')[:200]}: take time and chance "
        "as arguments, and keep nothing between calls"
    )


def _not_refused(came: Outcome) -> str:
    if came.failure and came.failure.kind == "arguments":
        return ""
    return "these arguments break the input schema and were not refused"


def _crash(came: Outcome) -> str:
    if came.failure is None or came.failure.kind not in ("bug", "schema"):
        return ""
    return f"the input schema admits these arguments, but {told_failure(came)}"


def _told(came: Came) -> str:
    if isinstance(came, str):
        return came
    return f"told as {came.failure.kind}" if came.failure else "as expected"


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
