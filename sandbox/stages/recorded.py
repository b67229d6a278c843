"""The recorded stage: what once failed, or once worked, run again on what was answered then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cassette import Cassette
from sandbox.clock import Clock, VirtualClock
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken, UpstreamUnreachable
from sandbox.exchange import Upstream, WireRequest, WireResponse
from sandbox.mockapi import MockApi
from sandbox.mockstage import MOCK_CAPS, mock_policy
from sandbox.pace import Pace
from sandbox.recordedcase import RecordedCase
from sandbox.recording import Tape
from sandbox.report import CaseResult, StageReport, Verdict
from sandbox.runner import Runner, Session
from sandbox.sender import Paced
from sandbox.throttle import Rate, Throttle
from sandbox.toolcall import RecordedCalls

CASE_CAPS = replace(MOCK_CAPS, response_bytes=8 * 1024 * 1024)
UNLIMITED = Rate(1e6, 1e6)
MEAN = 0.5
"""Every wait before another try is the mean of what it would be, so that a case is always alike."""


class Remembered:
    """An upstream that answers as it did, and what it was never asked as the API's document says.

    It may have a limit, and refuses what is beyond that without a word of when to come back.
    """

    def __init__(self, case: RecordedCase, bundle: Bundle, clock: Clock) -> None:
        self._cassette = Cassette.of(case.exchanges)
        self._mock = MockApi(bundle.spec, clock) if bundle.spec else None
        self._limit, self._clock = case.limit, clock
        self._accepted: deque[float] = deque()

    async def send(self, request: WireRequest) -> WireResponse:
        if self._limit and self._is_too_much(self._limit):
            return WireResponse(429, (("content-type", "text/plain"),), b"too many requests")
        try:
            return await self._cassette.send(request)
        except UpstreamUnreachable:
            if self._mock is None:
                raise
            return await self._mock.send(request)

    def _is_too_much(self, limit: Pace) -> bool:
        now, taken = self._clock.now(), self._accepted
        # A hair less than the window: a request that leaves exactly when it ends is in time.
        while taken and now - taken[0] >= limit.per - 1e-6:
            taken.popleft()
        if len(taken) >= limit.requests:
            return True
        taken.append(now)
        return False


async def prove_recorded(
    bundle: Bundle, cases: Sequence[RecordedCase], runner: Runner
) -> StageReport:
    """Try every recorded case; one whose tool the bundle has not is skipped."""
    started = time.perf_counter()
    results = [await _tried(bundle, case, runner) for case in cases]
    failed = any(result.verdict == "failed" for result in results)
    ran = sum(result.verdict != "skipped" for result in results)
    elapsed = (time.perf_counter() - started) * 1000
    verdict: Verdict = "failed" if failed else "passed" if ran else "skipped"
    return StageReport(
        "recorded", verdict, elapsed, tuple(results), coverage=ran / max(1, len(results))
    )


async def _tried(bundle: Bundle, case: RecordedCase, runner: Runner) -> CaseResult:
    if case.tool not in {tool.name for tool in bundle.tools}:
        return CaseResult(case.tool, case.name, "skipped", "the server has no such tool")
    clock = VirtualClock()
    upstream: Upstream = Remembered(case, bundle, clock)
    broker = Broker(
        mock_policy(bundle, case.tool),
        upstream,
        caps=CASE_CAPS,
        clock=clock,
        throttle=Throttle(UNLIMITED),
        random=lambda: MEAN,
        paced=Paced(bundle.name, bundle.paces),
    )
    try:
        async with runner.open(bundle, broker) as session:
            problem = await _problem(session, case, RecordedCalls(upstream))
    except (LoadFailed, SessionBroken, CallTimedOut) as error:
        problem = str(error)
    if problem:
        return CaseResult(case.tool, case.name, "failed", problem[:600])
    times = f"{case.calls} calls succeed" if case.calls > 1 else "succeeds"
    limit = f" within {case.limit}" if case.limit else ""
    return CaseResult(case.tool, case.name, "passed", f"{times}{limit}")


async def _problem(session: Session, case: RecordedCase, calls: RecordedCalls) -> str:
    """What is wrong with the first of the case's calls that does not succeed."""
    for number in range(1, case.calls + 1):
        outcome = await session.call(case.tool, case.arguments, tape=Tape(calls=calls))
        if outcome.failure is not None:
            failure = outcome.failure
            status = f" {failure.status}" if failure.status else ""
            return f"call {number}: {failure.kind}{status}: {failure.message[:300]}"
    return ""
