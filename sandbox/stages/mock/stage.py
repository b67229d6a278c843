"""The mock stage: runs every case of every operation against a mock of the API."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import APISpec
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import CaseResult, Finding, StageReport, Verdict
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.schemas.directional import DirectionalValidator
from sandbox.session.interface import Outcome, Session
from sandbox.stages.contract.pages import check_pages
from sandbox.stages.contract.request import check_request
from sandbox.stages.contract.result import check_result
from sandbox.stages.mock.api import MockApi, ScriptedAnswer
from sandbox.stages.mock.cases import SCHEMAS, MockCase, MockSubject, build_subjects
from sandbox.stages.static.definitions import iterate_calls
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.policy import Policy, build_tool_policy

MOCK_CAPS = Caps(response_bytes=256 * 1024, exchanges=1_000_000)
"""Caps with a small limit for answers, so that exceeding it is cheap; otherwise as in real calls.
"""

CALL_SECONDS = 5.0
"""Limit for a call, in seconds; the mock answers at once."""
MAX_BREAKS = 1
MAX_EVIDENCE = 600


@dataclass(frozen=True)
class MockBench:
    """One lane: a session, the broker it asks, and the mock that the broker asks."""

    session: Session
    broker: Broker
    mock: MockApi


OpenBench = Callable[[], AbstractAsyncContextManager[MockBench]]


async def prove_mock(
    bundle: Bundle,
    open_bench: OpenBench,
    *,
    lanes: int = 2,
    caps: Caps = MOCK_CAPS,
    seed: int = 0,
    same: Set[str] = frozenset(),
    cells: Sequence[CaseResult] = (),
) -> StageReport:
    """Run every case of every operation of the bundle, in as many sessions as `lanes`.

    `caps` are those of the benches' brokers. A session that breaks fails its cell and is replaced
    once in its lane. Tools that are the `same` as in an earlier version keep its `cells`.
    """
    started = time.perf_counter()
    if bundle.spec is None:
        note = "pure code: there is no API to imitate"
        return StageReport("mock", "skipped", 0.0, coverage=0.0, note=note)
    rows = build_subjects(bundle.spec, bundle.tools, caps, seed, bundle.source_code)
    queue = deque(row for row in rows if row.tool.name not in same)
    judge = DirectionalValidator(bundle.spec.schemas, "request")
    running = [_Lane(bundle, open_bench, queue, judge) for _ in range(lanes)]
    await _run_lanes(running)
    refused = next((lane.refused for lane in running if lane.refused), None)
    if refused:
        finding = Finding("server.py", "", "load", refused)
        return StageReport(
            "mock", "failed", _measure_elapsed(started), findings=(finding,), coverage=0.0
        )
    found = _select_cells(rows, same, cells)
    found |= {key: result for lane in running for key, result in lane.results.items()}
    others = {operation.id for _, operation in iterate_calls(bundle)}
    return _build_report(_order_cells(bundle.spec, rows, found, others), _measure_elapsed(started))


def _select_cells(
    rows: Sequence[MockSubject], same: Set[str], cells: Sequence[CaseResult]
) -> dict[tuple[str, str], CaseResult]:
    """The earlier cells of the tools that are the same."""
    tools = {_get_row_name(row): row.tool.name for row in rows if row.tool.name in same}
    return {(tools[c.operation], c.case): c for c in cells if c.operation in tools}


async def _run_lanes(lanes: Sequence[_Lane]) -> None:
    tasks = [asyncio.ensure_future(lane.run()) for lane in lanes]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class _Lane:
    """Takes rows from the common queue and makes their calls one after another.

    `refused` is the reason why the runtime does not load the bundle. The other lanes are not
    cancelled then, because a session that is being opened should finish opening.
    """

    bundle: Bundle
    open_bench: OpenBench
    queue: deque[MockSubject]
    judge: DirectionalValidator
    results: dict[tuple[str, str], CaseResult] = field(default_factory=dict)
    pending: tuple[MockSubject, MockCase] | None = None
    cases: Iterator[tuple[MockSubject, MockCase]] = field(default_factory=lambda: iter(()))
    checked: dict[WireRequest, tuple[Mapping[str, Any], tuple[str, ...]]] = field(
        default_factory=dict
    )
    policies: dict[str, Policy] = field(default_factory=dict)
    breaks: int = 0
    refused: str = ""

    async def run(self) -> None:
        try:
            while self._has_more():
                async with self.open_bench() as bench:
                    await self._run_cases(bench)
        except LoadFailed as error:
            self.refused = str(error)
            self.queue.clear()

    async def _run_cases(self, bench: MockBench) -> None:
        """Run cases until none is left or the session has ended."""
        while self._has_more():
            subject, case = self._take_next()
            if case.skipped:
                self._store_result(subject, case, "skipped", case.skipped)
                continue
            if case.problems is not None:
                told = "; ".join(case.problems) or "as documented"
                self._store_result(subject, case, "failed" if case.problems else "passed", told)
                continue
            try:
                outcome = await self._call_tool(bench, subject, case)
            except (SessionBroken, CallTimedOut) as error:
                self._store_result(subject, case, "failed", str(error))
                self._count_break()
                return
            problems = (
                *self._check_requests(subject, case, outcome),
                *_check_outcome(subject, case, outcome),
            )
            evidence = _format_evidence(case, outcome, problems)
            self._store_result(subject, case, "failed" if problems else "passed", evidence)

    async def _call_tool(self, bench: MockBench, subject: MockSubject, case: MockCase) -> Outcome:
        name = subject.tool.name
        policy = self.policies.get(name)
        if policy is None:
            policy = self.policies[name] = build_mock_policy(self.bundle, name)
        bench.broker.policy = policy
        later = case.pages.answers[1:] if case.pages else ()
        bench.mock.script_answers(case.answer, [ScriptedAnswer(answer) for answer in later])
        return await bench.session.call(name, case.arguments, CALL_SECONDS)

    def _has_more(self) -> bool:
        """Whether there is a case left; the next one is made if it is not there yet."""
        while self.pending is None:
            self.pending = next(self.cases, None)
            if self.pending is None:
                if not self.queue:
                    return False
                subject = self.queue.popleft()
                self.checked = {}
                self.cases = _pair_cases(subject)
        return True

    def _take_next(self) -> tuple[MockSubject, MockCase]:
        assert self.pending is not None
        taken, self.pending = self.pending, None
        return taken

    def _count_break(self) -> None:
        self.breaks += 1
        while self.breaks > MAX_BREAKS and self._has_more():
            subject, case = self._take_next()
            self._store_result(subject, case, "failed", "not run: the sessions break too often")

    def _store_result(
        self, subject: MockSubject, case: MockCase, verdict: Verdict, evidence: str
    ) -> None:
        key = (subject.tool.name, case.name)
        self.results[key] = CaseResult(
            _get_row_name(subject), case.name, verdict, evidence[:MAX_EVIDENCE]
        )

    def _check_requests(
        self, subject: MockSubject, case: MockCase, outcome: Outcome
    ) -> Iterator[str]:
        """The problems of the requests of a call."""
        refused = [e for e in outcome.exchanges if e.kind in ("refused", "unsupported")]
        if case.expectation == "refused":
            if len(refused) < len(outcome.exchanges):
                yield "a request was sent with a value that no path can hold"
            return
        for exchange in refused:
            request = exchange.request
            yield f"{request.method} {request.url[:120]} was refused: {exchange.reason[:160]}"
        count = len(outcome.exchanges)
        wanted = 0 if case.expectation == "arguments" else 1
        if count != wanted and not case.pages:
            yield f"{count} requests were made, not {wanted}"
        if not count:
            return
        request = outcome.exchanges[0].request
        # Most cases of a row send the same request for the same arguments: the verdict is the same.
        arguments, known = self.checked.get(request, ({}, None))
        if known is None or arguments != case.arguments:
            known = check_request(
                subject.operation, subject.select_sent(case), subject.places, request, self.judge
            )
            self.checked[request] = case.arguments, known
        yield from known


def _pair_cases(subject: MockSubject) -> Iterator[tuple[MockSubject, MockCase]]:
    return ((subject, case) for case in subject.iterate_cases())


def build_mock_policy(bundle: Bundle, tool: str) -> Policy:
    """The tool's policy without credentials, which the mock does not require."""
    return Policy(
        tuple(replace(rule, security=()) for rule in build_tool_policy(bundle, tool).rules)
    )


def _check_outcome(subject: MockSubject, case: MockCase, outcome: Outcome) -> tuple[str, ...]:
    assert case.answer is not None
    if case.pages:
        return tuple(check_pages(case.pages, case.arguments[subject.pager], outcome))
    expected = case.expectation
    undelivered = expected in ("timeout", "too_large", "arguments", "refused")
    if expected == "answer" and outcome.difference and not subject.is_certain(case.answer.response):
        expected = "arrived"
    return check_result(expected, None if undelivered else case.answer.response, outcome)


def _format_evidence(case: MockCase, outcome: Outcome, problems: tuple[str, ...]) -> str:
    if problems:
        return "; ".join(problems)
    if not outcome.exchanges:
        return f"nothing was sent, told as {outcome.failure.kind if outcome.failure else ''}"
    exchange = outcome.exchanges[0]
    status = exchange.response.status if exchange.response else exchange.refusal
    retries = f" after {exchange.attempts} attempts" if exchange.attempts > 1 else ""
    told = f", told as {outcome.failure.kind}" if outcome.failure else ""
    return f"{exchange.request.method} {exchange.request.url[:160]}: {status}{retries}{told}"


def _get_row_name(subject: MockSubject) -> str:
    return subject.operation.id


def _order_cells(
    spec: APISpec,
    rows: Sequence[MockSubject],
    found: dict[tuple[str, str], CaseResult],
    others: Set[str],
) -> tuple[CaseResult, ...]:
    """The whole matrix: a cell without an entry fails, and so does an operation without a tool.
    `others` are called by tools whose own code does it.
    """
    cells = [
        found.get(
            (row.tool.name, name),
            CaseResult(_get_row_name(row), name, "failed", "the cell has no entry"),
        )
        for row in rows
        for name in row.list_cells()
    ]
    called = {row.operation.id for row in rows} | others
    cells += [
        CaseResult(operation.id, "tool", "failed", "no tool calls this operation")
        for operation in spec.operations
        if operation.id not in called
    ]
    return tuple(cells)


def _build_report(cells: tuple[CaseResult, ...], elapsed_ms: float) -> StageReport:
    ran = [cell for cell in cells if cell.verdict != "skipped"]
    failed = any(cell.verdict == "failed" for cell in cells)
    called = [cell for cell in ran if cell.case not in SCHEMAS]
    proved = {cell.operation for cell in called}
    unproved = sorted({cell.operation for cell in cells} - proved)
    note = f"could not be tried at all: {', '.join(unproved)[:400]}" if unproved else ""
    if not called and not failed:
        return StageReport("mock", "skipped", elapsed_ms, cells, coverage=0.0, note=note or "empty")
    verdict: Verdict = "failed" if failed else "passed"
    return StageReport(
        "mock", verdict, elapsed_ms, cells, coverage=len(ran) / len(cells), note=note
    )


def _measure_elapsed(started: float) -> float:
    return (time.perf_counter() - started) * 1000
