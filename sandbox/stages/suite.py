"""The suite stage: the tests that were written before the code, first on stubs, then on the code.

A test that passes on a stub proves nothing and is sent back, whatever the code does.
"""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from sandbox.bundle import Bundle, ToolDefinition
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.progress import Progress
from sandbox.recording import CLOCK, RANDOM, Tape
from sandbox.report import CaseResult, Finding, StageReport, Verdict
from sandbox.runner import Session
from sandbox.static.suite import FILE, suite_findings
from sandbox.stub import REFUSING, stubs

TEST_SECONDS = 2.0
"""So long may one test take."""
RUN_SECONDS = 10.0
"""So long may all of them take on the code, with what is run again because one did not end."""
STUB_SECONDS = 4.0
"""So long may all of them take on all stubs, and the code until the first one begins."""
MAX_ENDED = 2
"""After so many tests that end their session the others are not run."""
MAX_SHOWN = 400
RUN, ON_STUBS = "run", "on_stubs"
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
class Ran:
    """What became of one test, as docs/runtime-protocol.md, section 6, has it."""

    id: str
    verdict: str = "error"
    reason: str = ""
    line: int | None = None
    tool: str = ""
    call: str = ""
    left: str = ""
    right: str = ""


class Unrunnable(Exception):
    """The tests as a whole cannot be run; the report tells it. `line` is the tests'."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(reason)


def harness(bundle: Bundle) -> Bundle:
    """What runs a bundle's tests: a bundle of its own, that may ask for nothing."""
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
    """Run a bundle's tests; `open_harness` opens sessions with its `harness`. Without code, as of a
    specification, on stubs alone. A test may take `seconds`, all of them `budget`.
    """
    started = time.perf_counter()
    findings = suite_findings(suite)
    if findings:
        return StageReport("suite", "failed", _since(started), findings=findings, coverage=0.0)
    try:
        cells = await _cells(bundle, suite, open_harness, seconds, budget)
    except (Unrunnable, LoadFailed) as error:
        line = error.line if isinstance(error, Unrunnable) else None
        finding = Finding(FILE, f"line {line}" if line else "", "suite", str(error)[:MAX_SHOWN])
        return StageReport("suite", "failed", _since(started), findings=(finding,), coverage=0.0)
    failed = any(cell.verdict == "failed" for cell in cells)
    verdict: Verdict = "failed" if failed else "passed"
    note = "" if bundle.source_code else "there is no code yet: tried on stubs"
    lost = sum(cell.verdict == "inconclusive" for cell in cells)
    coverage = 1 - lost / len(cells) if cells else 1.0
    return StageReport(
        "suite", verdict, _since(started), tuple(cells), coverage=coverage, note=note
    )


async def _cells(
    bundle: Bundle, suite: str, open_harness: OpenSession, seconds: float, budget: float
) -> list[CaseResult]:
    """Raises Unrunnable, LoadFailed."""
    async with open_harness() as session:
        names, cells = await _on_stubs(bundle, suite, session)
        if not bundle.source_code:
            return cells
        run = _Run(bundle.source_code, suite, names, seconds, budget)
        found = await run.through(session)
    while found is None and run.goes_on():
        async with open_harness() as session:
            found = await run.through(session)
    return cells + _told_of(names, found or {}, run.ended)


def _told_of(
    names: Sequence[str], found: Mapping[str, Ran], ended: Mapping[str, Ran]
) -> list[CaseResult]:
    """A cell for each test; those that ended their session first, since they keep others from being
    run.
    """
    left = [name for name in names if name not in found and name not in ended]
    kept = f"; {len(left)} other tests were not run for it" if left else ""
    cells = [_cell(replace(ran, reason=ran.reason + kept)) for ran in ended.values()]
    cells += [_cell(ran) for name in names if (ran := found.get(name)) and name not in ended]
    why = "was not run: other tests do not end"
    return cells + [CaseResult(FILE, name[:MAX_SHOWN], "inconclusive", why) for name in left]


async def _on_stubs(
    bundle: Bundle, suite: str, session: Session
) -> tuple[tuple[str, ...], list[CaseResult]]:
    """The ids of the tests, and what is wrong with those that a stub passes. Raises Unrunnable."""
    tried = (*stubs(bundle.tools), REFUSING)
    given = {"tests": suite, "stubs": [stub.made for stub in tried]}
    try:
        told = await _told(session, ON_STUBS, given, STUB_SECONDS)
    except (CallTimedOut, SessionBroken) as error:
        raise Unrunnable(f"on functions that do nothing the tests do not end: {error}") from error
    names = tuple(map(str, told["ids"]))
    passed = [frozenset(map(str, ids)) for ids in told["passed"]]
    cells = []
    for test in dict.fromkeys(map(_function, names)):
        own = {name for name in names if _function(name) == test}
        does = [stub.does for stub, ids in zip(tried, passed, strict=True) if own <= ids]
        giving = next((each for each in does if each != REFUSING.does), "")
        if giving:
            reason = f"proves nothing: it passes where the server {giving}; {ADVICE}"
            cells.append(CaseResult(_place(suite, test), test, "failed", reason))
    claiming = {_function(name) for name in names if name not in passed[-1]}
    return names, cells + _untested(bundle, suite, claiming)


def _untested(bundle: Bundle, suite: str, claiming: Set[str]) -> list[CaseResult]:
    """The tools that compute and of which no test says what they give."""
    tried = _names_used(suite, claiming)
    reason = "no test says what this tool gives"
    return [
        CaseResult(tool.name, "tests", "failed", reason)
        for tool in bundle.tools
        if not tool.operation and tool.name not in tried
    ]


def _names_used(suite: str, tests: Set[str]) -> frozenset[str]:
    """The names that these functions use, and those that the functions they use do."""
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


class _Run:
    """The tests on the code, in as many sessions as it takes. `ended` are those that ended one, by
    the order in which they did.
    """

    def __init__(
        self, code: str, suite: str, names: Sequence[str], seconds: float, budget: float
    ) -> None:
        self.ended: dict[str, Ran] = {}
        self._code, self._suite, self._names = code, suite, names
        self._seconds, self._budget = seconds, budget
        self._until = asyncio.get_running_loop().time() + budget

    def goes_on(self) -> bool:
        """Whether the tests that ended no session are to be run again."""
        in_time = asyncio.get_running_loop().time() < self._until
        return in_time and len(self.ended) < min(MAX_ENDED, len(self._names))

    async def through(self, session: Session) -> dict[str, Ran] | None:
        """What became of the tests that are not among `ended`; None where one joined them.

        Raises Unrunnable.
        """
        begun: list[float] = []
        given = {"tests": self._suite, "code": self._code, "skip": [*self.ended]}
        clock = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(STUB_SECONDS) as patience:

                def heard(progress: Progress) -> None:
                    begun.append(progress.done)
                    if not patience.expired():
                        patience.reschedule(min(clock.time() + self._seconds, self._until))

                told = await _told(session, RUN, given, 2 * self._budget, Tape(heard=heard))
        except TimeoutError:
            if not begun:
                raise Unrunnable(f"no test begins within {STUB_SECONDS:g} s") from None
            if clock.time() < self._until:
                self._end(begun, f"did not end within {self._seconds:g} s")
            elif not self.ended:
                raise Unrunnable(
                    f"the tests take more than {self._budget:g} s in all; one may take "
                    f"{self._seconds:g} s"
                ) from None
            return None
        except (CallTimedOut, SessionBroken) as error:
            self._end(begun, f"ended its sandbox: {error}")
            return None
        return {ran.id: ran for ran in map(_ran, told["results"])}

    def _end(self, begun: Sequence[float], reason: str) -> None:
        """Tell it of the test that began last, as far as that is known."""
        left = [name for name in self._names if name not in self.ended]
        at = min(max(int(begun[-1]), 1), len(self._names)) if begun else 0
        name = self._names[at - 1] if at and self._names[at - 1] in left else left[0]
        self.ended[name] = Ran(name, reason=reason)


async def _told(
    session: Session,
    tool: str,
    given: Mapping[str, Any],
    seconds: float,
    tape: Tape | None = None,
) -> Mapping[str, Any]:
    """What the runtime says of a run. Raises Unrunnable, CallTimedOut, SessionBroken."""
    outcome = await session.call(tool, given, seconds, tape)
    told = outcome.structured
    if outcome.failure or not isinstance(told, Mapping):
        reason = outcome.failure.message if outcome.failure else "no result"
        raise Unrunnable(f"the tests cannot be run: {reason}")
    if "error" in told:
        line = told.get("line")
        raise Unrunnable(str(told["error"]), line if isinstance(line, int) else None)
    wanted = ("results",) if tool == RUN else ("ids", "passed")
    if not all(isinstance(told.get(key), list) for key in wanted):
        raise Unrunnable("the tests cannot be run: the server meddles with how they are run")
    return told


def _ran(told: Any) -> Ran:
    """Of what a stranger's process says; what is no result of a test is one that failed."""
    flat = told if isinstance(told, Mapping) else {}
    texts = {key: str(flat.get(key) or "")[: 2 * MAX_SHOWN] for key in _TEXTS}
    line = flat.get("line")
    return Ran(**texts, line=line if isinstance(line, int) else None)


_TEXTS = ("id", "verdict", "reason", "tool", "call", "left", "right")


def _cell(ran: Ran) -> CaseResult:
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


def _place(suite: str, test: str) -> str:
    nodes = (n for n in ast.parse(suite).body if isinstance(n, ast.FunctionDef))
    line = next((node.lineno for node in nodes if node.name == test), 0)
    return f"{FILE}:{line}"


def _function(name: str) -> str:
    """The function of a test's id."""
    return name.partition("[")[0]


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
