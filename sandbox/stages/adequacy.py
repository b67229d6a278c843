"""The adequacy stage: mutation analysis of a server's tests and cases.

The code is changed in small ways (`sandbox.stages.mutants`); the report lists the changes that the
tests do not notice. A tool that has a result only for the arguments of its own cases fails too: it
has learned them by rote.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from sandbox.bundle.example import Example, ExampleAnswer, answer_to_json
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult, StageReport, Verdict
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.schemas.boundary_values import iterate_neighbours
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Outcome, Session
from sandbox.stages.mutants import STEPS_ENDED, CodeMutant, add_step_limit, generate_mutants
from sandbox.stages.suite import RUN
from sandbox.stages.trials import OpenSession

ENOUGH = 0.85
"""The share of mutants that has to be noticed; not all, since some are equivalent or only slower.
Careful drafts of models reached 92 to 100 %.
"""
FEW = 2
"""So many mutants may go unnoticed whatever their share."""
MIN_MUTANTS = 5
BUDGET_SECONDS = 120.0
"""An outer limit: changes that are not tried by then are undecided, never noticed. What is tried is
counted, and code that does not end is ended by its steps, so that the verdict is one on every
machine.
"""
CALL_SECONDS = 30.0
MAX_STEPS = 400_000
"""Calls and turns of loops in one run of the tests; a change that takes more is undecided."""
MAX_NEIGHBOURS = 60
"""So many neighbours of its cases are tried of one tool."""
MAX_BREAKS = 4
MAX_TOLD = 6
MIN_DISTINCT = 3
MIN_NEIGHBOURS = 12
TESTS = "tests/test_server.py"
TESTED_API = "https://api.test"
"""What relative paths extend while a tool is tested (the runtime's `toolwright.testing`)."""
_PRELUDE = """
import json as _json
import math as _math
import server as _server
from contextlib import contextmanager as _contextmanager
from urllib.parse import parse_qsl as _parse_qsl, unquote as _unquote
from toolwright import ToolError as _ToolError, UNSET as _UNSET
from toolwright import testing as _testing
from toolwright.calls import Call as _Call, playing as _playing
from toolwright.errors import RequestFailed as _RequestFailed

def _asked(method, url):
    place, _, query = url.partition("#")[0].partition("?")
    return method, _unquote(place), sorted(_parse_qsl(query, keep_blank_values=True))

class _Answers(_testing._Known):
    _turns = None

    def _take(self, fits):
        self._turns = {} if self._turns is None else self._turns
        key = tuple(map(id, fits))
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return fits[min(turn, len(fits) - 1)]

    def send(self, request, call):
        if request.method == "CALL":
            kept, body = self._known, _json.loads(request.body)
            fits = [e for e in kept if request.url == "call:" + e["tool"]]
            fits = [e for e in fits if _same(e["arguments"], body)]
            self._known = [{**self._take(fits), "arguments": body}] if fits else []
            try:
                return super().send(request, call)
            finally:
                self._known = kept
        fits = []
        for each in self._known:
            known = each.get("request", " ").split(" ", 1)
            if _asked(request.method, request.url) != _asked(*known):
                continue
            if "sent" in each and not _same(each["sent"], _json.loads(request.body or b"null")):
                continue
            sent = {name.lower(): value for name, value in request.headers}
            wanted = each.get("headers", {})
            if not all(name in sent and _same(v, sent[name]) for name, v in wanted.items()):
                continue
            fits.append(each)
        if not fits:
            raise _RequestFailed("refused", "the case has no answer for this request")
        due = self._take(fits)
        if "failure" in due:
            raise _RequestFailed(due["failure"], "as the case says")
        return _testing._checked((due["status"], due["body"]))

@_contextmanager
def _tools(*known):
    calls = [each for each in known if "tool" in each]
    upstream = _Answers(calls)
    upstream._known = [*calls, *(each for each in known if "request" in each)]
    for each in upstream._known:
        each.setdefault("tool", "")
    with _playing(_Call("test", None, upstream)):
        yield upstream.asked

_KINDS = {"string": str, "number": (int, float), "integer": int, "boolean": bool,
          "array": list, "object": dict}

def _same(a, b):
    if isinstance(a, dict) and list(a) == ["$any"]:
        kind = _KINDS.get(a["$any"])
        return kind is None or isinstance(b, kind)
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


TestsVerdict = Literal["passed", "failed", "endless"]


def limit_steps(code: str) -> str:
    return add_step_limit(code, MAX_STEPS)


@dataclass(frozen=True)
class SurvivingMutant:
    """A change that no test and no case noticed."""

    mutant: CodeMutant

    def render_change(self) -> str:
        return f"line {self.mutant.line}: {self.mutant.change}"


async def prove_adequacy(
    bundle: Bundle,
    examples: Sequence[Example],
    suite: str,
    open_harness: OpenSession,
    open_session: OpenSession,
    *,
    budget: float = BUDGET_SECONDS,
) -> StageReport:
    """Check the tests and cases of the tools that compute. `open_harness` opens sessions with the
    bundle's `sandbox.stages.suite.build_harness`, `open_session` with the bundle itself.

    After `budget` seconds, which is far more than it takes, the changes to the code that are left
    are undecided, and so the report may be.
    """
    started = time.perf_counter()
    computing = [tool for tool in bundle.tools if not tool.operation]
    if not computing:
        note = "every tool calls its API, which the mock stage imitates"
        return StageReport("adequacy", "skipped", 0.0, coverage=0.0, note=note)
    try:
        cells, note = await _test_mutants(bundle, examples, suite, open_harness, budget)
        cells += await _check_rote(computing, examples, open_session)
    except LoadFailed as error:
        return StageReport(
            "adequacy", "inconclusive", _measure_elapsed(started), note=str(error)[:400]
        )
    failed = any(cell.verdict == "failed" for cell in cells)
    undecided = any(cell.verdict == "inconclusive" for cell in cells)
    verdict: Verdict = "failed" if failed else "inconclusive" if undecided else "passed"
    return StageReport("adequacy", verdict, _measure_elapsed(started), tuple(cells), note=note)


def render_tests(bundle: Bundle, examples: Sequence[Example]) -> str:
    """The cases of the tools that compute as test code, without those whose arguments the schema
    refuses, since these never reach the code.
    """
    computing = {tool.name: tool for tool in bundle.tools if not tool.operation}
    lines = [_PRELUDE]
    for at, example in enumerate(examples):
        tool = computing.get(example.tool)
        if (
            tool is None
            or get_checker(tool.input_schema).find_problem(example.arguments) is not None
        ):
            continue
        wanted = json.dumps(example.structured)
        given = [example.tool, json.dumps(dict(example.arguments)), wanted, bool(example.failure)]
        known = tuple(_render_answer(answer, bundle.base_url) for answer in example.answers)
        asserted = f"assert _holds{tuple(given)!r}\n"
        body = f"with _tools(*{known!r}):\n        {asserted}" if known else asserted
        lines.append(f"def test_case_{at}():\n    {body}")
    return "\n".join(lines)


def _render_answer(answer: ExampleAnswer, base_url: str) -> dict[str, Any]:
    """An answer as the tests have it: while a tool is tested its API has another address."""
    told = answer_to_json(answer)
    if answer.is_http:
        method, _, url = answer.tool.partition(" ")
        told["request"] = f"{method} {TESTED_API}{url.removeprefix(base_url.rstrip('/'))}"
    return told


async def _test_mutants(
    bundle: Bundle,
    examples: Sequence[Example],
    suite: str,
    open_harness: OpenSession,
    budget: float,
) -> tuple[list[CaseResult], str]:
    """Raises LoadFailed."""
    mutants = generate_mutants(bundle.source_code)
    judging = [text for text in (render_tests(bundle, examples), suite) if text.strip()]
    found = _MutationResult()
    pending = list(mutants)
    until = math.inf
    begun = False
    while pending and found.breaks < MAX_BREAKS and time.perf_counter() < until:
        async with open_harness() as session:
            if not begun:
                if not await _passes_in_time(session, judging, limit_steps(bundle.source_code)):
                    return [], "the tests do not pass on the code itself here: nothing can be said"
                # Opening the sandbox does not count: on a busy machine nothing would be tried.
                begun, until = True, time.perf_counter() + budget
            while pending and time.perf_counter() < until:
                mutant = pending.pop(0)
                try:
                    verdict = await _run_tests(session, judging, limit_steps(mutant.code))
                except (CallTimedOut, SessionBroken):
                    found.breaks += 1
                    found.undecided += 1
                    break
                found.add(mutant, verdict)
    found.undecided += len(pending)
    return _judge_mutation(found)


@dataclass
class _MutationResult:
    """What came of the changes: `endless` take too many steps, the same ones on every machine;
    `undecided` are those that were not tried, or ended their session.
    """

    survivors: list[SurvivingMutant] = field(default_factory=list)
    noticed: int = 0
    endless: int = 0
    undecided: int = 0
    breaks: int = 0

    def add(self, mutant: CodeMutant, verdict: TestsVerdict) -> None:
        if verdict == "passed":
            self.survivors.append(SurvivingMutant(mutant))
        elif verdict == "endless":
            self.endless += 1
        else:
            self.noticed += 1


def _judge_mutation(found: _MutationResult) -> tuple[list[CaseResult], str]:
    """The cell and the note. What is undecided decides nothing: where it could turn the verdict,
    there is none.
    """
    tried = found.noticed + len(found.survivors)
    left = found.endless + found.undecided
    if tried + found.undecided < MIN_MUTANTS:
        return [], f"there is little to get wrong: {tried} changes were tried"
    note = f"{found.noticed} of {tried} changes to the code were noticed"
    note += f", {left} are undecided" if left else ""
    worst = _is_enough(found.noticed, len(found.survivors) + found.undecided)
    best = _is_enough(found.noticed + found.undecided, len(found.survivors))
    if worst:
        return [CaseResult(TESTS, "adequacy", "passed", note)], note
    told = "; ".join(survivor.render_change() for survivor in found.survivors[:MAX_TOLD])
    if best:
        return [CaseResult(TESTS, "adequacy", "inconclusive", f"{note}. {told}")], note
    reason = f"too little is tested: only {note}. Not noticed: {told}"
    line = found.survivors[0].mutant.line
    return [CaseResult(TESTS, "adequacy", "failed", reason, line=line)], note


def _is_enough(noticed: int, survived: int) -> bool:
    return survived <= FEW or noticed / (noticed + survived) >= ENOUGH


async def _passes_in_time(session: Session, judging: Sequence[str], code: str) -> bool:
    """Whether all tests pass on the code within CALL_SECONDS."""
    try:
        return await _run_tests(session, judging, code) == "passed"
    except (CallTimedOut, SessionBroken):
        return False


async def _run_tests(session: Session, judging: Sequence[str], code: str) -> TestsVerdict:
    """What comes of all tests on the code. Raises CallTimedOut, SessionBroken."""
    for tests in judging:
        given = {"tests": tests, "code": code, "skip": []}
        outcome = await session.call(RUN, given, CALL_SECONDS)
        told = outcome.structured
        results = told.get("results") if isinstance(told, Mapping) else None
        if outcome.failure or not isinstance(results, list):
            return "failed"
        wrong = [r for r in results if not isinstance(r, Mapping) or r.get("verdict") != "passed"]
        if wrong:
            told = (str(r.get("reason", "")) if isinstance(r, Mapping) else "" for r in wrong)
            return "endless" if all(text.startswith(STEPS_ENDED) for text in told) else "failed"
    return "passed"


async def _check_rote(
    tools: Sequence[ToolDefinition],
    examples: Sequence[Example],
    open_session: OpenSession,
) -> list[CaseResult]:
    """Raises LoadFailed."""
    cells: list[CaseResult] = []
    async with open_session() as session:
        for tool in tools:
            if tool.requests:
                continue  # What it is asked beside its cases, no answer is known to.
            own = [e for e in examples if e.tool == tool.name and not e.failure]
            if len({example.format_expected() for example in own}) < MIN_DISTINCT:
                continue
            try:
                reason = await _find_rote_reason(tool, own, session)
            except (CallTimedOut, SessionBroken):
                return cells
            verdict: Verdict = "failed" if reason else "passed"
            cells.append(CaseResult(tool.name, "by rote", verdict, reason or "it computes"))
    return cells


async def _find_rote_reason(tool: ToolDefinition, own: Sequence[Example], session: Session) -> str:
    """The reason to assume that a tool knows only its cases; "" where there is none.

    Raises CallTimedOut, SessionBroken.
    """
    known = [example.arguments for example in own]
    results: set[str] = set()
    asked = 0
    for arguments in islice(_iterate_near_arguments(tool, known), MAX_NEIGHBOURS):
        asked += 1
        came = await session.call(tool.name, arguments, CALL_SECONDS)
        if came.failure is None:
            results.add(_encode_result(came))
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


def _iterate_near_arguments(
    tool: ToolDefinition, known: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Arguments near those of the cases that the schema accepts and that no case has."""
    judge = get_checker(tool.input_schema)
    seen = {json.dumps(dict(arguments), sort_keys=True) for arguments in known}
    for arguments in known:
        for near in iterate_neighbours(arguments):
            key = json.dumps(near, sort_keys=True)
            if key not in seen and judge.find_problem(near) is None:
                seen.add(key)
                yield near


def _encode_result(came: Outcome) -> str:
    return json.dumps(came.structured, sort_keys=True)


def _measure_elapsed(started: float) -> float:
    return (time.perf_counter() - started) * 1000
