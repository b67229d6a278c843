"""The red team: code that somebody wrote, tried by one who means it ill.

What the cases and mock stages try already (the plain edges of a schema, refusals by the schema,
documented and common faults of an API) does not come again. Code that the compiler wrote has
nothing of its own to attack, and no such stage.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sandbox.asked import is_asked
from sandbox.attacks import Attack, attacks, simpler
from sandbox.broker import Broker
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.caps import Caps
from sandbox.clock import VirtualClock
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.evidence import MAX_SHOWN, got, shown, whole
from sandbox.example import Example
from sandbox.exchange import WireRequest
from sandbox.judge import Judge
from sandbox.mockstage import mock_policy
from sandbox.netrequest import is_network
from sandbox.outages import OUTAGES, BrokenApi, Outage
from sandbox.permissions import permissions_of
from sandbox.recording import CLOCK, RANDOM, Tape
from sandbox.report import CaseResult, Finding, StageReport, Verdict
from sandbox.runner import Outcome, Runner, Session
from sandbox.samples import Sampler, Unsatisfiable
from sandbox.toolcall import NO_CALLS, KnownCalls, answers_in, called_tool, calls_of, is_call
from sandbox.validation import Checker, checker

BUDGET_SECONDS = 1.5
"""No further attack begins after this."""
OUTAGE_SECONDS = 4.0
"""Nor does any outage after this."""
CALL_SECONDS = 2.0
MAX_BREAKS = 1
MAX_ATTACKS = 150
MAX_SIMPLER = 12
MAX_FINDINGS = 3
"""So many of one tool are told."""
MAX_RESULT = 4 * 1024 * 1024
CRASHES = ("bug", "schema")


@dataclass(frozen=True)
class Range:
    """A session to attack, the API that its tools reach, and the broker between."""

    session: Session
    broker: Broker
    api: BrokenApi


OpenRange = Callable[[], AbstractAsyncContextManager[Range]]


def shooting_range(bundle: Bundle, runner: Runner) -> OpenRange:
    """Opens fresh sessions of a bundle whose API is out of order, on a virtual clock."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Range]:
        clock = VirtualClock()
        api = BrokenApi(clock)
        broker = Broker(mock_policy(bundle, bundle.tools[0].name), api, caps=Caps(), clock=clock)
        async with runner.open(bundle, broker) as session:
            yield Range(session, broker, api)

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
    outages_until = started + max(budget, OUTAGE_SECONDS)
    team = _Team(bundle, open_range, seed, started + budget, outages_until, seconds)
    targets = [target for tool in bundle.tools if (target := _target(tool, examples, seed))]
    try:
        for turn, target in enumerate(targets):
            if team.breaks > MAX_BREAKS:
                break
            team.share = (started + budget - time.perf_counter()) / (len(targets) - turn)
            await team.attack(target)
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return StageReport("redteam", "failed", _since(started), findings=(finding,), coverage=0.0)
    finally:
        await team.leave()
    failed = any(cell.verdict == "failed" for cell in team.cells)
    verdict: Verdict = "failed" if failed else "passed" if targets else "skipped"
    missed = team.planned - team.ran
    note = f"{team.ran} of {team.planned} attacks were made" if missed else ""
    coverage = team.ran / team.planned if team.planned else 0.0
    return StageReport(
        "redteam", verdict, _since(started), tuple(team.cells), coverage=coverage, note=note
    )


@dataclass(frozen=True)
class Target:
    """A tool with arguments that it usually gets."""

    tool: ToolDefinition
    usual: Mapping[str, Any]
    judge: Checker
    calls: KnownCalls = NO_CALLS

    @property
    def asks_api(self) -> bool:
        return not all(map(is_asked, self.tool.requests))


def _target(tool: ToolDefinition, examples: Sequence[Example], seed: int) -> Target | None:
    judge = checker(tool.input_schema)
    own = (e.arguments for e in examples if e.tool == tool.name and not e.failure)
    usual = next((given for given in own if judge.problem(given) is None), None)
    if usual is None:
        definitions = tool.input_schema.get("$defs", {})
        try:
            made = Sampler(Judge(definitions, "request"), seed).make(tool.input_schema, "minimal")
        except Unsatisfiable:
            return None
        usual = made if isinstance(made, dict) else None
    return (
        Target(tool, usual, judge, answers_in(examples, tool.name)) if usual is not None else None
    )


@dataclass
class _Team:
    """Works through the targets. A session that an attack ends is replaced, a few times."""

    bundle: Bundle
    open_range: OpenRange
    seed: int
    until: float
    outages_until: float
    seconds: float
    share: float = 0.0
    cells: list[CaseResult] = field(default_factory=list)
    planned: int = 0
    ran: int = 0
    breaks: int = 0
    crashes: set[tuple[str, str, str]] = field(default_factory=set)
    """By tool; the same crash is told once."""
    _range: Range | None = None
    _context: AbstractAsyncContextManager[Range] | None = None

    async def attack(self, target: Target) -> None:
        before = len(self.cells)
        end = min(self.until, time.perf_counter() + self.share)
        if target.asks_api:
            await self._outages(target)
        first = None if target.asks_api else await self._called(target, target.usual)
        if isinstance(first, str):
            self._tell(target, "the usual call", target.usual, first)
        random = Random(f"{self.seed}:{target.tool.name}")
        listed = list(attacks(target.tool.input_schema, target.usual, target.judge, random))
        random.shuffle(listed)
        planned = listed[:MAX_ATTACKS]
        self.planned += len(planned)
        for attack in planned:
            found = len(self.cells) - before
            if found >= MAX_FINDINGS or self._is_over() or time.perf_counter() > end:
                break
            await self._attacked(target, attack)
        if isinstance(first, Outcome) and self._is_steady():
            await self._again(target, first)
        if len(self.cells) == before:
            self.cells.append(CaseResult(target.tool.name, "attacks", "passed", "all withstood"))

    async def leave(self) -> None:
        """End the session, if one is open."""
        context, self._context, self._range = self._context, None, None
        if context is not None:
            await context.__aexit__(None, None, None)

    def _is_over(self) -> bool:
        """Whether no further attack may begin."""
        return self.breaks > MAX_BREAKS or time.perf_counter() > self.until

    def _is_steady(self) -> bool:
        return not {CLOCK, RANDOM} & {*self.bundle.permissions}

    async def _attacked(self, target: Target, attack: Attack) -> None:
        self.ran += 1
        came = await self._called(target, attack.arguments)
        problem = self._problem(target, came)
        if not problem:
            return
        if isinstance(came, Outcome) and came.failure and came.failure.kind in CRASHES:
            crash = (target.tool.name, came.failure.kind, came.failure.message)
            if crash in self.crashes:
                return
            self.crashes.add(crash)
            attack, came = await self._simplest(target, attack, came)
        self._tell(target, f"attack, seed {self.seed}: {attack.name}", attack.arguments, came)

    async def _simplest(
        self, target: Target, attack: Attack, came: Outcome
    ) -> tuple[Attack, Outcome]:
        """The same crash of less, where it takes few tries to find."""
        tries = 0
        while tries < MAX_SIMPLER and not self._is_over():
            for less in simpler(attack, target.usual, target.judge):
                tries += 1
                again = await self._called(target, less.arguments)
                if isinstance(again, Outcome) and _same_crash(came, again):
                    attack, came = less, again
                    break
                if tries >= MAX_SIMPLER or self._is_over():
                    break
            else:
                break
        return attack, came

    async def _outages(self, target: Target) -> None:
        self.planned += len(OUTAGES)
        for outage in OUTAGES:
            if self.breaks > MAX_BREAKS or time.perf_counter() > self.outages_until:
                break
            self.ran += 1
            came = await self._called(target, target.usual, outage)
            if self._problem(target, came) or self._pretends(came, outage):
                self._tell(target, f"the API: {outage.name}", target.usual, came, outage)

    def _pretends(self, came: Outcome | str, outage: Outage) -> bool:
        lost = outage.does != "answers" or outage.answer.status >= 300
        return lost and isinstance(came, Outcome) and came.failure is None and self._asked > 0

    async def _again(self, target: Target, first: Outcome) -> None:
        """The usual call after all others, and with its arguments in another order."""
        for what, given in (
            ("once more, after other calls", target.usual),
            ("the arguments in another order", dict(reversed(list(target.usual.items())))),
        ):
            came = await self._called(target, given)
            if isinstance(came, Outcome) and whole(came) != whole(first):
                self.cells.append(
                    CaseResult(
                        target.tool.name,
                        what,
                        "failed",
                        "the result is another, so it depends on more than its arguments say",
                        shown(dict(given)),
                        shown(first.structured),
                        got(came),
                    )
                )

    async def _called(
        self, target: Target, arguments: Mapping[str, Any], outage: Outage = OUTAGES[0]
    ) -> Outcome | str:
        place = await self._ready()
        place.broker.policy = mock_policy(self.bundle, target.tool.name)
        place.api.outage, place.api.asked = outage, 0
        try:
            tape = Tape(calls=target.calls)
            return await place.session.call(target.tool.name, arguments, self.seconds, tape)
        except (SessionBroken, CallTimedOut) as error:
            self.breaks += 1
            await self.leave()
            return str(error)
        finally:
            self._asked = place.api.asked

    async def _ready(self) -> Range:
        if self._range is None:
            self._context = self.open_range()
            self._range = await self._context.__aenter__()
        return self._range

    def _problem(self, target: Target, came: Outcome | str) -> str:
        """What is wrong with what came of a call; "" where nothing is."""
        if isinstance(came, str):
            return f"it ended its sandbox: {came}"
        asked = next(self._beyond(target, came), "")
        if asked:
            return f"it asks for {asked}, which is not declared"
        if came.failure and came.failure.kind in CRASHES:
            where = f" at {came.failure.where}" if came.failure.where else ""
            said = f"({came.failure.kind}{where}): {came.failure.message[:200]}"
            return f"the input schema admits these arguments, but the call failed {said}"
        size = len(whole(came))
        return f"the result has {size} characters" if size > MAX_RESULT else ""

    def _beyond(self, target: Target, came: Outcome) -> Iterator[str]:
        """What a call asked the host for without having declared it."""
        declared = permissions_of(self.bundle.permissions)
        for exchange in came.exchanges:
            request = exchange.request
            if is_call(request) and called_tool(request) in calls_of(target.tool):
                continue
            if is_network(request) and _kind(request) in _kinds(target.tool):
                continue
            local = request.url.startswith(("file:", "env:"))
            kind = "fs" if request.url.startswith("file:") else "env"
            if exchange.refusal in ("refused", "unsupported"):
                if not local or all(each.kind != kind for each in declared):
                    yield f"{request.method} {request.url[:160]}"

    def _tell(
        self,
        target: Target,
        name: str,
        arguments: Mapping[str, Any],
        came: Outcome | str,
        outage: Outage | None = None,
    ) -> None:
        problem = self._problem(target, came)
        expected = "a result or a ToolError"
        if not problem:
            problem, expected = "it says that it succeeded", "a failure"
        given = shown(dict(arguments))
        self.cells.append(
            CaseResult(
                target.tool.name,
                name[:MAX_SHOWN],
                "failed",
                problem if outage is None else f"where the API is out of order, {problem}",
                given,
                expected,
                got(came),
            )
        )


def _kind(request: WireRequest) -> str:
    return request.url.partition(":")[0]


def _kinds(tool: ToolDefinition) -> frozenset[str]:
    """The kinds of what a tool may ask for besides HTTP."""
    return frozenset(request.url.partition(":")[0] for request in tool.requests)


def _same_crash(one: Outcome, other: Outcome) -> bool:
    if one.failure is None or other.failure is None:
        return False
    return (one.failure.kind, one.failure.message) == (other.failure.kind, other.failure.message)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
