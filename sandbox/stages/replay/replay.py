"""Replays of good cases of tools that ask: with each exchange failing, with fields of the answers
missing, with hostile texts as arguments, and as they are.

All that is tried is counted, never timed, so that a draft has one verdict on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.broker.host.network_requests import is_network
from sandbox.broker.host.tools import KnownCalls
from sandbox.bundle.example import Example, ExampleAnswer, is_same_value
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult
from sandbox.bundle.verbs import split_words
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Outcome
from sandbox.stages.replay.calls import (
    OrderedCalls,
    ReplayedCalls,
    is_http,
    key_asked,
    name_asked,
    read_value,
    with_value,
)
from sandbox.stages.replay.conduct import (
    find_conduct_problems,
    is_writing,
    tells_of_more,
    wants_one,
)
from sandbox.stages.replay.faults import ExchangeFault, is_api_result, list_faults
from sandbox.stages.replay.fields import (
    Path,
    is_shown_optional,
    list_fields,
    list_named_texts,
    says_missing,
    with_other_values,
    without_field,
)
from sandbox.stages.replay.influence import iterate_other_arguments
from sandbox.stages.replay.paging import find_marks, set_mark
from sandbox.stages.replay.splicing import SPLICES, find_splice, list_texts
from sandbox.stages.trials import Came, NoOutcome, format_outcome, format_value
from sandbox.wire.exchange import Exchange

MAX_CASES = 3
"""So many good cases of a tool are replayed with faults, those with the most exchanges first."""
MAX_EXCHANGES = 8
"""Exchanges of one case that are made to fail."""
MAX_FINDINGS = 4
"""So many findings are reported for one tool."""
MAX_TURNS = 2
"""So many requests of one name fail in a case: the first, and one that goes on from it."""
MAX_REPEATS = 5
RENAMED = "_v2"
FAILS = "a failure, or the usual result"

Call = Callable[[ToolDefinition, Mapping[str, Any], KnownCalls], Awaitable[Came]]
"""Calls a tool with these arguments and answers."""


@dataclass(frozen=True)
class GoodCase:
    """A case that comes out as it says, with a result or a refusal, and its exchanges."""

    tool: ToolDefinition
    example: Example
    number: int
    usual: Outcome
    exchanges: tuple[Exchange, ...]

    @property
    def refuses(self) -> bool:
        """Whether the tool refuses in this case: then nothing that fails may make it succeed."""
        return self.example.failure is not None


@dataclass
class CaseReplay:
    """Replays the cases of a bundle's tools. `cells` are its findings, `ran` counts the calls."""

    bundle: Bundle
    examples: Sequence[Example]
    call: Call
    cells: list[CaseResult] = field(default_factory=list)
    ran: int = 0

    async def replay_tool(self, tool: ToolDefinition) -> None:
        """Add what is found of a tool; nothing where no case of it has answers."""
        cases = [case async for case in self._run_usual(tool)]
        if not cases:
            return
        before = len(self.cells)
        good = [case for case in cases if not case.refuses]
        for trying in (
            self._judge_conduct,
            self._replay_faults,
            self._replay_fields,
            self._replay_marks,
            self._replay_splices,
            self._replay_arguments,
        ):
            tried = cases if trying in (self._replay_faults, self._replay_fields) else good
            for cell in [cell async for cell in trying(tool, tried)]:
                if len(self.cells) - before < MAX_FINDINGS:
                    self.cells.append(cell)

    async def _run_usual(self, tool: ToolDefinition) -> AsyncIterator[GoodCase]:
        own = [example for example in self.examples if example.tool == tool.name]
        for number, example in enumerate(own, 1):
            if example.failure == "arguments" or not example.answers:
                continue
            calls = ReplayedCalls(example.answers)
            came = await self._ask(tool, example.arguments, calls)
            if not isinstance(came, Outcome) or not came.exchanges:
                continue
            if (came.failure is None) == (example.failure is None):
                yield GoodCase(tool, example, number, came, came.exchanges)

    async def _ask(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], calls: KnownCalls
    ) -> Came:
        self.ran += 1
        return await self.call(tool, arguments, calls)

    async def _judge_conduct(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        told: set[str] = set()
        for case in cases:
            result = case.usual.structured
            for problem in find_conduct_problems(tool, case.exchanges, result):
                if problem not in told:
                    told.add(problem)
                    yield self._report(case, "its requests", f"the tool {problem}", case.usual)

    async def _replay_faults(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        told: set[str] = set()
        tried: set[tuple[str, int, bool]] = set()
        for case in _choose_cases(cases):
            turns = Counter[str]()
            for exchange in case.exchanges[:MAX_EXCHANGES]:
                name = name_asked(exchange.request)
                turns[name] += 1
                turn = (name, turns[name], case.refuses)
                if name in told or turn in tried or turns[name] > MAX_TURNS:
                    continue
                tried.add(turn)
                if self._is_tolerated(tool, exchange):
                    continue
                unused = True
                for fault in list_faults(exchange):
                    calls = ReplayedCalls(
                        case.example.answers, {key_asked(exchange.request): fault.answer}
                    )
                    came = await self._ask(tool, case.example.arguments, calls)
                    unused = unused and _is_same(case, came)
                    problem = self._judge_fault(case, exchange, fault, came, calls)
                    if problem:
                        told.add(name)
                        yield self._report(case, f"{name}: {fault.name}", problem, came)
                        break
                if unused and name not in told and not case.refuses:
                    told.add(name)
                    reason = f"{name} is asked, and its answer decides nothing: leave it out"
                    yield self._report(case, f"{name}: needless", reason, case.usual)

    def _judge_fault(
        self,
        case: GoodCase,
        exchange: Exchange,
        fault: ExchangeFault,
        came: Came,
        calls: ReplayedCalls,
    ) -> str:
        key = key_asked(exchange.request)
        count = sum(key_asked(request) == key for request in calls.asked)
        writes = [r for r in calls.asked if is_writing(case.tool, r)]
        if isinstance(came, NoOutcome):
            return f"it ended its sandbox: {came.reason}" if came.kind == "broke" else ""
        if is_writing(case.tool, exchange.request) and fault.acted and len(writes) > 1:
            return "it writes again, and the first write may be done: tell the failure instead"
        if count > MAX_REPEATS:
            return f"it asks {count} times in a row: the sandbox has asked again already"
        if came.failure is not None or _is_same(case, came):
            return ""
        return (
            "what it asks fails, and it gives another result as if all were well: raise a "
            "ToolError, or name the exception in the description and show it by a case"
        )

    def _is_tolerated(self, tool: ToolDefinition, exchange: Exchange) -> bool:
        """Whether a case shows what comes of a failure of this request, and the description names
        what is asked.
        """
        name = name_asked(exchange.request)
        shown = any(
            _is_outage_of(answer, name)
            for example in self.examples
            if example.tool == tool.name and not example.failure
            for answer in example.answers
        )
        words = split_words(tool.description)
        last = name.rpartition("/" if is_http(exchange.request) else ".")[2]
        wanted = split_words(last)
        return shown and bool(wanted) and all(word in words for word in wanted)

    async def _replay_fields(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        named = list_named_texts(self.bundle.source_code)
        told: set[tuple[str, Path]] = set()
        tried = Counter[tuple[str, Path, bool]]()
        for case in _choose_cases(cases):
            for exchange in case.exchanges[:MAX_EXCHANGES]:
                value, name = read_value(exchange), name_asked(exchange.request)
                if is_network(exchange.request) or not _is_success(exchange):
                    continue
                root = {"body": value["body"]} if is_api_result(value) else value
                for path in list_fields(root, named - {"body"}):
                    turn = (name, path, case.refuses)
                    tried[turn] += 1
                    if (name, path) in told or tried[turn] > MAX_TURNS:
                        continue
                    if is_shown_optional(self._list_values(tool, cases, name), path):
                        continue
                    ways = (("missing", ""), ("renamed", path[-1] + RENAMED))
                    for what, renamed in ways[: 3 - tried[turn]]:
                        changed = with_value(exchange, without_field(value, path, renamed))
                        came = await self._ask_changed(case, exchange, changed)
                        guessed = not renamed and _is_same(case, came) and not case.refuses
                        if guessed:
                            other = with_value(exchange, with_other_values(value, path))
                            guessed = not _is_same(
                                case, await self._ask_changed(case, exchange, other)
                            )
                        if guessed or self._defaults(case, came):
                            told.add((name, path))
                            place = "/".join(path)
                            reason = (
                                f"{place} is {what} in the answer, and the result is another as if "
                                "it were there: raise a ToolError, or give null where the output "
                                "schema says so"
                            )
                            yield self._report(case, f"{name}: {place} {what}", reason, came)
                            break

    def _list_values(
        self, tool: ToolDefinition, cases: Sequence[GoodCase], name: str
    ) -> Iterator[Any]:
        for case in cases:
            for exchange in case.exchanges:
                if name_asked(exchange.request) == name:
                    yield read_value(exchange)

    def _defaults(self, case: GoodCase, came: Came) -> bool:
        if isinstance(came, NoOutcome):
            return came.kind == "broke"
        if came.failure is not None or _is_same(case, came):
            return False
        if case.refuses:
            return True
        schema = case.tool.output_schema
        return not says_missing(case.usual.structured, came.structured, schema)

    async def _ask_changed(self, case: GoodCase, exchange: Exchange, changed: Exchange) -> Came:
        """Call the case with another answer to one of its requests."""
        key = key_asked(exchange.request)
        response = changed.response
        calls = ReplayedCalls(case.example.answers, {key: lambda asked: Exchange(asked, response)})
        return await self._ask(case.tool, case.example.arguments, calls)

    async def _replay_marks(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        """Answers that say that more follows, where those of the case say that nothing does."""
        told: set[str] = set()
        for case in _choose_cases(cases):
            for exchange in case.exchanges[:MAX_EXCHANGES]:
                name, value = name_asked(exchange.request), read_value(exchange)
                if name in told or not _is_success(exchange) or wants_one(exchange.request):
                    continue
                for mark, found in [*find_marks(value)]:
                    changed = with_value(exchange, set_mark(value, mark))
                    if found:
                        continue
                    calls = ReplayedCalls(
                        case.example.answers, {key_asked(exchange.request): _answer_by(changed)}
                    )
                    came = await self._ask(tool, case.example.arguments, calls)
                    went_on = len(calls.asked) > len(case.exchanges)
                    if _is_same(case, came) and not went_on and isinstance(came, Outcome):
                        if tells_of_more(came.structured):
                            continue
                        told.add(name)
                        reason = (
                            f"the answer says by {'/'.join(mark)} that more follows, and the "
                            "result is as if that were all: ask for the rest, or say so"
                        )
                        yield self._report(case, f"{name}: more follows", reason, came)
                        break

    async def _replay_splices(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        judge = get_checker(tool.input_schema)
        told: set[str] = set()
        for case in _choose_cases(cases):
            for name, value in list_texts(case.example.arguments):
                for hostile in SPLICES if name not in told else ():
                    given = {**case.example.arguments, name: hostile}
                    if judge.find_problem(given) is not None:
                        continue
                    calls = OrderedCalls((), case.exchanges)
                    came = await self._ask(tool, given, calls)
                    pairs = zip(case.exchanges, calls.asked, strict=False)
                    found = (find_splice(e.request, r, value, hostile) for e, r in pairs)
                    problem = next(filter(None, found), "")
                    if problem:
                        told.add(name)
                        reason = (
                            f"{name} = {hostile!r} changes the form of what is asked ({problem}): "
                            "give values by path, query, json or variables, never within a text"
                        )
                        yield self._report(case, f"splicing: {name}", reason, came, given)
                        break

    async def _replay_arguments(
        self, tool: ToolDefinition, cases: Sequence[GoodCase]
    ) -> AsyncIterator[CaseResult]:
        """Arguments that decide nothing: neither what is asked nor what is given."""
        judge = get_checker(tool.input_schema)
        names = dict.fromkeys(name for case in cases for name in case.example.arguments)
        others = [example.arguments for example in self.examples if example.tool == tool.name]
        for name in names:
            tried, decides = 0, False
            for case in (c for c in cases if name in c.example.arguments):
                usual = [key_asked(e.request) for e in case.exchanges]
                for given in iterate_other_arguments(
                    name, case.example.arguments, others, tool.input_schema, judge
                ):
                    calls = ReplayedCalls(case.example.answers)
                    came = await self._ask(tool, given, calls)
                    tried += 1
                    asked = [key_asked(request) for request in calls.asked]
                    if not _is_same(case, came) or asked != usual:
                        decides = True
                        break
                if decides:
                    break
            if tried > 1 and not decides:
                reason = (
                    f"{name} decides neither what is asked nor what is given, by {tried} other "
                    "values: use it, or leave it out of the input schema"
                )
                case = next(c for c in cases if name in c.example.arguments)
                yield self._report(case, f"argument {name}", reason, case.usual)

    def _report(
        self,
        case: GoodCase,
        name: str,
        reason: str,
        came: Came,
        given: Mapping[str, Any] | None = None,
    ) -> CaseResult:
        return CaseResult(
            case.tool.name,
            f"case {case.number}, {name}"[:300],
            "failed",
            reason,
            format_value(dict(given or case.example.arguments)),
            FAILS,
            format_outcome(came),
            example=case.number,
        )


def _answer_by(changed: Exchange) -> Callable[..., Exchange]:
    return lambda asked: Exchange(asked, changed.response)


def _is_success(exchange: Exchange) -> bool:
    return exchange.response is not None and 200 <= exchange.response.status < 300


def _is_outage_of(answer: ExampleAnswer, name: str) -> bool:
    """Whether a case's answer is a failure, beyond a documented refusal, of what is so named."""
    if not answer.is_http:
        return answer.tool == name and bool(answer.failure)
    method, _, url = answer.tool.partition(" ")
    same = f"{method} {urlsplit(url).path or '/'}" == name
    return same and (bool(answer.failure) or answer.status >= 500 or answer.status == 429)


def _is_same(case: GoodCase, came: Came) -> bool:
    if case.refuses:
        return isinstance(came, Outcome) and came.failure is not None
    if not isinstance(came, Outcome) or came.failure is not None:
        return False
    return is_same_value(case.example.structured, came.structured) or is_same_value(
        case.usual.structured, came.structured
    )


def _choose_cases(cases: Sequence[GoodCase]) -> Sequence[GoodCase]:
    """The cases that are replayed: of those with a result and of those that refuse, the longest."""
    ordered = sorted(cases, key=lambda case: -len(case.exchanges))
    good = [case for case in ordered if not case.refuses][:MAX_CASES]
    return [*good, *[case for case in ordered if case.refuses][:MAX_CASES]]
