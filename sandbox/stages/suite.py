"""The suite stage: runs a server's tests, which are written before its code, on stubs and on the
code.

A test that passes on a stub proves nothing and fails the stage, whatever the code does.
"""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from sandbox.bundle.example import Example, is_same_value
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.permissions import CLOCK, RANDOM
from sandbox.bundle.report import CaseResult, Finding, StageReport, Verdict, finding_at
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.session.interface import Session
from sandbox.session.recording import CallLog
from sandbox.stages.mutants import STEPS_ENDED, add_step_limit
from sandbox.stages.static.suite import FILE, check_suite
from sandbox.wire.notifications import ProgressNotice

MAX_DEPTH = 8
_EMPTY: tuple[Any, ...] = (None, "", 0, False, [], {})
_OF_TYPE: Mapping[str, Any] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "null": None,
}


@dataclass(frozen=True)
class Stub:
    """A server without an implementation: the behaviour of all its functions, in words and in the
    form that the runtime's `toolwright.suite` takes.
    """

    does: str
    made: Mapping[str, Any]


REFUSING = Stub("always raises ToolError", {"kind": "raises"})


def build_stubs(tools: Iterable[ToolDefinition]) -> tuple[Stub, ...]:
    """The stubs of a server that return a value whatever their arguments."""
    values = {tool.name: _build_empty_value(tool.output_schema, 0) for tool in tools}
    constants = (Stub(f"always gives {v!r}", {"kind": "value", "default": v}) for v in _EMPTY)
    return (
        *constants,
        Stub("always gives an empty result", {"kind": "value", "values": values}),
        Stub("gives its first argument back", {"kind": "argument"}),
    )


def is_satisfied_by_constant(example: Example, tool: ToolDefinition) -> bool:
    """Whether a tool that always returns the same empty result would satisfy the example."""
    if example.failure:
        return False
    constants = [
        {},
        *({"result": value} for value in _EMPTY),
        _build_empty_value(tool.output_schema, 0),
    ]
    return any(is_same_value(example.structured, constant) for constant in constants)


def _build_empty_value(schema: Any, depth: int) -> Any:
    """The emptiest value that a schema describes, by types alone."""
    flat = schema if isinstance(schema, Mapping) else {}
    kind = flat.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" and depth < MAX_DEPTH:
        inner = flat.get("properties") or {}
        return {name: _build_empty_value(value, depth + 1) for name, value in inner.items()}
    return {} if kind == "object" else _OF_TYPE.get(str(kind))


TEST_SECONDS = 10.0
"""Limit for one test, in seconds: five times what a test should take, for a busy machine."""
RUN_SECONDS = 60.0
"""Limit for all tests on the code, including runs that are repeated because a test did not end."""
STUB_SECONDS = 20.0
"""Limit for all tests on all stubs, and for the code until the first test begins."""
MAX_ENDED = 2
"""After so many tests that end their session, the others are not run."""
MAX_STEPS = 5_000_000
"""Calls and turns of loops of a test that did not end in time; one that takes more has no end, the
same one on every machine.
"""
MAX_SHOWN = 400
RUN, ON_STUBS = "run", "on_stubs"
LATE, UNDECIDED = "late", "undecided"
HARNESS = """from toolwright import suite, tool


@tool
def run(tests, code, skip):
    return suite.run(tests, code, skip)


@tool
def on_stubs(tests, stubs):
    return suite.on_stubs(tests, stubs)
"""
ADVICE = "let it also assert what an empty or constant result is not"
ANY: Mapping[str, Any] = {"type": "object"}

OpenSession = Callable[[], AbstractAsyncContextManager[Session]]


@dataclass(frozen=True)
class UnitTestResult:
    """The outcome of one test, as in docs/runtime-protocol.md, section 6."""

    id: str
    verdict: str = "error"
    reason: str = ""
    line: int | None = None
    tool: str = ""
    call: str = ""
    left: str = ""
    right: str = ""


class SuiteUnrunnable(Exception):
    """The tests as a whole cannot be run; the stage reports why. `line` is a line of the tests."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(reason)


def build_harness(bundle: Bundle) -> Bundle:
    """The bundle that runs another bundle's tests; it may send no request."""
    tools = tuple(ToolDefinition(name, "Tests.", ANY, ANY, "read") for name in (RUN, ON_STUBS))
    kept = tuple(p for p in bundle.permissions if p in (CLOCK, RANDOM))
    return replace(
        bundle,
        source_code=HARNESS,
        tools=tools,
        permissions=kept,
        credentials=(),
        spec=None,
        base_url="",
    )


async def prove_suite(
    bundle: Bundle,
    suite: str,
    open_harness: OpenSession,
    *,
    seconds: float = TEST_SECONDS,
    budget: float = RUN_SECONDS,
) -> StageReport:
    """Run a bundle's tests; `open_harness` opens sessions with its `harness`. A bundle without
    code, as for a specification, is tested on stubs alone. A test may take `seconds`, all of them
    `budget`.
    """
    started = time.perf_counter()
    findings = check_suite(suite)
    if findings:
        return StageReport(
            "suite", "failed", _measure_elapsed(started), findings=findings, coverage=0.0
        )
    try:
        cells = await _run_tests(bundle, suite, open_harness, seconds, budget)
    except (SuiteUnrunnable, LoadFailed) as error:
        line = error.line if isinstance(error, SuiteUnrunnable) else None
        finding = finding_at(FILE, line, "suite", str(error)[:MAX_SHOWN])
        return StageReport(
            "suite", "failed", _measure_elapsed(started), findings=(finding,), coverage=0.0
        )
    lost = sum(cell.verdict == "inconclusive" for cell in cells)
    failed = any(cell.verdict == "failed" for cell in cells)
    # What is undecided is not taken for good: the draft is told so, and not that it is wrong.
    undecided = () if failed else tuple(_find_undecided(cells))
    verdict: Verdict = "failed" if failed or undecided else "passed"
    note = "" if bundle.source_code else "there is no code yet: tried on stubs"
    coverage = 1 - lost / len(cells) if cells else 1.0
    return StageReport(
        "suite",
        verdict,
        _measure_elapsed(started),
        tuple(cells),
        undecided,
        coverage=coverage,
        note=note,
    )


def _find_undecided(cells: Iterable[CaseResult]) -> Iterator[Finding]:
    """A finding for each test of which nothing can be said."""
    for cell in cells:
        if cell.verdict == "inconclusive":
            yield Finding(FILE, cell.case, "undecided", cell.evidence)


async def _run_tests(
    bundle: Bundle, suite: str, open_harness: OpenSession, seconds: float, budget: float
) -> list[CaseResult]:
    """Raises Unrunnable, LoadFailed."""
    async with open_harness() as session:
        names, cells = await _run_on_stubs(bundle, suite, session)
        if not bundle.source_code:
            return cells
        run = _SuiteRun(bundle.source_code, suite, names, seconds, budget)
        found = await run.run_tests(session)
    while found is None and run.is_unfinished():
        async with open_harness() as session:
            found = await run.run_tests(session)
    for name in [name for name, ran in run.ended.items() if ran.verdict == LATE]:
        async with open_harness() as session:
            run.ended[name] = await run.count_steps(session, name)
    return cells + _build_cells(names, found or {}, run.ended)


def _build_cells(
    names: Sequence[str], found: Mapping[str, UnitTestResult], ended: Mapping[str, UnitTestResult]
) -> list[CaseResult]:
    """A cell for each test; first those that ended their session, since they keep others from being
    run.
    """
    left = [name for name in names if name not in found and name not in ended]
    kept = f"; {len(left)} other tests were not run for it" if left else ""
    cells = [_build_cell(replace(ran, reason=ran.reason + kept)) for ran in ended.values()]
    cells += [_build_cell(ran) for name in names if (ran := found.get(name)) and name not in ended]
    why = "was not run: other tests do not end"
    return cells + [CaseResult(FILE, name[:MAX_SHOWN], "inconclusive", why) for name in left]


async def _run_on_stubs(
    bundle: Bundle, suite: str, session: Session
) -> tuple[tuple[str, ...], list[CaseResult]]:
    """The ids of the tests, and failed cells for those that pass on a stub. Raises Unrunnable."""
    tried = (*build_stubs(bundle.tools), REFUSING)
    given = {"tests": suite, "stubs": [stub.made for stub in tried]}
    try:
        told = await _call_harness(session, ON_STUBS, given, STUB_SECONDS)
    except (CallTimedOut, SessionBroken) as error:
        raise SuiteUnrunnable(
            f"on functions that do nothing the tests do not end: {error}"
        ) from error
    names = tuple(map(str, told["ids"]))
    passed = [frozenset(map(str, ids)) for ids in told["passed"]]
    tests: dict[str, set[str]] = {}
    for name in names:
        tests.setdefault(_strip_parameters(name), set()).add(name)
    passing = {
        test: [stub for stub, ids in zip(tried, passed, strict=True) if own <= ids]
        for test, own in tests.items()
    }
    cells = []
    for test, stubs in passing.items():
        giving = next((stub.does for stub in stubs if stub != REFUSING), "")
        if giving and not _is_empty_on_purpose(bundle, suite, test, passing):
            reason = f"proves nothing: it passes where the server {giving}; {ADVICE}"
            place = _locate_test(suite, test)
            cells.append(CaseResult(place, test, "failed", reason, code="proves_nothing"))
    claiming = {_strip_parameters(name) for name in names if name not in passed[-1]}
    return names, cells + _find_untested(bundle, suite, claiming)


def _is_empty_on_purpose(
    bundle: Bundle, suite: str, test: str, passing: Mapping[str, Sequence[Stub]]
) -> bool:
    """Whether a test asks for one empty result that is right where it asks: no other stub passes
    it, and of each tool that it uses another test refuses that stub.
    """
    stubs = [stub for stub in passing[test] if stub != REFUSING]
    if len({_name_value(stub) for stub in stubs}) != 1 or stubs[0].made["kind"] != "value":
        return False
    used = {tool.name for tool in bundle.tools} & _find_used_names(suite, {test})
    held = [
        _find_used_names(suite, {other})
        for other, own in passing.items()
        if other != test and not {*map(_name_value, own)} & {*map(_name_value, stubs)}
    ]
    return bool(used) and all(any(name in names for names in held) for name in used)


def _name_value(stub: Stub) -> str:
    """What a stub gives, in words; to tests 0 and False are one."""
    value = stub.made.get("default")
    return "always gives 0" if value is False else stub.does


def _find_untested(bundle: Bundle, suite: str, claiming: Set[str]) -> list[CaseResult]:
    """Failed cells for the tools that compute and whose result no test asserts."""
    tried = _find_used_names(suite, claiming)
    reason = "no test says what this tool gives"
    return [
        CaseResult(tool.name, "tests", "failed", reason)
        for tool in bundle.tools
        if not tool.operation and tool.name not in tried
    ]


def _find_used_names(suite: str, tests: Set[str]) -> frozenset[str]:
    """The names that these functions use, directly or through other functions of the suite."""
    functions = {n.name: n for n in ast.parse(suite).body if isinstance(n, ast.FunctionDef)}
    used: set[str] = set()
    pending = [*tests]
    while pending:
        name = pending.pop()
        if name in functions:
            found = {n.id for n in ast.walk(functions.pop(name)) if isinstance(n, ast.Name)}
            pending += found - used
            used |= found
    return frozenset(used)


class _SuiteRun:
    """Runs the tests on the code, in as many sessions as it takes. `ended` are the tests that ended
    their session, in order.
    """

    def __init__(
        self, code: str, suite: str, names: Sequence[str], seconds: float, budget: float
    ) -> None:
        self.ended: dict[str, UnitTestResult] = {}
        self._code, self._suite, self._names = code, suite, names
        self._seconds, self._budget = seconds, budget
        self._until = asyncio.get_running_loop().time() + budget

    def is_unfinished(self) -> bool:
        """Whether the remaining tests should be run in another session."""
        in_time = asyncio.get_running_loop().time() < self._until
        return in_time and len(self.ended) < min(MAX_ENDED, len(self._names))

    async def run_tests(self, session: Session) -> dict[str, UnitTestResult] | None:
        """Run the tests that are not in `ended`; None where one of them ended the session.

        Raises Unrunnable.
        """
        begun: list[float] = []
        given = {"tests": self._suite, "code": self._code, "skip": [*self.ended]}
        clock = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(STUB_SECONDS) as patience:

                def heard(progress: ProgressNotice) -> None:
                    begun.append(progress.done)
                    if not patience.expired():
                        patience.reschedule(min(clock.time() + self._seconds, self._until))

                told = await _call_harness(
                    session, RUN, given, 2 * self._budget, CallLog(heard=heard)
                )
        except TimeoutError:
            if not begun:
                raise SuiteUnrunnable(f"no test begins within {STUB_SECONDS:g} s") from None
            if clock.time() < self._until:
                self._mark_ended(begun, f"did not end within {self._seconds:g} s", LATE)
            elif not self.ended:
                raise SuiteUnrunnable(
                    f"the tests take more than {self._budget:g} s in all; one may take "
                    f"{self._seconds:g} s"
                ) from None
            return None
        except (CallTimedOut, SessionBroken) as error:
            self._mark_ended(begun, f"ended its sandbox: {error}")
            return None
        return {ran.id: ran for ran in map(_parse_result, told["results"])}

    async def count_steps(self, session: Session, name: str) -> UnitTestResult:
        """What comes of a test that did not end in time, by the steps that it takes: they are the
        same on a busy machine. Undecided where it does not end by them either. Raises Unrunnable.
        """
        given = {
            "tests": self._suite,
            "code": add_step_limit(self._code, MAX_STEPS),
            "skip": [other for other in self._names if other != name],
        }
        late = self.ended[name]
        try:
            told = await _call_harness(session, RUN, given, self._budget)
        except (CallTimedOut, SessionBroken):
            return replace(late, verdict=UNDECIDED)
        found = next((ran for ran in map(_parse_result, told["results"]) if ran.id == name), late)
        if found.reason.startswith(STEPS_ENDED):
            reason = f"does not end: it takes more than {MAX_STEPS:,} calls and turns of loops"
            return replace(found, reason=reason, line=None)
        return replace(found, verdict=UNDECIDED) if found.verdict == LATE else found

    def _mark_ended(self, begun: Sequence[float], reason: str, verdict: str = "error") -> None:
        """Add the test that began last to `ended`, as far as it is known."""
        left = [name for name in self._names if name not in self.ended]
        at = min(max(int(begun[-1]), 1), len(self._names)) if begun else 0
        name = self._names[at - 1] if at and self._names[at - 1] in left else left[0]
        self.ended[name] = UnitTestResult(name, verdict, reason)


async def _call_harness(
    session: Session,
    tool: str,
    given: Mapping[str, Any],
    seconds: float,
    tape: CallLog | None = None,
) -> Mapping[str, Any]:
    """Call a tool of the harness and return its result, checked for form.

    Raises Unrunnable, CallTimedOut, SessionBroken.
    """
    outcome = await session.call(tool, given, seconds, tape)
    told = outcome.structured
    if outcome.failure or not isinstance(told, Mapping):
        reason = outcome.failure.message if outcome.failure else "no result"
        raise SuiteUnrunnable(f"the tests cannot be run: {reason}")
    if "error" in told:
        line = told.get("line")
        raise SuiteUnrunnable(str(told["error"]), line if isinstance(line, int) else None)
    wanted = ("results",) if tool == RUN else ("ids", "passed")
    if not all(isinstance(told.get(key), list) for key in wanted):
        raise SuiteUnrunnable("the tests cannot be run: the server meddles with how they are run")
    return told


def _parse_result(told: Any) -> UnitTestResult:
    """Parse a test's outcome from an untrusted process; a malformed one is an error of the test."""
    flat = told if isinstance(told, Mapping) else {}
    texts = {key: str(flat.get(key) or "")[: 2 * MAX_SHOWN] for key in _TEXTS}
    line = flat.get("line")
    return UnitTestResult(**texts, line=line if isinstance(line, int) else None)


_TEXTS = ("id", "verdict", "reason", "tool", "call", "left", "right")


def _build_cell(ran: UnitTestResult) -> CaseResult:
    if ran.verdict == UNDECIDED:
        reason = f"undecided: it {ran.reason}. Hand it in again, or let it do less"
        return CaseResult(FILE, ran.id[:MAX_SHOWN], "inconclusive", reason[:MAX_SHOWN])
    at = f"{FILE}:{ran.line}: " if ran.line else ""
    passed = ran.verdict == "passed"
    return CaseResult(
        operation=ran.tool or FILE,
        case=ran.id[:MAX_SHOWN],
        verdict="passed" if passed else "failed",
        evidence="as expected" if passed else f"{at}{ran.reason}"[:MAX_SHOWN],
        given=ran.call[:MAX_SHOWN],
        expected=ran.right[:MAX_SHOWN],
        got=ran.left[:MAX_SHOWN],
    )


def _locate_test(suite: str, test: str) -> str:
    nodes = (n for n in ast.parse(suite).body if isinstance(n, ast.FunctionDef))
    line = next((node.lineno for node in nodes if node.name == test), 0)
    return f"{FILE}:{line}"


def _strip_parameters(name: str) -> str:
    """The function name in a test's id, without its parameters."""
    return name.partition("[")[0]


def _measure_elapsed(started: float) -> float:
    return (time.perf_counter() - started) * 1000
