"""The cases of every operation, which are the columns of the mock stage's matrix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sandbox.bundle.apispec import APISpec, Operation, Parameter
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.regex import AWKWARD
from sandbox.schemas.samples import Sampler, Unsatisfiable, Variant
from sandbox.stages.contract.pages import ServedPages, build_pages
from sandbox.stages.contract.places import (
    ArgumentPlace,
    find_asking_place,
    find_pager,
    find_places,
)
from sandbox.stages.contract.request import list_documented_schemas
from sandbox.stages.contract.result import Expectation
from sandbox.stages.mock.answers import AnswerBuilder, DocumentedAnswer
from sandbox.stages.mock.api import ScriptedAnswer
from sandbox.stages.mock.branches import CodeDecisions, find_decisions
from sandbox.stages.mock.faults import FaultBuilder, list_faults
from sandbox.stages.mock.schema_check import find_input_problems
from sandbox.stages.mock.unlike import build_unlike_answers
from sandbox.stages.mock.variations import LINES, Variation, adapt_style, build_variations
from sandbox.wire.exchange import Caps, WireResponse

SCHEMAS = ("schema:input", "schema:output")
"""Cells of every tool that are checked without a call."""
WALKS = {"pages": 10_000, "pages:some": 1}
"""Cases of an operation whose tool follows pages, with the number of items to ask for."""

UNESCAPED = "+/%41="
"""Text for a cookie whose style does not escape, which would change if it were escaped."""
PLAIN = CodeDecisions()
MAX_EFFORT = 400_000
"""Limit for the further cases of one tool, in values made and checked (`Sampler.effort`)."""


@dataclass(frozen=True)
class MockCase:
    """One call: its arguments, the API's answer, and the expected outcome.

    With `pages` further answers follow the first. `skipped` says why there is no such call;
    `problems`, where not None, is what was found without one. The other fields are unused then.
    """

    name: str
    arguments: Mapping[str, Any]
    answer: ScriptedAnswer | None = None
    expectation: Expectation = "answer"
    skipped: str = ""
    pages: ServedPages | None = None
    problems: tuple[str, ...] | None = None


class MockSubject:
    """One tool with its operation, and the cases for it."""

    def __init__(
        self,
        tool: ToolDefinition,
        operation: Operation,
        answers: AnswerBuilder,
        judge: DirectionalValidator,
        caps: Caps,
        seed: int,
        decided: CodeDecisions = PLAIN,
    ) -> None:
        self.tool, self.operation = tool, operation
        self._variations = build_variations(tool.input_schema, decided)
        self._decides = not decided.plain
        self._faults_tried = list_faults(operation, self._decides)
        self.places: Mapping[str, ArgumentPlace] = find_places(tool)
        self.pager = find_pager(tool)
        self._answers, self._judge, self._caps = answers, judge, caps
        definitions = tool.input_schema.get("$defs", {})
        self._sampler = Sampler(DirectionalValidator(definitions, "request"), seed)
        self._documented_sampler = Sampler(judge, seed)
        self._faults = FaultBuilder(operation, answers, caps)
        self._bare = operation.method.upper() == "HEAD"

    def list_cells(self) -> tuple[str, ...]:
        """The names of the cells that must have an entry."""
        names: list[str] = []
        for success in self._answers.list_successes(self.operation):
            names += self._name_success_cells(success)
        errors = [f"error:{e.status}" for e in self._answers.list_errors(self.operation)]
        names += [*SCHEMAS, *errors, *self._faults_tried]
        names += [case.name for case in self._unlike]
        names += WALKS if self.pager else ()
        names += [variation.name for variation in self._variations]
        names += [f"more:{name}" for name in (WALKS if self.pager and self._variations else ())]
        return tuple(dict.fromkeys(names))

    def iterate_cases(self) -> Iterator[MockCase]:
        """The cases, in the order of the cells, each made on demand."""
        minimal = self._sample_arguments("minimal")
        if isinstance(minimal, str):
            yield from self._build_schema_cases()
            called = [name for name in self.list_cells() if name not in SCHEMAS]
            yield from (MockCase(name, {}, skipped=minimal) for name in called)
            return
        yield from self._build_success_cases(minimal)
        yield from self._build_schema_cases()
        yield from self._build_error_cases(minimal)
        yield from (self._build_fault_case(name, minimal) for name in self._faults_tried)
        yield from (replace(case, arguments=minimal) for case in self._unlike)
        yield from self._build_walks(minimal)
        yield from self._iterate_variations(minimal)
        yield from self._build_further_walks()

    def _iterate_variations(self, minimal: dict[str, Any]) -> Iterator[MockCase]:
        """The variations; those beyond MAX_EFFORT are skipped."""
        spent = 0
        for variation in self._variations:
            before = self._measure_effort()
            if spent > MAX_EFFORT:
                case = MockCase(variation.name, {}, skipped="its schemas take too long to sample")
            else:
                case = self._build_variation_case(variation, minimal)
            spent += self._measure_effort() - before
            yield case

    def _measure_effort(self) -> int:
        """The sampling effort so far. The answers are shared between tools, so compare it only
        within one case.
        """
        return self._sampler.effort + self._documented_sampler.effort + self._answers.effort

    def select_sent(self, case: MockCase) -> Mapping[str, Any]:
        """The arguments of a case that go into its requests."""
        return {name: value for name, value in case.arguments.items() if name != self.pager}

    def _name_success_cells(self, success: DocumentedAnswer) -> tuple[str, ...]:
        if success == self._find_first_success(success.status):
            return f"ok:{success.status}:min", f"ok:{success.status}:full"
        assert success.media is not None
        return (f"ok:{success.status}:{success.media.type}",)

    def _find_first_success(self, status: int) -> DocumentedAnswer:
        found = self._answers.list_successes(self.operation)
        return next(success for success in found if success.status == status)

    def _sample_arguments(self, variant: Variant) -> dict[str, Any] | str:
        """Arguments for the tool, or the reason why there are none."""
        try:
            made = self._sampler.make_sample(self.tool.input_schema, variant, self._suffixes)
        except Unsatisfiable as obstacle:
            return f"no arguments were found: {obstacle}"
        if not isinstance(made, dict):
            return "the input schema takes no object"
        return {
            name: self._replace_if_forbidden(name, value, variant)
            for name, value in made.items()
            if name != self.pager
        }

    def _replace_if_forbidden(self, name: str, value: Any, variant: Variant) -> Any:
        """The value, or one by the document where the input schema is looser and the document
        forbids the value.
        """
        schemas = list_documented_schemas(self.operation, self.places.get(name))
        if not schemas or any(self._judge.accepts(schema, value) for schema in schemas):
            return value
        try:
            return self._documented_sampler.make_sample(
                schemas[0], variant, suffix=self._suffixes.get(name, "")
            )
        except Unsatisfiable:
            return value

    def _build_variation_case(self, variation: Variation, minimal: dict[str, Any]) -> MockCase:
        """A case with the variation's arguments, and its answer or else a documented one."""
        if variation.broken:
            return self._build_broken_case(variation, minimal)
        arguments = self._vary_arguments(variation, minimal)
        response, expectation = variation.response, _choose_expectation(variation.response)
        success = self._answers.find_json_success(self.operation)
        if response is not None and self._bare:
            response = WireResponse(response.status)
        elif variation.value:
            made = (
                None
                if self._bare
                else self._answers.build_value_answer(self.operation, variation.value[0])
            )
            if made is None:
                return MockCase(variation.name, {}, skipped="nothing is documented of this value")
            response, expectation = made
        elif response is None:
            first = success or self._answers.list_successes(self.operation)[0]
            try:
                response = self._answers.build_answer(first, "full", variation.flavour)
            except Unsatisfiable as obstacle:
                return MockCase(variation.name, {}, skipped=f"no such answer: {obstacle}")
        if variation.headers:
            response = self._answers.add_unknown_field(self.operation, response)
            response = replace(response, headers=(*response.headers, *variation.headers))
        if self._is_too_large(arguments) or len(response.body) > self._caps.response_bytes:
            return MockCase(variation.name, {}, skipped="larger than the caps allow")
        return MockCase(variation.name, arguments, ScriptedAnswer(response), expectation)

    def _build_broken_case(self, variation: Variation, minimal: dict[str, Any]) -> MockCase:
        """A case with a line feed in a header, which has to be refused before anything is sent, or
        in a path, which the broker does not send.
        """
        schema = self.tool.input_schema["properties"][variation.broken]
        try:
            value = self._sampler.make_sample(schema, "full", flavour=LINES)
        except Unsatisfiable as obstacle:
            return MockCase(variation.name, {}, skipped=str(obstacle))
        if value != LINES.text:
            return MockCase(variation.name, {}, skipped="the argument cannot hold a line feed")
        arguments = {**minimal, variation.broken: value}
        place = self.places.get(variation.broken)
        is_path = place is not None and place.location == "path"
        expectation: Expectation = "refused" if is_path else "arguments"
        return MockCase(variation.name, arguments, ScriptedAnswer(WireResponse(200)), expectation)

    def _is_too_large(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the URL or a header may be larger than the broker's cap."""
        outside = [
            v for n, v in arguments.items() if self.places.get(n) != ArgumentPlace("body", "")
        ]
        return len(json.dumps(outside)) * 3 > self._caps.url_bytes

    def _vary_arguments(self, variation: Variation, minimal: dict[str, Any]) -> dict[str, Any]:
        if variation.response is not None or variation.value:
            return minimal
        made = dict(minimal)
        for name in self.tool.input_schema.get("properties", {}):
            left_out = (variation.only and name != variation.only) or name == variation.without
            if name != self.pager and not (left_out and name not in minimal):
                self._set_argument(made, name, variation)
        return made

    def _set_argument(self, arguments: dict[str, Any], name: str, variation: Variation) -> None:
        """Set an argument to a value in the variation's style, where the document allows one."""
        flavour, place = variation.flavour, self.places.get(name)
        if place is not None:
            flavour = adapt_style(flavour, place, place in self._joined)
        schema = self.tool.input_schema["properties"][name]
        try:
            value = self._sampler.make_sample(
                schema, variation.variant, suffix=self._suffixes.get(name, ""), flavour=flavour
            )
        except Unsatisfiable:
            return
        schemas = list_documented_schemas(self.operation, self.places.get(name))
        if not schemas or any(self._judge.accepts(documented, value) for documented in schemas):
            arguments[name] = value

    @cached_property
    def _joined(self) -> frozenset[ArgumentPlace]:
        """Places where texts are joined to a list or object by delimiters that are not escaped."""
        found = {
            ArgumentPlace(p.location, p.name)
            for p in self.operation.parameters
            if p.allow_reserved or _is_delimited(p)
        }
        body = {ArgumentPlace("body", "")} if _joins_fields(self.operation) else set()
        return frozenset(found | body)

    @cached_property
    def _suffixes(self) -> Mapping[str, str]:
        """Suffixes for free strings, by argument: text that must be escaped, where its place has
        only one way to escape it.
        """
        plain = {
            ArgumentPlace(p.location, p.name)
            for p in self.operation.parameters
            if p.location in ("header", "cookie") or p.allow_reserved or _is_delimited(p)
        }
        if _splits_at_spaces(self.operation):
            plain.add(ArgumentPlace("body", ""))
        made = {name: AWKWARD for name, place in self.places.items() if place not in plain}
        bare = {
            ArgumentPlace(p.location, p.name)
            for p in self.operation.parameters
            if p.style == "cookie"
        }
        return made | {name: UNESCAPED for name, place in self.places.items() if place in bare}

    def _build_success_cases(self, minimal: Mapping[str, Any]) -> list[MockCase]:
        full = self._sample_arguments("full")
        cases = []
        for success in self._answers.list_successes(self.operation):
            for name in self._name_success_cells(success):
                arguments = minimal if name.endswith(":min") else full
                if isinstance(arguments, str):
                    cases.append(MockCase(name, {}, skipped=arguments))
                    continue
                variant: Variant = "minimal" if name.endswith(":min") else "full"
                cases.append(
                    self._build_documented_case(name, success, variant, arguments, "answer")
                )
        return cases

    def _build_documented_case(
        self,
        name: str,
        documented: DocumentedAnswer,
        variant: Variant,
        arguments: Mapping[str, Any],
        expectation: Expectation,
    ) -> MockCase:
        try:
            response = self._answers.build_answer(documented, variant)
        except Unsatisfiable as obstacle:
            return MockCase(name, {}, skipped=f"no instance of the answer's schema: {obstacle}")
        return MockCase(name, arguments, ScriptedAnswer(response), expectation)

    def _build_schema_cases(self) -> tuple[MockCase, MockCase]:
        """The cases that compare the tool's schemas with the document's."""
        taken = find_input_problems(self.tool, self.operation, self.places, self._judge)
        given = self._answers.find_output_problems(self.tool, self.operation)
        inputs, outputs = SCHEMAS
        return (
            MockCase(inputs, {}, problems=tuple(taken)),
            MockCase(outputs, {}, problems=tuple(given)),
        )

    def _build_error_cases(self, minimal: Mapping[str, Any]) -> list[MockCase]:
        return [
            self._build_documented_case(f"error:{error.status}", error, "full", minimal, "http")
            for error in self._answers.list_errors(self.operation)
        ]

    @cached_property
    def _unlike(self) -> tuple[MockCase, ...]:
        """The cases of answers unlike their documentation, without arguments; none where no JSON
        is documented.
        """
        success = self._answers.find_json_success(self.operation)
        if success is None:
            return ()
        try:
            sample = self._answers.build_answer(success, "full")
        except Unsatisfiable:
            return ()
        cases = []
        for unlike in build_unlike_answers(json.loads(sample.body), self._decides):
            body = json.dumps(unlike.value, ensure_ascii=False).encode()
            if len(body) <= self._caps.response_bytes:
                answer = ScriptedAnswer(replace(sample, body=body))
                cases.append(MockCase(unlike.name, {}, answer, "arrived"))
        return tuple(cases)

    def _build_walks(self, minimal: Mapping[str, Any]) -> list[MockCase]:
        pages = self._build_pages(minimal) if self.pager else None
        cases = []
        for name, limit in WALKS.items() if self.pager else ():
            if pages is not None and (limit > 1 or len(pages.items) > 1):
                arguments = {**minimal, self.pager: limit}
                cases.append(
                    MockCase(name, arguments, ScriptedAnswer(pages.answers[0]), pages=pages)
                )
            else:
                cases.append(
                    MockCase(name, {}, skipped="no pages of its answer's schema were found")
                )
        return cases

    def _build_further_walks(self) -> list[MockCase]:
        """The paging cases with every argument, where the tool's code decides."""
        if not self._variations or not self.pager:
            return []
        full = self._sample_arguments("full")
        if isinstance(full, str):
            return [MockCase(f"more:{name}", {}, skipped=full) for name in WALKS]
        return [replace(case, name=f"more:{case.name}") for case in self._build_walks(full)]

    def _build_pages(self, minimal: Mapping[str, Any]) -> ServedPages | None:
        paging = self.tool.paging
        success = self._answers.find_json_success(self.operation)
        if paging is None or success is None:
            return None
        place = find_asking_place(self.tool, self.operation)
        given = next((v for n, v in minimal.items() if self.places.get(n) == place), None)
        try:
            sample = self._answers.build_answer(success, "full")
        except Unsatisfiable:
            return None
        return build_pages(paging, sample, self._is_documented, given)

    def is_certain(self, response: WireResponse) -> bool:
        """Whether an answer that was made is known to be as documented."""
        return self._answers.is_certain(self.operation, response)

    def _is_documented(self, response: WireResponse) -> bool:
        return self._answers.find_problem(self.operation, response) is None

    def _build_fault_case(self, name: str, arguments: Mapping[str, Any]) -> MockCase:
        made = self._faults.build_fault(name)
        if isinstance(made, str):
            return MockCase(name, {}, skipped=made)
        return MockCase(name, arguments, *made)


def _choose_expectation(response: WireResponse | None) -> Expectation:
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
    """Whether a field of the body is a space-delimited list, whose items can hold no space."""
    content = operation.body.content if operation.body else ()
    fields = [field for media in content for field in media.encoding.values()]
    return any(field.style == "spaceDelimited" and not field.explode for field in fields)


def build_subjects(
    spec: APISpec,
    tools: tuple[ToolDefinition, ...],
    caps: Caps,
    seed: int = 0,
    code: str = "",
) -> tuple[MockSubject, ...]:
    """The tools that call an operation of the spec. Their cases are made on demand; there are more
    for a tool whose function in `code` decides.
    """
    decided = find_decisions(code)
    answers, judge = AnswerBuilder(spec, seed), DirectionalValidator(spec.schemas, "request")
    known = {operation.id: operation for operation in spec.operations}
    return tuple(
        MockSubject(
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
