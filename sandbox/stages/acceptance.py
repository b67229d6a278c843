"""The acceptance stage: checks a server against claims by a reader of the task alone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sandbox.broker.host.tools import KnownCalls
from sandbox.bundle.example import Example, is_placeholder, is_same_value
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult, Finding, StageReport, Verdict
from sandbox.errors import LoadFailed
from sandbox.stages.trials import (
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
)

REFUSALS = frozenset({"tool", "upstream", "arguments"})
"""Kinds of failure by which a tool refuses a call: its own ToolError, or its input schema."""
PASSED_ON = frozenset({"http", "rate_limited", "timeout", "unreachable", "malformed"})
"""Kinds of failure by which a tool tells that what it asks failed."""

Ruling = Literal["claim", "server", "neither", "open"]
"""Who is right where claim and server differ, by another independent review of the task; `open`
where the task does not say.
"""
RULINGS: tuple[Ruling, ...] = get_args(Ruling)


@dataclass(frozen=True)
class Claim:
    """The expected outcome of one call by a reader of the task; `says` quotes the task.

    Objects in the expected result may leave out keys that the task does not determine. The
    example's answers are what is asked meanwhile. A refusal has to name each of `telling`.
    """

    example: Example
    says: str
    telling: tuple[str, ...] = ()


def is_computing(tool: ToolDefinition) -> bool:
    """Whether a tool's result depends on its arguments alone, so that a reader can predict it."""
    return not tool.operation and not tool.requests


def is_readable(tool: ToolDefinition) -> bool:
    """Whether a reader can predict a tool's result from its arguments and what it is answered: not
    where it calls an operation of its API, which the mock stage holds against its description.
    """
    return not tool.operation


async def prove_acceptance(
    bundle: Bundle,
    claims: Sequence[Claim],
    open_session: OpenSession,
    *,
    seconds: float = CALL_SECONDS,
) -> StageReport:
    """Try a bundle with every claim, in one session."""
    started = time.perf_counter()
    tools = {tool.name: tool for tool in bundle.tools}
    trials = [
        TrialCall(
            tools[c.example.tool],
            f"claim {at}",
            c.example.arguments,
            "example",
            c.example,
            KnownCalls(c.example.answers),
        )
        for at, c in enumerate(claims, 1)
    ]
    try:
        came = await run_trials(trials, open_session, seconds)
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport("acceptance", "failed", 0.0, findings=(finding,), coverage=0.0)
    cells = [_judge_claim(t, claim, came[t]) for t, claim in zip(trials, claims, strict=True)]
    elapsed = (time.perf_counter() - started) * 1000
    return _set_cells(StageReport("acceptance", "passed", elapsed), cells)


def apply_rulings(report: StageReport, rulings: Mapping[str, Ruling]) -> StageReport:
    """Apply rulings, by name of the cell, to the failed cells of a report."""
    return _set_cells(
        report, [_apply_ruling(cell, rulings.get(cell.case, "claim")) for cell in report.cases]
    )


def list_open_points(reports: Iterable[StageReport]) -> tuple[str, ...]:
    """Sentences about what the task leaves open and the server decides."""
    cells = [c for report in reports if report.stage == "acceptance" for c in report.cases]
    return tuple(
        f"the task does not say what {cell.operation} gives for {cell.given}: it gives {cell.got}, "
        f"another reading expects {cell.expected}"
        for cell in cells
        if cell.verdict == "inconclusive"
    )


def is_within(expected: Any, given: Any) -> bool:
    """Whether a value equals what is expected, except that objects may have more keys."""
    if is_placeholder(expected):
        return is_same_value(expected, given)
    if isinstance(expected, Mapping) and isinstance(given, Mapping):
        return all(key in given and is_within(value, given[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(given, list):
        return len(expected) == len(given) and all(map(is_within, expected, given))
    return is_same_value(expected, given)


def _set_cells(report: StageReport, cells: Iterable[CaseResult]) -> StageReport:
    listed = tuple(cells)
    failed = any(cell.verdict == "failed" for cell in listed)
    return replace(report, verdict="failed" if failed else "passed", cases=listed)


def _judge_claim(trial: TrialCall, claim: Claim, came: Came) -> CaseResult:
    problem = _find_problem(claim, came)
    verdict: Verdict = "failed" if problem else "passed"
    return CaseResult(
        trial.tool.name,
        trial.name,
        verdict,
        f"{problem}: the task says {claim.says!r}" if problem else "as the task says",
        given=format_value(dict(trial.arguments)),
        expected=claim.example.format_expected()[:MAX_SHOWN],
        got=format_outcome(came),
    )


def _find_problem(claim: Claim, came: Came) -> str:
    expected = claim.example
    if isinstance(came, NoOutcome):
        return came.reason
    if expected.failure:
        # What is asked may fail as well, and a failure of it passed on is a refusal.
        kinds = {*REFUSALS, *PASSED_ON} if expected.answers else REFUSALS
        if came.failure is None or came.failure.kind not in kinds:
            return "it is not refused"
        said = came.failure.message.casefold()
        missing = [word for word in claim.telling if word.casefold() not in said]
        return f"the refusal does not name {', '.join(missing)}" if missing else ""
    if came.failure:
        return describe_failure(came)
    return "" if is_within(expected.structured, came.structured) else "the result is another"


def _apply_ruling(cell: CaseResult, ruling: Ruling) -> CaseResult:
    if cell.verdict != "failed" or ruling == "claim":
        return cell
    if ruling == "server":
        return replace(cell, verdict="passed", evidence="read once more, the task says as much")
    if ruling == "open":
        return replace(cell, verdict="inconclusive", evidence="the task leaves it open")
    reason = f"read twice, the task says neither this nor what was expected; {cell.evidence}"
    return replace(cell, evidence=reason, expected="")
