"""The cases that every operation is tried with: the columns of the mock stage's matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sandbox.answers import Answers, Documented, generic_error
from sandbox.apispec import APISpec, Operation
from sandbox.broker import Caps
from sandbox.bundle import ToolDefinition
from sandbox.contract import Expectation, Place, documented_schemas, places
from sandbox.exchange import WireResponse
from sandbox.judge import Judge
from sandbox.mockapi import Scripted
from sandbox.samples import Sampler, Unsatisfiable, Variant
from sandbox.strings import AWKWARD

FAULTS = ("401", "404", "429", "500", "malformed", "wrong_type", "empty", "slow", "oversized")
"""What every operation is tried with besides its documented answers."""

_CUT_OFF = b'{"cut_off": "malformed-3391", '
_BARE = "HEAD answers carry no content"
_NO_JSON = "the operation documents no JSON answer"


@dataclass(frozen=True)
class Case:
    """One call: its arguments, the answer that the API gives, and what must come of it.

    `skipped` says why there is no such call; the other fields then mean nothing.
    """

    name: str
    arguments: Mapping[str, Any]
    answer: Scripted | None = None
    expectation: Expectation = "answer"
    skipped: str = ""


class Subject:
    """One tool and its operation, and the cases it is tried with."""

    def __init__(
        self,
        tool: ToolDefinition,
        operation: Operation,
        answers: Answers,
        judge: Judge,
        caps: Caps,
        seed: int,
    ) -> None:
        self.tool, self.operation = tool, operation
        self.places: Mapping[str, Place] = places(tool)
        self._answers, self._judge, self._caps = answers, judge, caps
        definitions = tool.input_schema.get("$defs", {})
        self._sampler = Sampler(Judge(definitions, "request"), seed)
        self._documented_sampler = Sampler(judge, seed)
        self._bare = operation.method.upper() == "HEAD"

    def cells(self) -> tuple[str, ...]:
        """The names of the cells that must have an entry."""
        names: list[str] = []
        for success in self._answers.successes(self.operation):
            names += self._success_cells(success)
        errors = [f"error:{e.status}" for e in self._answers.errors(self.operation)]
        return tuple(dict.fromkeys([*names, *errors, *FAULTS]))

    def cases(self) -> tuple[Case, ...]:
        """The cases, in the order of `cells`."""
        minimal = self._arguments("minimal")
        if isinstance(minimal, str):
            return tuple(Case(name, {}, skipped=minimal) for name in self.cells())
        return (
            *self._successes(minimal),
            *self._errors(minimal),
            *(self._fault(name, minimal) for name in FAULTS),
        )

    def _success_cells(self, success: Documented) -> tuple[str, ...]:
        if success == self._first(success.status):
            return f"ok:{success.status}:min", f"ok:{success.status}:full"
        assert success.media is not None
        return (f"ok:{success.status}:{success.media.type}",)

    def _first(self, status: int) -> Documented:
        found = self._answers.successes(self.operation)
        return next(success for success in found if success.status == status)

    def _arguments(self, variant: Variant) -> dict[str, Any] | str:
        """Arguments for the tool, or the reason why there are none."""
        try:
            made = self._sampler.make(self.tool.input_schema, variant, self._suffixes)
        except Unsatisfiable as obstacle:
            return f"no arguments were found: {obstacle}"
        if not isinstance(made, dict):
            return "the input schema takes no object"
        return {name: self._allowed(name, value, variant) for name, value in made.items()}

    def _allowed(self, name: str, value: Any, variant: Variant) -> Any:
        """The value, or where an input schema is looser than the document, one by the document."""
        schemas = documented_schemas(self.operation, self.places.get(name))
        if not schemas or any(self._judge.accepts(schema, value) for schema in schemas):
            return value
        try:
            return self._documented_sampler.make(
                schemas[0], variant, suffix=self._suffixes.get(name, "")
            )
        except Unsatisfiable:
            return value

    @cached_property
    def _suffixes(self) -> Mapping[str, str]:
        """Free strings hold what must be escaped, where a place has one way to escape it."""
        plain = {
            Place(p.location, p.name)
            for p in self.operation.parameters
            if p.location in ("header", "cookie") or p.allow_reserved or _is_delimited(p.schema)
        }
        if _splits_at_spaces(self.operation):
            plain.add(Place("body", ""))
        return {name: AWKWARD for name, place in self.places.items() if place not in plain}

    def _successes(self, minimal: Mapping[str, Any]) -> list[Case]:
        full = self._arguments("full")
        cases = []
        for success in self._answers.successes(self.operation):
            for name in self._success_cells(success):
                arguments = minimal if name.endswith(":min") else full
                if isinstance(arguments, str):
                    cases.append(Case(name, {}, skipped=arguments))
                    continue
                variant: Variant = "minimal" if name.endswith(":min") else "full"
                cases.append(self._documented(name, success, variant, arguments, "answer"))
        return cases

    def _documented(
        self,
        name: str,
        documented: Documented,
        variant: Variant,
        arguments: Mapping[str, Any],
        expectation: Expectation,
    ) -> Case:
        try:
            response = self._answers.good(documented, variant)
        except Unsatisfiable as obstacle:
            return Case(name, {}, skipped=f"no instance of the answer's schema: {obstacle}")
        return Case(name, arguments, Scripted(response), expectation)

    def _errors(self, minimal: Mapping[str, Any]) -> list[Case]:
        return [
            self._documented(f"error:{error.status}", error, "full", minimal, "http")
            for error in self._answers.errors(self.operation)
        ]

    def _fault(self, name: str, arguments: Mapping[str, Any]) -> Case:
        make: Callable[[], tuple[Scripted, Expectation] | str] = {
            "429": self._too_many,
            "malformed": self._malformed,
            "wrong_type": self._wrong_type,
            "empty": self._empty,
            "slow": self._slow,
            "oversized": self._oversized,
        }.get(name, lambda: (Scripted(self._error(int(name))), "http"))
        made = make()
        if isinstance(made, str):
            return Case(name, {}, skipped=made)
        return Case(name, arguments, *made)

    def _error(self, status: int) -> WireResponse:
        return WireResponse(status) if self._bare else generic_error(status)

    def _too_many(self) -> tuple[Scripted, Expectation]:
        """As long a wait as lets every attempt of the broker's budget happen."""
        wait = max(1, int(self._caps.retry_budget_seconds / self._caps.attempts))
        refused = self._error(429)
        headers = (*refused.headers, ("retry-after", str(wait)))
        return Scripted(WireResponse(429, headers, refused.body)), "http"

    def _malformed(self) -> tuple[Scripted, Expectation] | str:
        success = self._answers.json_success(self.operation)
        if success is None:
            return _BARE if self._bare else _NO_JSON
        headers = (("content-type", "application/json"),)
        return Scripted(WireResponse(success.status, headers, _CUT_OFF)), "malformed"

    def _wrong_type(self) -> tuple[Scripted, Expectation] | str:
        if self._answers.json_success(self.operation) is None:
            return _BARE if self._bare else _NO_JSON
        response = self._answers.wrong_type(self.operation)
        if response is None:
            return "the operation documents an answer that may be any JSON"
        return Scripted(response), "schema"

    def _empty(self) -> tuple[Scripted, Expectation]:
        status = self._answers.successes(self.operation)[0].status
        return Scripted(WireResponse(status)), "answer"

    def _slow(self) -> tuple[Scripted, Expectation]:
        delay = 4 * (self._caps.seconds + self._caps.retry_budget_seconds)
        return Scripted(WireResponse(200), delay), "timeout"

    def _oversized(self) -> tuple[Scripted, Expectation] | str:
        if self._bare:
            return _BARE
        headers = (("content-type", "application/json"),)
        body = b" " * (self._caps.response_bytes + 1)
        return Scripted(WireResponse(200, headers, body)), "too_large"


def _is_delimited(schema: Any) -> bool:
    """Whether values may be lists or objects, whose delimiters a style need not escape."""
    if not isinstance(schema, Mapping):
        return True
    kinds = schema.get("type")
    return kinds not in ("string", "integer", "number", "boolean")


def _splits_at_spaces(operation: Operation) -> bool:
    """Whether a field of the body is a list whose items a space parts, and so can hold none."""
    content = operation.body.content if operation.body else ()
    fields = [field for media in content for field in media.encoding.values()]
    return any(field.style == "spaceDelimited" and not field.explode for field in fields)


def subjects(
    spec: APISpec, tools: tuple[ToolDefinition, ...], caps: Caps, seed: int = 0
) -> tuple[Subject, ...]:
    """The tools that call an operation of the spec, each with its cases yet to be made."""
    answers, judge = Answers(spec, seed), Judge(spec.schemas, "request")
    known = {operation.id: operation for operation in spec.operations}
    return tuple(
        Subject(tool, known[tool.operation], answers, judge, caps, seed)
        for tool in tools
        if tool.operation in known
    )
