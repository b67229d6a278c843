"""The red team stage: attacks handwritten code with hostile arguments and API outages.

Inputs of the cases and mock stages (the plain edges of a schema, refusals by the schema, documented
and common faults of an API) are not repeated. Compiled code has nothing of its own to attack, and
no such stage.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.broker.host.network_requests import is_network
from sandbox.broker.host.tools import (
    NO_CALLS,
    KnownCalls,
    ToolCalls,
    collect_answers,
    get_called_tool,
    is_call,
    list_calls,
)
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, RequestPattern, ToolDefinition
from sandbox.bundle.permissions import CLOCK, RANDOM, is_permission_request, parse_permissions
from sandbox.bundle.report import CaseResult, Finding, StageReport, Verdict
from sandbox.clock import VirtualClock
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.hostile_values import Attack, generate_attacks, simplify_attack
from sandbox.schemas.samples import Sampler, Unsatisfiable
from sandbox.schemas.validator import SchemaChecker, get_checker
from sandbox.session.interface import Outcome, Runner, Session
from sandbox.session.recording import CallLog
from sandbox.stages.mock.stage import build_mock_policy
from sandbox.stages.outages import OUTAGES, BrokenApi, Outage
from sandbox.stages.replay.replay import CaseReplay
from sandbox.stages.trials import (
    BROKEN,
    MAX_SHOWN,
    Came,
    NoOutcome,
    format_outcome,
    format_value,
    serialize_result,
)
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.policy import is_request_of

BUDGET_SECONDS = 120.0
"""An outer limit, which attacks do not come near: after it none begins, and the report says that
this is undecided. What is tried is counted, so that it is the same on every machine.
"""
CALL_SECONDS = 10.0
MAX_BREAKS = 1
MAX_ATTACKS = 150
"""So many attacks are made, shared by the tools."""
MAX_SIMPLER = 12
MAX_FINDINGS = 3
"""So many findings are reported for one tool."""
MAX_RESULT = 4 * 1024 * 1024
CRASHES = ("bug", "schema")


@dataclass(frozen=True)
class AttackSession:
    """A session to attack, the API that its tools reach, and the broker between."""

    session: Session
    broker: Broker
    api: BrokenApi


OpenRange = Callable[[], AbstractAsyncContextManager[AttackSession]]


def build_attack_opener(bundle: Bundle, runner: Runner) -> OpenRange:
    """A function that opens fresh sessions of a bundle whose API is broken, on a virtual clock."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[AttackSession]:
        clock = VirtualClock()
        api = BrokenApi(clock)
        broker = Broker(
            build_mock_policy(bundle, bundle.tools[0].name), api, caps=Caps(), clock=clock
        )
        async with runner.open(bundle, broker) as session:
            yield AttackSession(session, broker, api)

    return opened


async def prove_redteam(
    bundle: Bundle,
    examples: Sequence[Example],
    open_range: OpenRange,
    *,
    seed: int = 0,
    budget: float = BUDGET_SECONDS,
    seconds: float = CALL_SECONDS,
) -> StageReport:
    """Attack a bundle's tools with hostile arguments, and those that ask an API with its outages.

    Every finding is a case that can be run again: `given` are the arguments, its name has the seed.
    """
    started = time.perf_counter()
    targets = [target for tool in bundle.tools if (target := _build_target(tool, examples, seed))]
    share = max(1, MAX_ATTACKS // max(1, len(targets)))
    team = _RedTeam(bundle, open_range, seed, started + budget, seconds, share)
    replay = CaseReplay(bundle, examples, team.call_with, team.cells)
    try:
        for target in targets:
            if team.breaks > MAX_BREAKS:
                break
            await team.attack_target(target)
            await replay.replay_tool(target.tool)
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport(
            "redteam", "failed", _measure_elapsed(started), findings=(finding,), coverage=0.0
        )
    finally:
        await team.close_session()
    failed = any(cell.verdict == "failed" for cell in team.cells)
    verdict: Verdict = "failed" if failed else "passed" if targets else "skipped"
    missed = team.planned - team.ran
    note = f"{team.ran} of {team.planned} attacks were made, the others are undecided"
    coverage = team.ran / team.planned if team.planned else 0.0
    return StageReport(
        "redteam",
        verdict,
        _measure_elapsed(started),
        tuple(team.cells),
        coverage=coverage,
        note=note if missed else "",
    )


@dataclass(frozen=True)
class AttackTarget:
    """A tool with ordinary arguments for it."""

    tool: ToolDefinition
    usual: Mapping[str, Any]
    judge: SchemaChecker
    calls: KnownCalls = NO_CALLS

    @property
    def asks_api(self) -> bool:
        return not all(map(is_permission_request, self.tool.requests))


def _build_target(
    tool: ToolDefinition, examples: Sequence[Example], seed: int
) -> AttackTarget | None:
    judge = get_checker(tool.input_schema)
    own = (e.arguments for e in examples if e.tool == tool.name and not e.failure)
    usual = next((given for given in own if judge.find_problem(given) is None), None)
    if usual is None:
        definitions = tool.input_schema.get("$defs", {})
        try:
            made = Sampler(DirectionalValidator(definitions, "request"), seed).make_sample(
                tool.input_schema, "minimal"
            )
        except Unsatisfiable:
            return None
        usual = made if isinstance(made, dict) else None
    return (
        AttackTarget(tool, usual, judge, collect_answers(examples, tool.name))
        if usual is not None
        else None
    )


@dataclass
class _RedTeam:
    """Attacks the targets one after another. A session that an attack ends is replaced, MAX_BREAKS
    times.
    """

    bundle: Bundle
    open_range: OpenRange
    seed: int
    until: float
    seconds: float
    share: int
    cells: list[CaseResult] = field(default_factory=list)
    planned: int = 0
    ran: int = 0
    breaks: int = 0
    crashes: set[tuple[str, str, str]] = field(default_factory=set)
    """(tool, kind, message) of the crashes so far; each is reported once."""
    _range: AttackSession | None = None
    _context: AbstractAsyncContextManager[AttackSession] | None = None

    async def attack_target(self, target: AttackTarget) -> None:
        before = len(self.cells)
        if target.asks_api:
            await self._try_outages(target)
        first = None if target.asks_api else await self._call_tool(target, target.usual)
        if isinstance(first, NoOutcome):
            self._report_finding(target, "the usual call", target.usual, first)
        random = Random(f"{self.seed}:{target.tool.name}")
        listed = list(
            generate_attacks(target.tool.input_schema, target.usual, target.judge, random)
        )
        random.shuffle(listed)
        planned = listed[: self.share]
        self.planned += len(planned)
        for attack in planned:
            found = len(self.cells) - before
            if found >= MAX_FINDINGS or self._is_over():
                break
            await self._try_attack(target, attack)
        if isinstance(first, Outcome) and self._is_steady():
            await self._repeat_usual_call(target, first)
        if len(self.cells) == before:
            self.cells.append(CaseResult(target.tool.name, "attacks", "passed", "all withstood"))

    async def close_session(self) -> None:
        """End the session, if one is open."""
        context, self._context, self._range = self._context, None, None
        if context is not None:
            await context.__aexit__(None, None, None)

    def _is_over(self) -> bool:
        """Whether no further attack may begin."""
        return self.breaks > MAX_BREAKS or time.perf_counter() > self.until

    def _is_steady(self) -> bool:
        return not {CLOCK, RANDOM} & {*self.bundle.permissions}

    async def _try_attack(self, target: AttackTarget, attack: Attack) -> None:
        self.ran += 1
        came = await self._call_tool(target, attack.arguments)
        problem = self._find_problem(target, came)
        if not problem:
            return
        if isinstance(came, Outcome) and came.failure and came.failure.kind in CRASHES:
            crash = (target.tool.name, came.failure.kind, came.failure.message)
            if crash in self.crashes:
                return
            self.crashes.add(crash)
            attack, came = await self._simplify_crash(target, attack, came)
        self._report_finding(
            target, f"attack, seed {self.seed}: {attack.name}", attack.arguments, came
        )

    async def _simplify_crash(
        self, target: AttackTarget, attack: Attack, came: Outcome
    ) -> tuple[Attack, Outcome]:
        """Reduce the arguments while the crash stays the same, within MAX_SIMPLER calls."""
        tries = 0
        while tries < MAX_SIMPLER and not self._is_over():
            for less in simplify_attack(attack, target.usual, target.judge):
                tries += 1
                again = await self._call_tool(target, less.arguments)
                if isinstance(again, Outcome) and _is_same_crash(came, again):
                    attack, came = less, again
                    break
                if tries >= MAX_SIMPLER or self._is_over():
                    break
            else:
                break
        return attack, came

    async def _try_outages(self, target: AttackTarget) -> None:
        self.planned += len(OUTAGES)
        for outage in OUTAGES:
            if self._is_over():
                break
            self.ran += 1
            came = await self._call_tool(target, target.usual, outage)
            if self._find_problem(target, came) or self._pretends_success(came, outage):
                self._report_finding(target, f"the API: {outage.name}", target.usual, came, outage)

    def _pretends_success(self, came: Came, outage: Outage) -> bool:
        lost = outage.does != "answers" or outage.answer.status >= 300
        return lost and isinstance(came, Outcome) and came.failure is None and self._asked > 0

    async def _repeat_usual_call(self, target: AttackTarget, first: Outcome) -> None:
        """Repeat the usual call after all others, and with its arguments in another order."""
        for what, given in (
            ("once more, after other calls", target.usual),
            ("the arguments in another order", dict(reversed(list(target.usual.items())))),
        ):
            came = await self._call_tool(target, given)
            if isinstance(came, Outcome) and serialize_result(came) != serialize_result(first):
                self.cells.append(
                    CaseResult(
                        target.tool.name,
                        what,
                        "failed",
                        "the result is another, so it depends on more than its arguments say",
                        format_value(dict(given)),
                        format_value(first.structured),
                        format_outcome(came),
                    )
                )

    async def _call_tool(
        self, target: AttackTarget, arguments: Mapping[str, Any], outage: Outage = OUTAGES[0]
    ) -> Came:
        place = await self._ensure_session()
        place.broker.policy = build_mock_policy(self.bundle, target.tool.name)
        place.api.outage, place.api.asked = outage, 0
        try:
            return await self._call_session(place, target.tool, arguments, target.calls)
        finally:
            self._asked = place.api.asked

    async def call_with(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], calls: ToolCalls
    ) -> Came:
        """Call a tool whose every request is answered by `calls`."""
        if self.breaks > MAX_BREAKS:
            return BROKEN
        place = await self._ensure_session()
        place.broker.policy = build_mock_policy(self.bundle, tool.name)
        return await self._call_session(place, tool, arguments, calls)

    async def _call_session(
        self,
        place: AttackSession,
        tool: ToolDefinition,
        arguments: Mapping[str, Any],
        calls: ToolCalls,
    ) -> Came:
        try:
            known = calls.restart() if isinstance(calls, KnownCalls) else calls
            tape = CallLog(calls=known)
            return await place.session.call(tool.name, arguments, self.seconds, tape)
        except (SessionBroken, CallTimedOut) as error:
            self.breaks += 1
            await self.close_session()
            return NoOutcome("broke", str(error))

    async def _ensure_session(self) -> AttackSession:
        if self._range is None:
            self._context = self.open_range()
            self._range = await self._context.__aenter__()
        return self._range

    def _find_problem(self, target: AttackTarget, came: Came) -> str:
        """What is wrong with what came of a call; "" where nothing is."""
        if isinstance(came, NoOutcome):
            return f"it ended its sandbox: {came.reason}"
        asked = next(self._find_undeclared(target, came), "")
        if asked:
            return f"it asks for {asked}, which is not declared"
        if came.failure and came.failure.kind in CRASHES:
            where = f" at {came.failure.where}" if came.failure.where else ""
            said = f"({came.failure.kind}{where}): {came.failure.message[:200]}"
            return f"the input schema admits these arguments, but the call failed {said}"
        size = len(serialize_result(came))
        return f"the result has {size} characters" if size > MAX_RESULT else ""

    def _find_undeclared(self, target: AttackTarget, came: Outcome) -> Iterator[str]:
        """The requests of a call that its bundle does not declare."""
        declared = parse_permissions(self.bundle.permissions)
        for exchange in came.exchanges:
            request = exchange.request
            if is_call(request) and get_called_tool(request) in list_calls(target.tool):
                continue
            if is_network(request) and _get_scheme(request) in _list_schemes(target.tool):
                continue
            # Declared, and refused for a value that no path can hold: that is the broker's to do.
            if any(is_request_of(r, request.method, request.url) for r in _list_sent(target.tool)):
                continue
            local = request.url.startswith(("file:", "env:"))
            kind = "fs" if request.url.startswith("file:") else "env"
            if exchange.kind in ("refused", "unsupported"):
                if not local or all(each.kind != kind for each in declared):
                    yield f"{request.method} {request.url[:160]}"

    def _report_finding(
        self,
        target: AttackTarget,
        name: str,
        arguments: Mapping[str, Any],
        came: Came,
        outage: Outage | None = None,
    ) -> None:
        problem = self._find_problem(target, came)
        expected = "a result or a ToolError"
        if not problem:
            problem, expected = "it says that it succeeded", "a failure"
        given = format_value(dict(arguments))
        self.cells.append(
            CaseResult(
                target.tool.name,
                name[:MAX_SHOWN],
                "failed",
                problem if outage is None else f"where the API is out of order, {problem}",
                given,
                expected,
                format_outcome(came),
            )
        )


def _get_scheme(request: WireRequest) -> str:
    return request.url.partition(":")[0]


def _list_sent(tool: ToolDefinition) -> Iterator[RequestPattern]:
    return (request for request in tool.requests if not is_permission_request(request))


def _list_schemes(tool: ToolDefinition) -> frozenset[str]:
    """The URL schemes of a tool's declared requests."""
    return frozenset(request.url.partition(":")[0] for request in tool.requests)


def _is_same_crash(one: Outcome, other: Outcome) -> bool:
    if one.failure is None or other.failure is None:
        return False
    return (one.failure.kind, one.failure.message) == (other.failure.kind, other.failure.message)


def _measure_elapsed(started: float) -> float:
    return (time.perf_counter() - started) * 1000
