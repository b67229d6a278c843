"""The acceptance stage: what somebody who read the task, and nothing else, says it must answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sandbox.bundle import Bundle, ToolDefinition
from sandbox.errors import LoadFailed
from sandbox.evidence import MAX_SHOWN, got, shown
from sandbox.example import Example, same
from sandbox.report import CaseResult, Finding, StageReport, Verdict
from sandbox.trials import CALL_SECONDS, Came, OpenSession, Trial, ran, told_failure

REFUSALS = frozenset({"tool", "arguments"})
"""Failures by which a tool refuses: its own word, or its input schema's."""

Ruling = Literal["claim", "server", "neither", "open"]
"""Who is right where a claim and a server differ, by a third reading of the task."""
RULINGS: tuple[Ruling, ...] = get_args(Ruling)


@dataclass(frozen=True)
class Claim:
    """What a reader of the task says of one call; `says` are the task's own words that decide it.

    Its result may leave out what the task does not decide: keys of objects that are not named.
    """

    example: Example
    says: str


def is_computing(tool: ToolDefinition) -> bool:
    """Whether what a tool answers follows from its arguments alone, so that a reader can say it."""
    return not tool.operation and not tool.requests


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
        Trial(tools[c.example.tool], f"claim {at}", c.example.arguments, "example", c.example)
        for at, c in enumerate(claims, 1)
    ]
    try:
        came = await ran(trials, open_session, seconds)
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport("acceptance", "failed", 0.0, findings=(finding,), coverage=0.0)
    cells = [_judged(t, claim, came[t]) for t, claim in zip(trials, claims, strict=True)]
    elapsed = (time.perf_counter() - started) * 1000
    return _reported(StageReport("acceptance", "passed", elapsed), cells)


def settled(report: StageReport, rulings: Mapping[str, Ruling]) -> StageReport:
    """The report after a third reading of what differs, by the names of its cells."""
    return _reported(
        report, [_ruled(cell, rulings.get(cell.case, "claim")) for cell in report.cases]
    )


def open_points(reports: Iterable[StageReport]) -> tuple[str, ...]:
    """What a task leaves open and a server decided, in words."""
    cells = [c for report in reports if report.stage == "acceptance" for c in report.cases]
    return tuple(
        f"the task does not say what {cell.operation} gives for {cell.given}: it gives {cell.got}, "
        f"another reading expects {cell.expected}"
        for cell in cells
        if cell.verdict == "inconclusive"
    )


def within(expected: Any, given: Any) -> bool:
    """Whether a value has all that is expected of it; an object may have more."""
    if isinstance(expected, Mapping) and isinstance(given, Mapping):
        return all(key in given and within(value, given[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(given, list):
        return len(expected) == len(given) and all(map(within, expected, given))
    return same(expected, given)


def _reported(report: StageReport, cells: Iterable[CaseResult]) -> StageReport:
    listed = tuple(cells)
    failed = any(cell.verdict == "failed" for cell in listed)
    return replace(report, verdict="failed" if failed else "passed", cases=listed)


def _judged(trial: Trial, claim: Claim, came: Came) -> CaseResult:
    problem = _problem(claim.example, came)
    verdict: Verdict = "failed" if problem else "passed"
    return CaseResult(
        trial.tool.name,
        trial.name,
        verdict,
        f"{problem}: the task says {claim.says!r}" if problem else "as the task says",
        given=shown(dict(trial.arguments)),
        expected=claim.example.expected()[:MAX_SHOWN],
        got=got(came),
    )


def _problem(expected: Example, came: Came) -> str:
    if isinstance(came, str):
        return came
    if expected.failure:
        refused = came.failure is not None and came.failure.kind in REFUSALS
        return "" if refused else "it is not refused"
    if came.failure:
        return told_failure(came)
    return "" if within(expected.structured, came.structured) else "the result is another"


def _ruled(cell: CaseResult, ruling: Ruling) -> CaseResult:
    if cell.verdict != "failed" or ruling == "claim":
        return cell
    if ruling == "server":
        return replace(cell, verdict="passed", evidence="read once more, the task says as much")
    if ruling == "open":
        return replace(cell, verdict="inconclusive", evidence="the task leaves it open")
    reason = f"read twice, the task says neither this nor what was expected; {cell.evidence}"
    return replace(cell, evidence=reason, expected="")
