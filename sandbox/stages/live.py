"""The live stage: a few safe reads against the real API, and what their answers teach.

Values of answers stay here: the report holds URL templates, statuses, sizes, places and types.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult, StageReport, Verdict
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.session.interface import Outcome, Session
from sandbox.stages.mock.answers import AnswerBuilder
from sandbox.stages.probe.budget import MeteredUpstream, ProbeBudget
from sandbox.stages.probe.chaining import ProbeTarget, build_target, find_ids
from sandbox.stages.probe.observations import (
    TypeObservation,
    build_findings,
    learn_widenings,
    observe_answer,
    render_observations,
)
from sandbox.stages.probe.selection import find_objection
from sandbox.wire.exchange import Exchange
from sandbox.wire.policy import build_read_policy

CANDIDATES = 3
CASE = "live"
NO_API = "there is no API to ask"
NOTHING_FREE = "no read by GET can be called without arguments"
MAX_EVIDENCE = 300
MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of an answer that the probe looks at."""
SHARE = 0.6
"""How much of the budget goes to reads without arguments while others wait for an id."""
FAILURES = 3
"""Reads in a row without an answer of success, after which no more is asked."""
_ENDING = frozenset({"frozen", "rate_limited"})
_TELLING = frozenset({"credential", "unreachable", "timeout", "too_large"})
"""Refusals whose reasons hold nothing of an answer."""


def list_targets(bundle: Bundle, withheld: Set[str] = frozenset()) -> tuple[ProbeTarget, ...]:
    """The reads that a probe may ask, in the order of the bundle's tools; none that is `withheld`
    because a person classified it as a write.
    """
    operations = (
        {operation.id: operation for operation in bundle.spec.operations} if bundle.spec else {}
    )
    targets = (
        build_target(tool, operations[tool.operation])
        for tool in bundle.tools
        if tool.operation in operations
        and tool.name not in withheld
        and not find_objection(tool, operations[tool.operation])
    )
    return tuple(target for target in targets if target is not None)


def find_candidates(
    bundle: Bundle, withheld: Set[str] = frozenset()
) -> tuple[tuple[ToolDefinition, Operation], ...]:
    """At most three read tools to try where nothing is to be learned: nothing required, those that
    document JSON first and the shorter path before the longer.
    """
    if bundle.spec is None:
        return ()
    free = [target for target in list_targets(bundle, withheld) if _is_free(target)]
    return tuple((t.tool, t.operation) for t in _order_free(bundle.spec, free)[:CANDIDATES])


def restrict_broker(
    broker: Broker,
    bundle: Bundle,
    budget: ProbeBudget | None,
    withheld: Set[str] = frozenset(),
) -> MeteredUpstream | None:
    """Leave a broker the requests of the probe's targets alone: no other read can be reached from
    an answer, by a redirect for one. With a `budget`, bound what it sends by the meter returned.
    """
    asked = {target.tool.name for target in list_targets(bundle, withheld)}
    tools = tuple(tool for tool in bundle.tools if tool.name in asked)
    broker.policy = build_read_policy(replace(bundle, tools=tools))
    if budget is None:
        return None
    broker.upstream = meter = MeteredUpstream(broker.upstream, budget)
    broker.caps = replace(broker.caps, attempts=1, response_bytes=MAX_ANSWER)
    return meter


async def prove_live(
    bundle: Bundle,
    session: Session,
    meter: MeteredUpstream | None = None,
    withheld: Set[str] = frozenset(),
) -> StageReport:
    """Call safe reads; one that gives a documented success passes the stage.

    Without a `meter` of the session's requests the first such answer ends it, and nothing is
    learned. With one, reads are asked until it is spent, and the report has what their answers
    teach. A read that fails is no failure of the bundle: the stage is then inconclusive.
    """
    started = time.perf_counter()
    if bundle.spec is None:
        return build_skipped_report(NO_API)
    probe = _Probe(bundle, bundle.spec, session, meter, withheld)
    await probe.run()
    if not probe.cases:
        return build_skipped_report(NOTHING_FREE)
    passed = any(case.verdict == "passed" for case in probe.cases)
    told = [] if passed else ["no safe read gave a documented success"]
    seen = render_observations(probe.observations)
    told += filter(None, [probe.find_credential_hint(), probe.ended, seen])
    return StageReport(
        "live",
        "passed" if passed else "inconclusive",
        (time.perf_counter() - started) * 1000,
        tuple(probe.cases),
        build_findings(probe.observations),
        coverage=len(probe.cases) / max(probe.count, 1),
        note="; ".join(told),
        learned=learn_widenings(probe.observations, bundle.widened) if meter else (),
    )


def build_skipped_report(why: str) -> StageReport:
    """The report of a live stage that did not take place."""
    return StageReport("live", "skipped", 0.0, coverage=0.0, note=why)


@dataclass
class _Probe:
    """One run of the stage. `known` are the ids that answers gave, `ended` why it stopped early,
    `barred` the last status that asks for a credential.
    """

    bundle: Bundle
    spec: APISpec
    session: Session
    meter: MeteredUpstream | None
    withheld: Set[str]
    cases: list[CaseResult] = field(default_factory=list)
    observations: list[TypeObservation] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    ended: str = ""
    barred: int = 0
    count: int = 0
    _failures: int = 0

    async def run(self) -> None:
        """Ask until the budget, the targets or the API's patience come to an end."""
        self._answers = AnswerBuilder(self.spec)
        targets = list_targets(self.bundle, self.withheld)
        self._chained = [target for target in targets if not _is_free(target) and self.meter]
        self._free = _order_free(self.spec, [t for t in targets if _is_free(t)], self._chained)
        limit = self.meter.budget.requests if self.meter else CANDIDATES
        self.count = min(limit, len(self._free) + len(self._chained))
        while len(self.cases) < limit and not self.ended and not self._is_spent():
            following = self._take_next(limit)
            if following is None:
                break
            await self._ask(*following)
            if self.meter is None and self.cases[-1].verdict == "passed":
                break

    def find_credential_hint(self) -> str:
        """Which credential to set where the API asked for one; "" where it did not."""
        if not self.barred:
            return ""
        names = [credential.name for credential in self.bundle.credentials]
        if not names:
            return f"it answered {self.barred}, and no credential is declared: see forge --auth"
        server = self.bundle.name
        return f"it answered {self.barred}: `toolwright secret set {server}.{names[0]}` lets it in"

    def _is_spent(self) -> bool:
        return self.meter is not None and self.meter.is_spent

    def _take_next(self, limit: int) -> tuple[ProbeTarget, Mapping[str, Any]] | None:
        """The next read with its arguments: those without any first, then those whose ids came."""
        ready = self._find_ready()
        asked = len(self.cases)
        if self._free and (ready is None or asked < limit * SHARE):
            target = self._free.pop(0)
            return target, {}
        if ready is not None:
            self._chained.remove(ready[0])
        return ready

    def _find_ready(self) -> tuple[ProbeTarget, Mapping[str, Any]] | None:
        found = ((target, target.find_arguments(self.known)) for target in self._chained)
        return next(((target, given) for target, given in found if given is not None), None)

    async def _ask(self, target: ProbeTarget, arguments: Mapping[str, Any]) -> None:
        operation = target.operation
        try:
            outcome = await self.session.call(target.tool.name, arguments)
        except (SessionBroken, CallTimedOut) as error:
            self.ended = "the session ended"
            told = str(error) if not arguments else type(error).__name__
            self.cases.append(CaseResult(operation.id, CASE, "inconclusive", told[:MAX_EVIDENCE]))
            return
        exchange = outcome.exchanges[-1] if outcome.exchanges else None
        learnt = await self._learn(target, outcome, exchange) if self.meter else None
        self.cases.append(_judge_outcome(operation, outcome, exchange, self._answers, learnt))
        self._count_failure(exchange)

    async def _learn(
        self, target: ProbeTarget, outcome: Outcome, exchange: Exchange | None
    ) -> TypeObservation | None:
        """What an answer shows; None where it is no whole JSON answer of success."""
        response = exchange.response if exchange else None
        if response is None or not 200 <= response.status < 300 or not response.body:
            return None
        if outcome.failure is not None and outcome.failure.kind != "schema":
            return None
        work = asyncio.to_thread(
            _read_answer, self.spec, target, response.status, response.body, self._chained
        )
        read = await work
        if read is None:
            return None
        seen, ids = read
        self.observations.append(seen)
        self.known = {**ids, **self.known}
        return seen

    def _count_failure(self, exchange: Exchange | None) -> None:
        """Stop where the API asks for a pause, or gives nothing."""
        status = exchange.response.status if exchange and exchange.response else 0
        refusal = exchange.refusal if exchange else ""
        self.barred = status if status in (401, 403) else self.barred
        self._failures = 0 if 200 <= status < 300 else self._failures + 1
        if status == 429 or refusal in _ENDING:
            self.ended = "asked to wait, and so asked no more"
        elif self.meter is not None and self._failures >= FAILURES:
            self.ended = f"{FAILURES} reads in a row gave nothing"
        if refusal == "frozen":
            self.ended = "Toolwright is frozen"


def _read_answer(
    spec: APISpec, target: ProbeTarget, status: int, body: bytes, waiting: list[ProbeTarget]
) -> tuple[TypeObservation, dict[str, Any]] | None:
    """What the body of an answer shows, and the ids in it; None where it is no JSON."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    seen = observe_answer(spec, target.tool, target.operation, status, value)
    return seen, find_ids(target, value, waiting)


def _is_free(target: ProbeTarget) -> bool:
    required = target.tool.input_schema.get("required")
    return not target.needs and not required


def _order_free(
    spec: APISpec, free: list[ProbeTarget], waiting: list[ProbeTarget] | None = None
) -> list[ProbeTarget]:
    """Those that document JSON first; then what gives ids to those that wait for them, and the
    shorter path before the longer.
    """
    answers = AnswerBuilder(spec)
    wanted = {collection for each in waiting or () for _, collection in each.needs}
    return sorted(
        free,
        key=lambda target: (
            answers.find_json_success(target.operation) is None,
            target.collection not in wanted,
            target.operation.path.count("/"),
        ),
    )


def _judge_outcome(
    operation: Operation,
    outcome: Outcome,
    exchange: Exchange | None,
    answers: AnswerBuilder,
    learnt: TypeObservation | None,
) -> CaseResult:
    """The cell of one read. An answer that the tool takes once it is widened is a success."""
    verdict: Verdict = "inconclusive"
    line = f"{operation.method} {operation.url[:120]}"
    if exchange is None:
        evidence = "no request was made"
    elif exchange.response is None:
        evidence = f"{line}: {exchange.reason if _is_plain(exchange) else exchange.refusal}"
    else:
        problem = _find_problem(operation, outcome, exchange, answers, learnt)
        verdict = "inconclusive" if problem else "passed"
        told = f"{exchange.response.status}, {len(exchange.response.body)} bytes"
        evidence = f"{line}: {told}" + (f"; {problem}" if problem else "")
    return CaseResult(operation.id, CASE, verdict, evidence[:MAX_EVIDENCE])


def _is_plain(exchange: Exchange) -> bool:
    return exchange.refusal in _TELLING or exchange.refusal in _ENDING


def _find_problem(
    operation: Operation,
    outcome: Outcome,
    exchange: Exchange,
    answers: AnswerBuilder,
    learnt: TypeObservation | None,
) -> str:
    """Why an answer is no success that the document has, without anything of it; "" where it is."""
    assert exchange.response is not None
    status = exchange.response.status
    if not 200 <= status < 300:
        return f"the status is {status}"
    failure = outcome.failure
    if learnt is not None:
        taken = failure is None or (failure.kind == "schema" and bool(learnt.differences))
        return "" if taken and learnt.is_learnable else "the answer is of another shape"
    if answers.find_problem(operation, exchange.response) is not None:
        return "the answer is not what is documented"
    return f"told as {failure.kind}" if failure is not None else ""
