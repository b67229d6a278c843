"""The mock stage: every operation with every case, against an API that is not there."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.apispec import APISpec
from sandbox.broker import Broker, Caps
from sandbox.bundle import Bundle
from sandbox.cases import SCHEMAS, Case, Subject, subjects
from sandbox.contract import check_pages, check_request, check_result
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.exchange import WireRequest
from sandbox.judge import Judge
from sandbox.mockapi import MockApi, Scripted
from sandbox.policy import Policy, tool_policy
from sandbox.report import CaseResult, Finding, StageReport, Verdict
from sandbox.runner import Outcome, Session

MOCK_CAPS = Caps(response_bytes=256 * 1024, exchanges=1_000_000)
"""A small limit for answers, so that crossing it costs little; the rest as in earnest."""

CALL_SECONDS = 5.0
"""What a call may take whose API answers at once."""
MAX_BREAKS = 1
MAX_EVIDENCE = 600


@dataclass(frozen=True)
class Bench:
    """One lane: a session, the broker it asks, and the mock that the broker asks."""

    session: Session
    broker: Broker
    mock: MockApi


OpenBench = Callable[[], AbstractAsyncContextManager[Bench]]


async def prove_mock(
    bundle: Bundle, open_bench: OpenBench, *, lanes: int = 2, caps: Caps = MOCK_CAPS, seed: int = 0
) -> StageReport:
    """Try every operation of the bundle with every case, in as many sessions as `lanes`.

    `caps` are those of the benches' brokers. A session that breaks fails its cell and is replaced
    once in its lane.
    """
    started = time.perf_counter()
    if bundle.spec is None:
        note = "pure code: there is no API to imitate"
        return StageReport("mock", "skipped", 0.0, coverage=0.0, note=note)
    rows = subjects(bundle.spec, bundle.tools, caps, seed, bundle.source_code)
    queue = deque(rows)
    judge = Judge(bundle.spec.schemas, "request")
    running = [_Lane(bundle, open_bench, queue, judge) for _ in range(lanes)]
    await _together(running)
    refused = next((lane.refused for lane in running if lane.refused), None)
    if refused:
        finding = Finding("server.py", "", "load", refused)
        return StageReport("mock", "failed", _since(started), findings=(finding,), coverage=0.0)
    found = {key: result for lane in running for key, result in lane.results.items()}
    return _report(_in_order(bundle.spec, rows, found), _since(started))


async def _together(lanes: Sequence[_Lane]) -> None:
    tasks = [asyncio.ensure_future(lane.run()) for lane in lanes]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class _Lane:
    """Works through rows of the common queue, one call after another.

    `refused` is why the runtime does not load the bundle; no other lane is cut off for it, because
    a session that is being opened is best let finish.
    """

    bundle: Bundle
    open_bench: OpenBench
    queue: deque[Subject]
    judge: Judge
    results: dict[tuple[str, str], CaseResult] = field(default_factory=dict)
    pending: tuple[Subject, Case] | None = None
    cases: Iterator[tuple[Subject, Case]] = field(default_factory=lambda: iter(()))
    checked: dict[WireRequest, tuple[Mapping[str, Any], tuple[str, ...]]] = field(
        default_factory=dict
    )
    breaks: int = 0
    refused: str = ""

    async def run(self) -> None:
        try:
            while self._more():
                async with self.open_bench() as bench:
                    await self._work(bench)
        except LoadFailed as error:
            self.refused = str(error)
            self.queue.clear()

    async def _work(self, bench: Bench) -> None:
        """Call until nothing is left or the session has ended."""
        while self._more():
            subject, case = self._next()
            if case.skipped:
                self._enter(subject, case, "skipped", case.skipped)
                continue
            if case.problems is not None:
                told = "; ".join(case.problems) or "as documented"
                self._enter(subject, case, "failed" if case.problems else "passed", told)
                continue
            try:
                outcome = await _called(self.bundle, bench, subject, case)
            except (SessionBroken, CallTimedOut) as error:
                self._enter(subject, case, "failed", str(error))
                self._broke()
                return
            problems = (*self._sent(subject, case, outcome), *_made_of(subject, case, outcome))
            evidence = _evidence(case, outcome, problems)
            self._enter(subject, case, "failed" if problems else "passed", evidence)

    def _more(self) -> bool:
        """Whether there is a case left; the next one is made if it is not there yet."""
        while self.pending is None:
            self.pending = next(self.cases, None)
            if self.pending is None:
                if not self.queue:
                    return False
                subject = self.queue.popleft()
                self.checked = {}
                self.cases = _of(subject)
        return True

    def _next(self) -> tuple[Subject, Case]:
        assert self.pending is not None
        taken, self.pending = self.pending, None
        return taken

    def _broke(self) -> None:
        self.breaks += 1
        while self.breaks > MAX_BREAKS and self._more():
            subject, case = self._next()
            self._enter(subject, case, "failed", "not run: the sessions break too often")

    def _enter(self, subject: Subject, case: Case, verdict: Verdict, evidence: str) -> None:
        key = (subject.tool.name, case.name)
        self.results[key] = CaseResult(_row(subject), case.name, verdict, evidence[:MAX_EVIDENCE])

    def _sent(self, subject: Subject, case: Case, outcome: Outcome) -> Iterator[str]:
        """What is wrong with the requests of a call."""
        refused = [e for e in outcome.exchanges if e.refusal in ("refused", "unsupported")]
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
                subject.operation, subject.sent(case), subject.places, request, self.judge
            )
            self.checked[request] = case.arguments, known
        yield from known


def _of(subject: Subject) -> Iterator[tuple[Subject, Case]]:
    return ((subject, case) for case in subject.cases())


def mock_policy(bundle: Bundle, tool: str) -> Policy:
    """What the tool may ask the mock for, which wants no credential."""
    return Policy(tuple(replace(rule, security=()) for rule in tool_policy(bundle, tool).rules))


async def _called(bundle: Bundle, bench: Bench, subject: Subject, case: Case) -> Outcome:
    bench.broker.policy = mock_policy(bundle, subject.tool.name)
    later = case.pages.answers[1:] if case.pages else ()
    bench.mock.script(case.answer, [Scripted(answer) for answer in later])
    return await bench.session.call(subject.tool.name, case.arguments, CALL_SECONDS)


def _made_of(subject: Subject, case: Case, outcome: Outcome) -> tuple[str, ...]:
    assert case.answer is not None
    if case.pages:
        return tuple(check_pages(case.pages, case.arguments[subject.pager], outcome))
    undelivered = case.expectation in ("timeout", "too_large", "arguments")
    return check_result(case.expectation, None if undelivered else case.answer.response, outcome)


def _evidence(case: Case, outcome: Outcome, problems: tuple[str, ...]) -> str:
    if problems:
        return "; ".join(problems)
    if not outcome.exchanges:
        return f"nothing was sent, told as {outcome.failure.kind if outcome.failure else ''}"
    exchange = outcome.exchanges[0]
    status = exchange.response.status if exchange.response else exchange.refusal
    retries = f" after {exchange.attempts} attempts" if exchange.attempts > 1 else ""
    told = f", told as {outcome.failure.kind}" if outcome.failure else ""
    return f"{exchange.request.method} {exchange.request.url[:160]}: {status}{retries}{told}"


def _row(subject: Subject) -> str:
    return subject.operation.id


def _in_order(
    spec: APISpec, rows: Sequence[Subject], found: dict[tuple[str, str], CaseResult]
) -> tuple[CaseResult, ...]:
    """The whole matrix: a cell without an entry fails, and so does an operation without a tool."""
    cells = [
        found.get(
            (row.tool.name, name), CaseResult(_row(row), name, "failed", "the cell has no entry")
        )
        for row in rows
        for name in row.cells()
    ]
    called = {row.operation.id for row in rows}
    cells += [
        CaseResult(operation.id, "tool", "failed", "no tool calls this operation")
        for operation in spec.operations
        if operation.id not in called
    ]
    return tuple(cells)


def _report(cells: tuple[CaseResult, ...], elapsed_ms: float) -> StageReport:
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


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
