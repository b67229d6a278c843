"""The cases that every operation is tried with: the columns of the mock stage's matrix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sandbox.agreement import input_problems
from sandbox.answers import Answers, Documented
from sandbox.apispec import APISpec, Operation, Parameter
from sandbox.broker import Caps
from sandbox.bundle import ToolDefinition
from sandbox.contract import (
    Expectation,
    Place,
    Served,
    documented_schemas,
    pager,
    places,
    served,
)
from sandbox.decisions import Decisions, decisions
from sandbox.exchange import WireResponse
from sandbox.faults import Faults, faults
from sandbox.judge import Judge
from sandbox.mockapi import Scripted
from sandbox.samples import Sampler, Unsatisfiable, Variant
from sandbox.strings import AWKWARD
from sandbox.variations import LINES, Variation, tame, variations

SCHEMAS = ("schema:input", "schema:output")
"""What is judged of every tool without a call."""
WALKS = {"pages": 10_000, "pages:some": 1}
"""What an operation whose tool follows pages is tried with, and for how many items."""

UNESCAPED = "+/%41="
"""What stands in a cookie that is not escaped, and means something else where it is."""
PLAIN = Decisions()
MAX_EFFORT = 400_000
"""For the further cases of one tool, in values made and judged (`Sampler.effort`)."""


@dataclass(frozen=True)
class Case:
    """One call: its arguments, the answer that the API gives, and what must come of it.

    With `pages` further answers follow the first. `skipped` says why there is no such call;
    `problems`, where that is not None, what was found without one. The other fields then mean
    nothing.
    """

    name: str
    arguments: Mapping[str, Any]
    answer: Scripted | None = None
    expectation: Expectation = "answer"
    skipped: str = ""
    pages: Served | None = None
    problems: tuple[str, ...] | None = None


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
        decided: Decisions = PLAIN,
    ) -> None:
        self.tool, self.operation = tool, operation
        self._variations = variations(tool.input_schema, decided)
        self.places: Mapping[str, Place] = places(tool)
        self.pager = pager(tool)
        self._answers, self._judge, self._caps = answers, judge, caps
        definitions = tool.input_schema.get("$defs", {})
        self._sampler = Sampler(Judge(definitions, "request"), seed)
        self._documented_sampler = Sampler(judge, seed)
        self._faults = Faults(operation, answers, caps)
        self._bare = operation.method.upper() == "HEAD"

    def cells(self) -> tuple[str, ...]:
        """The names of the cells that must have an entry."""
        names: list[str] = []
        for success in self._answers.successes(self.operation):
            names += self._success_cells(success)
        errors = [f"error:{e.status}" for e in self._answers.errors(self.operation)]
        names += [*SCHEMAS, *errors, *faults(self.operation), *(WALKS if self.pager else ())]
        names += [variation.name for variation in self._variations]
        names += [f"more:{name}" for name in (WALKS if self.pager and self._variations else ())]
        return tuple(dict.fromkeys(names))

    def cases(self) -> Iterator[Case]:
        """The cases, in the order of `cells`, each made when it is asked for."""
        minimal = self._arguments("minimal")
        if isinstance(minimal, str):
            yield from self._agreement()
            called = [name for name in self.cells() if name not in SCHEMAS]
            yield from (Case(name, {}, skipped=minimal) for name in called)
            return
        yield from self._successes(minimal)
        yield from self._agreement()
        yield from self._errors(minimal)
        yield from (self._fault(name, minimal) for name in faults(self.operation))
        yield from self._walks(minimal)
        yield from self._further(minimal)
        yield from self._further_walks()

    def _further(self, minimal: dict[str, Any]) -> Iterator[Case]:
        """The variations, as long as making them takes no more than a tool may."""
        spent = 0
        for variation in self._variations:
            before = self._effort()
            if spent > MAX_EFFORT:
                case = Case(variation.name, {}, skipped="its schemas take too long to sample")
            else:
                case = self._varied(variation, minimal)
            spent += self._effort() - before
            yield case

    def _effort(self) -> int:
        """What sampling has taken so far; what others share in it is taken between cases only."""
        return self._sampler.effort + self._documented_sampler.effort + self._answers.effort

    def sent(self, case: Case) -> Mapping[str, Any]:
        """The arguments of a case that go into its requests."""
        return {name: value for name, value in case.arguments.items() if name != self.pager}

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
        return {
            name: self._allowed(name, value, variant)
            for name, value in made.items()
            if name != self.pager
        }

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

    def _varied(self, variation: Variation, minimal: dict[str, Any]) -> Case:
        """A good answer, or the one that the variation has, for arguments of its kind."""
        if variation.broken:
            return self._broken(variation, minimal)
        arguments = self._varied_arguments(variation, minimal)
        response, expectation = variation.response, _expected(variation.response)
        success = self._answers.json_success(self.operation)
        if response is not None and self._bare:
            response = WireResponse(response.status)
        elif variation.value:
            made = None if self._bare else self._answers.plain(self.operation, variation.value[0])
            if made is None:
                return Case(variation.name, {}, skipped="nothing is documented of this value")
            response, expectation = made
        elif response is None:
            first = success or self._answers.successes(self.operation)[0]
            try:
                response = self._answers.good(first, "full", variation.flavour)
            except Unsatisfiable as obstacle:
                return Case(variation.name, {}, skipped=f"no such answer: {obstacle}")
        if variation.headers:
            response = self._answers.extended(self.operation, response)
            response = replace(response, headers=(*response.headers, *variation.headers))
        if self._is_too_large(arguments) or len(response.body) > self._caps.response_bytes:
            return Case(variation.name, {}, skipped="larger than the caps allow")
        return Case(variation.name, arguments, Scripted(response), expectation)

    def _broken(self, variation: Variation, minimal: dict[str, Any]) -> Case:
        """A header with a line feed, which has to be refused before anything is sent."""
        schema = self.tool.input_schema["properties"][variation.broken]
        try:
            value = self._sampler.make(schema, "full", flavour=LINES)
        except Unsatisfiable as obstacle:
            return Case(variation.name, {}, skipped=str(obstacle))
        if value != LINES.text:
            return Case(variation.name, {}, skipped="the argument cannot hold a line feed")
        arguments = {**minimal, variation.broken: value}
        return Case(variation.name, arguments, Scripted(WireResponse(200)), "arguments")

    def _is_too_large(self, arguments: Mapping[str, Any]) -> bool:
        """Whether an URL or header may be larger than the broker lets through."""
        outside = [v for n, v in arguments.items() if self.places.get(n) != Place("body", "")]
        return len(json.dumps(outside)) * 3 > self._caps.url_bytes

    def _varied_arguments(self, variation: Variation, minimal: dict[str, Any]) -> dict[str, Any]:
        if variation.response is not None or variation.value:
            return minimal
        made = dict(minimal)
        for name in self.tool.input_schema.get("properties", {}):
            left_out = (variation.only and name != variation.only) or name == variation.without
            if name != self.pager and not (left_out and name not in minimal):
                self._put(made, name, variation)
        return made

    def _put(self, arguments: dict[str, Any], name: str, variation: Variation) -> None:
        """Set an argument to a value of that flavour, where the document allows one."""
        flavour, place = variation.flavour, self.places.get(name)
        if place is not None:
            flavour = tame(flavour, place, place in self._joined)
        schema = self.tool.input_schema["properties"][name]
        try:
            value = self._sampler.make(
                schema, variation.variant, suffix=self._suffixes.get(name, ""), flavour=flavour
            )
        except Unsatisfiable:
            return
        schemas = documented_schemas(self.operation, self.places.get(name))
        if not schemas or any(self._judge.accepts(documented, value) for documented in schemas):
            arguments[name] = value

    @cached_property
    def _joined(self) -> frozenset[Place]:
        """Places where texts stand in a list or object whose delimiters are not escaped."""
        found = {
            Place(p.location, p.name)
            for p in self.operation.parameters
            if p.allow_reserved or _is_delimited(p)
        }
        body = {Place("body", "")} if _joins_fields(self.operation) else set()
        return frozenset(found | body)

    @cached_property
    def _suffixes(self) -> Mapping[str, str]:
        """Free strings hold what must be escaped, where a place has one way to escape it."""
        plain = {
            Place(p.location, p.name)
            for p in self.operation.parameters
            if p.location in ("header", "cookie") or p.allow_reserved or _is_delimited(p)
        }
        if _splits_at_spaces(self.operation):
            plain.add(Place("body", ""))
        made = {name: AWKWARD for name, place in self.places.items() if place not in plain}
        bare = {Place(p.location, p.name) for p in self.operation.parameters if p.style == "cookie"}
        return made | {name: UNESCAPED for name, place in self.places.items() if place in bare}

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

    def _agreement(self) -> tuple[Case, Case]:
        """Whether the tool's schemas and the document's agree."""
        taken = input_problems(self.tool, self.operation, self.places, self._judge)
        given = self._answers.output_problems(self.tool, self.operation)
        inputs, outputs = SCHEMAS
        return (
            Case(inputs, {}, problems=tuple(taken)),
            Case(outputs, {}, problems=tuple(given)),
        )

    def _errors(self, minimal: Mapping[str, Any]) -> list[Case]:
        return [
            self._documented(f"error:{error.status}", error, "full", minimal, "http")
            for error in self._answers.errors(self.operation)
        ]

    def _walks(self, minimal: Mapping[str, Any]) -> list[Case]:
        pages = self._served(minimal) if self.pager else None
        cases = []
        for name, limit in WALKS.items() if self.pager else ():
            if pages is not None and (limit > 1 or len(pages.items) > 1):
                arguments = {**minimal, self.pager: limit}
                cases.append(Case(name, arguments, Scripted(pages.answers[0]), pages=pages))
            else:
                cases.append(Case(name, {}, skipped="no pages of its answer's schema were found"))
        return cases

    def _further_walks(self) -> list[Case]:
        """The walks with every argument, where the tool's code decides."""
        if not self._variations or not self.pager:
            return []
        full = self._arguments("full")
        if isinstance(full, str):
            return [Case(f"more:{name}", {}, skipped=full) for name in WALKS]
        return [replace(case, name=f"more:{case.name}") for case in self._walks(full)]

    def _served(self, minimal: Mapping[str, Any]) -> Served | None:
        paging = self.tool.paging
        success = self._answers.json_success(self.operation)
        if paging is None or success is None:
            return None
        place = Place("query", paging.parameter)
        given = next((v for n, v in minimal.items() if self.places.get(n) == place), None)
        try:
            sample = self._answers.good(success, "full")
        except Unsatisfiable:
            return None
        return served(paging, sample, self._fits, given)

    def _fits(self, response: WireResponse) -> bool:
        return self._answers.problem(self.operation, response) is None

    def _fault(self, name: str, arguments: Mapping[str, Any]) -> Case:
        made = self._faults.made(name)
        if isinstance(made, str):
            return Case(name, {}, skipped=made)
        return Case(name, arguments, *made)


def _expected(response: WireResponse | None) -> Expectation:
    return "answer" if response is None or 200 <= response.status < 300 else "http"


def _is_delimited(parameter: Parameter) -> bool:
    """Whether values may be lists or objects whose delimiters a style need not escape."""
    if parameter.style == "cookie":
        return True
    is_spread = parameter.style == "form" and parameter.explode
    if parameter.location == "query" and (is_spread or parameter.style == "deepObject"):
        return False
    if parameter.media_type is not None or not isinstance(parameter.schema, Mapping):
        return parameter.media_type is None
    return parameter.schema.get("type") not in ("string", "integer", "number", "boolean")


def _joins_fields(operation: Operation) -> bool:
    """Whether a field of the body may be a list in one text."""
    content = operation.body.content if operation.body else ()
    return any(not field.explode for media in content for field in media.encoding.values())


def _splits_at_spaces(operation: Operation) -> bool:
    """Whether a field of the body is a list whose items a space parts, and so can hold none."""
    content = operation.body.content if operation.body else ()
    fields = [field for media in content for field in media.encoding.values()]
    return any(field.style == "spaceDelimited" and not field.explode for field in fields)


def subjects(
    spec: APISpec,
    tools: tuple[ToolDefinition, ...],
    caps: Caps,
    seed: int = 0,
    code: str = "",
) -> tuple[Subject, ...]:
    """The tools that call an operation of the spec, each with its cases yet to be made: more of
    them for those whose function in `code` decides.
    """
    decided = decisions(code)
    answers, judge = Answers(spec, seed), Judge(spec.schemas, "request")
    known = {operation.id: operation for operation in spec.operations}
    return tuple(
        Subject(
            tool,
            known[tool.operation],
            answers,
            judge,
            caps,
            seed,
            decided.get(tool.name, PLAIN),
        )
        for tool in tools
        if tool.operation in known
    )
