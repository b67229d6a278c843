"""The adequacy stage: would a server's tests and cases notice if its code were wrong?

Its code is changed in small ways (`sandbox.codemutants`); tests that pass all the same are told
what they do not notice. And a tool that gives a result for nothing but the arguments of its own
cases has learned them by rote.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.asked import is_asked
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.codemutants import CodeMutant, code_mutants
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.example import Example, answer_json
from sandbox.neighbours import neighbours
from sandbox.report import CaseResult, StageReport, Verdict
from sandbox.runner import Outcome, Session
from sandbox.suitestage import RUN
from sandbox.trials import OpenSession
from sandbox.validation import checker

ENOUGH = 0.85
"""The share of mutants that has to be noticed: some change nothing, and some only speed. Drafts
that models wrote with care came to 92 to 100 % (docs/benchmarks.md).
"""
FEW = 2
"""So many may always go unnoticed."""
MIN_MUTANTS = 5
BUDGET_SECONDS = 2.0
CALL_SECONDS = 2.0
SHORTEST_CALL_SECONDS = 0.5
SLOWER = 5
"""A change that makes the tests take so many times as long is noticed."""
ROTE_SECONDS = 2.0
"""No further neighbour of a case is tried after this."""
MAX_BREAKS = 4
MAX_TOLD = 6
MIN_DISTINCT = 3
MIN_NEIGHBOURS = 12
TESTS = "tests/test_server.py"
_PRELUDE = """
import json as _json
import math as _math
import server as _server
from toolwright import ToolError as _ToolError, UNSET as _UNSET
from toolwright.testing import tools as _tools

def _same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or _math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b

def _holds(tool, arguments, wanted, failure):
    try:
        given = getattr(_server, tool)(**_json.loads(arguments))
    except _ToolError:
        return failure
    given = _json.loads(_json.dumps(given))
    given = given if isinstance(given, dict) else {"result": given}
    return not failure and _same(_json.loads(wanted), given)
"""


@dataclass(frozen=True)
class Survivor:
    """A change that no test and no case noticed."""

    mutant: CodeMutant

    def told(self) -> str:
        return f"line {self.mutant.line}: {self.mutant.change}"


async def prove_adequacy(
    bundle: Bundle,
    examples: Sequence[Example],
    suite: str,
    open_harness: OpenSession,
    open_session: OpenSession,
) -> StageReport:
    """Judge the tests and cases of the tools that compute. `open_harness` opens sessions with the
    bundle's `sandbox.suitestage.harness`, `open_session` with the bundle itself.
    """
    started = time.perf_counter()
    computing = [tool for tool in bundle.tools if not tool.operation]
    if not computing:
        note = "every tool calls its API, which the mock stage imitates"
        return StageReport("adequacy", "skipped", 0.0, coverage=0.0, note=note)
    try:
        cells, note = await _mutation(bundle, examples, suite, open_harness, started)
        cells += await _rote(computing, examples, open_session)
    except LoadFailed as error:
        return StageReport("adequacy", "inconclusive", _since(started), note=str(error)[:400])
    failed = any(cell.verdict == "failed" for cell in cells)
    verdict: Verdict = "failed" if failed else "passed"
    return StageReport("adequacy", verdict, _since(started), tuple(cells), note=note)


def as_tests(bundle: Bundle, examples: Sequence[Example]) -> str:
    """The cases of the tools that compute as tests, but for those whose arguments the schema is to
    refuse, which never reach the code.
    """
    computing = {tool.name: tool for tool in bundle.tools if not tool.operation}
    lines = [_PRELUDE]
    for at, example in enumerate(examples):
        tool = computing.get(example.tool)
        if tool is None or checker(tool.input_schema).problem(example.arguments) is not None:
            continue
        wanted = json.dumps(example.structured)
        given = [example.tool, json.dumps(dict(example.arguments)), wanted, bool(example.failure)]
        known = tuple(answer_json(answer) for answer in example.answers)
        asserted = f"assert _holds{tuple(given)!r}\n"
        body = f"with _tools(*{known!r}):\n        {asserted}" if known else asserted
        lines.append(f"def test_case_{at}():\n    {body}")
    return "\n".join(lines)


async def _mutation(
    bundle: Bundle,
    examples: Sequence[Example],
    suite: str,
    open_harness: OpenSession,
    started: float,
) -> tuple[list[CaseResult], str]:
    """Raises LoadFailed."""
    mutants = code_mutants(bundle.source_code)
    judging = [text for text in (as_tests(bundle, examples), suite) if text.strip()]
    survivors: list[Survivor] = []
    tried = breaks = 0
    patience = CALL_SECONDS
    pending = list(mutants)
    while pending and breaks < MAX_BREAKS and time.perf_counter() - started < BUDGET_SECONDS:
        async with open_harness() as session:
            if not tried:
                began = time.perf_counter()
                if not await _holds(session, judging, bundle.source_code):
                    return [], "the tests do not pass on the code itself here: nothing can be said"
                taken = SLOWER * (time.perf_counter() - began)
                patience = min(max(taken, SHORTEST_CALL_SECONDS), CALL_SECONDS)
            while pending and time.perf_counter() - started < BUDGET_SECONDS:
                mutant = pending.pop(0)
                tried += 1
                try:
                    if await _passes(session, judging, mutant.code, patience):
                        survivors.append(Survivor(mutant))
                except (CallTimedOut, SessionBroken):
                    breaks += 1
                    break
    if tried < MIN_MUTANTS:
        return [], f"there is little to get wrong: {tried} changes were tried"
    share = 1 - len(survivors) / tried
    note = f"{tried - len(survivors)} of {tried} changes to the code were noticed"
    if share >= ENOUGH or len(survivors) <= FEW:
        return [CaseResult(TESTS, "adequacy", "passed", note)], note
    told = "; ".join(survivor.told() for survivor in survivors[:MAX_TOLD])
    reason = f"too little is tested: only {note}. Not noticed: {told}"
    return [CaseResult(TESTS, "adequacy", "failed", reason)], note


async def _holds(session: Session, judging: Sequence[str], code: str) -> bool:
    """Whether all tests pass on the code and come to an end in time."""
    try:
        return await _passes(session, judging, code, CALL_SECONDS)
    except (CallTimedOut, SessionBroken):
        return False


async def _passes(session: Session, judging: Sequence[str], code: str, seconds: float) -> bool:
    """Whether all tests pass on the code. Raises CallTimedOut, SessionBroken."""
    for tests in judging:
        given = {"tests": tests, "code": code, "skip": []}
        outcome = await session.call(RUN, given, seconds)
        told = outcome.structured
        results = told.get("results") if isinstance(told, Mapping) else None
        if outcome.failure or not isinstance(results, list):
            return False
        verdicts = {r.get("verdict") if isinstance(r, Mapping) else "" for r in results}
        if verdicts - {"passed"}:
            return False
    return True


async def _rote(
    tools: Sequence[ToolDefinition], examples: Sequence[Example], open_session: OpenSession
) -> list[CaseResult]:
    """Raises LoadFailed."""
    cells: list[CaseResult] = []
    until = time.perf_counter() + ROTE_SECONDS
    async with open_session() as session:
        for tool in tools:
            if any(map(is_asked, tool.requests)):
                continue  # What it is asked beside its cases, no answer is known to.
            own = [e for e in examples if e.tool == tool.name and not e.failure]
            if len({example.expected() for example in own}) < MIN_DISTINCT:
                continue
            try:
                reason = await _learned(tool, own, session, until)
            except (CallTimedOut, SessionBroken):
                return cells
            verdict: Verdict = "failed" if reason else "passed"
            cells.append(CaseResult(tool.name, "by rote", verdict, reason or "it computes"))
    return cells


async def _learned(
    tool: ToolDefinition, own: Sequence[Example], session: Session, until: float
) -> str:
    """Why a tool seems to know its cases alone; "" where it does not.

    Raises CallTimedOut, SessionBroken.
    """
    known = [example.arguments for example in own]
    results: set[str] = set()
    asked = 0
    for arguments in _beside(tool, known):
        if time.perf_counter() > until:
            break
        asked += 1
        came = await session.call(tool.name, arguments, CALL_SECONDS)
        if came.failure is None:
            results.add(_bytes(came))
        if len(results) > 1:
            return ""
    if asked < MIN_NEIGHBOURS:
        return ""
    what = "the same result" if results else "no result"
    return (
        f"for {asked} arguments that lie close to its cases' it gives {what}: it knows its own "
        "cases and computes nothing. Write it for all that the input schema admits, or let the "
        "schema name the values that there are (enum)"
    )


def _beside(
    tool: ToolDefinition, known: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Arguments close to those of the cases, that the schema admits and no case has."""
    judge = checker(tool.input_schema)
    seen = {json.dumps(dict(arguments), sort_keys=True) for arguments in known}
    for arguments in known:
        for near in neighbours(arguments):
            key = json.dumps(near, sort_keys=True)
            if key not in seen and judge.problem(near) is None:
                seen.add(key)
                yield near


def _bytes(came: Outcome) -> str:
    return json.dumps(came.structured, sort_keys=True)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
