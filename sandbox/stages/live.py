"""The live stage: a few safe reads against the real API."""

from __future__ import annotations

import time

from sandbox.bundle.apispec import Operation
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult, StageReport, Verdict
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.session.interface import Outcome, Session
from sandbox.stages.mock.answers import AnswerBuilder

CANDIDATES = 3
CASE = "live"
MAX_EVIDENCE = 300


def find_candidates(bundle: Bundle) -> tuple[tuple[ToolDefinition, Operation], ...]:
    """At most three read tools to try: GET, nothing required, those that document JSON first and
    the shorter path before the longer.
    """
    if bundle.spec is None:
        return ()
    answers = AnswerBuilder(bundle.spec)
    operations = {operation.id: operation for operation in bundle.spec.operations}
    safe = [
        (tool, operations[tool.operation])
        for tool in bundle.tools
        if tool.operation in operations and _is_safe(tool, operations[tool.operation])
    ]
    safe.sort(
        key=lambda pair: (answers.find_json_success(pair[1]) is None, pair[1].path.count("/"))
    )
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
    chosen = find_candidates(bundle)
    if not chosen or bundle.spec is None:
        return build_skipped_report("no safe read can be called without arguments")
    answers = AnswerBuilder(bundle.spec)
    cases: list[CaseResult] = []
    for tool, operation in chosen:
        try:
            outcome = await session.call(tool.name, {})
        except (SessionBroken, CallTimedOut) as error:
            cases.append(CaseResult(operation.id, CASE, "inconclusive", str(error)))
            break
        cases.append(_judge_outcome(operation, outcome, answers))
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


def build_skipped_report(why: str) -> StageReport:
    """The report of a live stage that did not take place."""
    return StageReport("live", "skipped", 0.0, coverage=0.0, note=why)


def _judge_outcome(operation: Operation, outcome: Outcome, answers: AnswerBuilder) -> CaseResult:
    verdict: Verdict = "inconclusive"
    exchange = outcome.exchanges[-1] if outcome.exchanges else None
    if exchange is None:
        evidence = "no request was made"
    elif exchange.response is None:
        line = _format_request_line(exchange.request.method, exchange.request.url)
        evidence = f"{line}: {exchange.reason}"
    else:
        problem = answers.find_problem(operation, exchange.response)
        if problem is None and outcome.failure is not None:
            problem = f"told as {outcome.failure.kind}: {outcome.failure.message}"
        verdict = "inconclusive" if problem else "passed"
        told = f"{exchange.response.status}, {len(exchange.response.body)} bytes"
        line = _format_request_line(exchange.request.method, exchange.request.url)
        evidence = f"{line}: {told}" + (f"; {problem}" if problem else "")
    return CaseResult(operation.id, CASE, verdict, evidence[:MAX_EVIDENCE])


def _format_request_line(method: str, url: str) -> str:
    return f"{method} {url[:120]}"
