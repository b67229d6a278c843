"""The live stage: a few safe reads against the real API."""

from __future__ import annotations

import time

from sandbox.answers import Answers
from sandbox.apispec import Operation
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.report import CaseResult, StageReport, Verdict
from sandbox.runner import Outcome, Session

CANDIDATES = 3
CASE = "live"
MAX_EVIDENCE = 300


def candidates(bundle: Bundle) -> tuple[tuple[ToolDefinition, Operation], ...]:
    """At most three read tools to try: GET, nothing required, those that document JSON first and
    the shorter path before the longer.
    """
    if bundle.spec is None:
        return ()
    answers = Answers(bundle.spec)
    operations = {operation.id: operation for operation in bundle.spec.operations}
    safe = [
        (tool, operations[tool.operation])
        for tool in bundle.tools
        if tool.operation in operations and _is_safe(tool, operations[tool.operation])
    ]
    safe.sort(key=lambda pair: (answers.json_success(pair[1]) is None, pair[1].path.count("/")))
    return tuple(safe[:CANDIDATES])


def _is_safe(tool: ToolDefinition, operation: Operation) -> bool:
    return (
        tool.access == "read"
        and operation.access == "read"
        and operation.method.upper() == "GET"
        and not tool.input_schema.get("required")
        and not any(parameter.required for parameter in operation.parameters)
        and not (operation.body and operation.body.required)
    )


async def prove_live(bundle: Bundle, session: Session) -> StageReport:
    """Call the candidates until one gives a documented success; only that passes.

    A candidate that fails is no failure of the bundle: the stage is then inconclusive.
    """
    started = time.perf_counter()
    chosen = candidates(bundle)
    if not chosen or bundle.spec is None:
        return skipped("no safe read can be called without arguments")
    answers = Answers(bundle.spec)
    cases: list[CaseResult] = []
    for tool, operation in chosen:
        try:
            outcome = await session.call(tool.name, {})
        except (SessionBroken, CallTimedOut) as error:
            cases.append(CaseResult(operation.id, CASE, "inconclusive", str(error)))
            break
        cases.append(_judged(operation, outcome, answers))
        if cases[-1].verdict == "passed":
            break
    passed = cases[-1].verdict == "passed"
    return StageReport(
        "live",
        "passed" if passed else "inconclusive",
        (time.perf_counter() - started) * 1000,
        tuple(cases),
        coverage=len(cases) / len(chosen),
        note="" if passed else "no safe read gave a documented success",
    )


def skipped(why: str) -> StageReport:
    """The report of a live stage that did not take place."""
    return StageReport("live", "skipped", 0.0, coverage=0.0, note=why)


def _judged(operation: Operation, outcome: Outcome, answers: Answers) -> CaseResult:
    verdict: Verdict = "inconclusive"
    exchange = outcome.exchanges[-1] if outcome.exchanges else None
    if exchange is None:
        evidence = "no request was made"
    elif exchange.response is None:
        evidence = f"{_line(exchange.request.method, exchange.request.url)}: {exchange.reason}"
    else:
        problem = answers.problem(operation, exchange.response)
        if problem is None and outcome.failure is not None:
            problem = f"told as {outcome.failure.kind}: {outcome.failure.message}"
        verdict = "inconclusive" if problem else "passed"
        told = f"{exchange.response.status}, {len(exchange.response.body)} bytes"
        line = _line(exchange.request.method, exchange.request.url)
        evidence = f"{line}: {told}" + (f"; {problem}" if problem else "")
    return CaseResult(operation.id, CASE, verdict, evidence[:MAX_EVIDENCE])


def _line(method: str, url: str) -> str:
    return f"{method} {url[:120]}"
