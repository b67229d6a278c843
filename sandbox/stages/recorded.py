"""The recorded stage: runs recorded calls again, with the answers of that time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.broker.host.tools import RecordedCalls
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Rate, Throttle
from sandbox.bundle.model import Bundle
from sandbox.bundle.ratelimit import Pace
from sandbox.bundle.report import CaseResult, StageReport, Verdict
from sandbox.clock import Clock, VirtualClock
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken, UpstreamUnreachable
from sandbox.session.interface import Runner, Session
from sandbox.session.recorded_case import RecordedCase
from sandbox.session.recording import CallLog
from sandbox.stages.mock.api import MockApi
from sandbox.stages.mock.stage import MOCK_CAPS, build_mock_policy
from sandbox.wire.exchange import Upstream, WireRequest, WireResponse

CASE_CAPS = replace(MOCK_CAPS, response_bytes=8 * 1024 * 1024)
UNLIMITED = Rate(1e6, 1e6)
MEAN = 0.5
"""In place of random jitter, so that every wait before a retry is its mean and cases repeat."""


class RecordedApi:
    """An upstream that gives the recorded answers, and answers other requests from the API's
    document.

    With a limit it refuses further requests by 429, without Retry-After.
    """

    def __init__(self, case: RecordedCase, bundle: Bundle, clock: Clock) -> None:
        self._cassette = Cassette.from_exchanges(case.exchanges)
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
    """Run every recorded case; one whose tool is not in the bundle is skipped."""
    started = time.perf_counter()
    results = [await _try_case(bundle, case, runner) for case in cases]
    failed = any(result.verdict == "failed" for result in results)
    ran = sum(result.verdict != "skipped" for result in results)
    elapsed = (time.perf_counter() - started) * 1000
    verdict: Verdict = "failed" if failed else "passed" if ran else "skipped"
    return StageReport(
        "recorded", verdict, elapsed, tuple(results), coverage=ran / max(1, len(results))
    )


async def _try_case(bundle: Bundle, case: RecordedCase, runner: Runner) -> CaseResult:
    if case.tool not in {tool.name for tool in bundle.tools}:
        return CaseResult(case.tool, case.name, "skipped", "the server has no such tool")
    clock = VirtualClock()
    upstream: Upstream = RecordedApi(case, bundle, clock)
    broker = Broker(
        build_mock_policy(bundle, case.tool),
        upstream,
        caps=CASE_CAPS,
        clock=clock,
        throttle=Throttle(UNLIMITED, call_rate=UNLIMITED),
        random=lambda: MEAN,
        paced=ServerPaces(bundle.name, bundle.paces),
    )
    try:
        async with runner.open(bundle, broker) as session:
            problem = await _find_problem(session, case, RecordedCalls(upstream))
    except (LoadFailed, SessionBroken, CallTimedOut) as error:
        problem = str(error)
    if problem:
        return CaseResult(case.tool, case.name, "failed", problem[:600])
    times = f"{case.calls} calls succeed" if case.calls > 1 else "succeeds"
    limit = f" within {case.limit}" if case.limit else ""
    return CaseResult(case.tool, case.name, "passed", f"{times}{limit}")


async def _find_problem(session: Session, case: RecordedCase, calls: RecordedCalls) -> str:
    """The failure of the first of the case's calls that does not succeed, or whose answer its
    schema does not admit; "" where there is none.
    """
    for number in range(1, case.calls + 1):
        outcome = await session.call(case.tool, case.arguments, tape=CallLog(calls=calls))
        if outcome.failure is not None:
            failure = outcome.failure
            status = f" {failure.status}" if failure.status else ""
            return f"call {number}: {failure.kind}{status}: {failure.message[:300]}"
        difference = outcome.difference
        # A case of a pace is about its times: its answers may be whatever they were.
        if difference is not None and case.limit is None:
            where = difference.where or "/"
            return f"call {number}: not as documented at {where}: {difference.reason[:300]}"
    return ""
