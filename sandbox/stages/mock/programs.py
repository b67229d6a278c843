"""Tools whose own code makes requests of the document: what they send in their cases is held
against it, and what they make of its answers is tried.

Such a tool names no operation, because it computes with what one or several of them answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.broker.host.tools import KnownCalls
from sandbox.bundle.apispec import APISpec, Operation, Schema
from sandbox.bundle.example import Example, ExampleAnswer
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import CaseResult
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.stages.contract.places import IGNORED_HEADERS
from sandbox.stages.contract.request import PLUMBING, parse_url_template, split_pairs
from sandbox.stages.mock.stage import MockBench, build_mock_policy
from sandbox.stages.static.definitions import find_programs, iterate_calls
from sandbox.wire.exchange import WireRequest

CALL_SECONDS = 5.0
MAX_EVIDENCE = 600
_SCALARS = {
    "integer": re.compile(r"-?\d{1,40}\Z"),
    "number": re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?\Z"),
    "boolean": re.compile(r"(true|false)\Z"),
}


async def prove_programs(
    bundle: Bundle, examples: Sequence[Example], bench: MockBench
) -> tuple[CaseResult, ...]:
    """Run the cases of these tools, and one with the answers that the document has. Raises
    SessionBroken, CallTimedOut, LoadFailed.
    """
    assert bundle.spec is not None
    judge = _DocumentJudge(bundle.spec)
    cells: list[CaseResult] = []
    for tool in find_programs(bundle):
        bench.broker.policy = build_mock_policy(bundle, tool.name)
        asked: set[str] = set()
        own = [e for e in examples if e.tool == tool.name and e.failure != "arguments"]
        checker = get_checker(tool.input_schema)
        fit = [e for e in own if checker.find_problem(e.arguments) is None]
        for number, example in enumerate(fit, 1):
            tape = CallLog(calls=KnownCalls(example.answers))
            try:
                came = await bench.session.call(tool.name, example.arguments, CALL_SECONDS, tape)
            except (SessionBroken, CallTimedOut) as error:
                cells.append(
                    CaseResult(tool.name, f"requests: case {number}", "failed", str(error))
                )
                return tuple(cells)
            asked |= judge.list_asked(came)
            problems = (*judge.check_answers(example.answers), *judge.check_requests(came))
            cells.append(_build_cell(tool, f"requests: case {number}", problems, example.arguments))
        cells += _find_unasked(bundle, tool, asked)
        usual = next((e for e in fit if not e.failure), None)
        if usual is not None:
            cells.append(await _try_documented(tool, usual, bench))
    return tuple(cells)


async def _try_documented(tool: ToolDefinition, usual: Example, bench: MockBench) -> CaseResult:
    """What comes of a case whose API answers as its document says, with other values."""
    bench.mock.script_answers(None)
    name = "documented answers"
    try:
        tape = CallLog(calls=KnownCalls(tuple(a for a in usual.answers if not a.is_http)))
        came = await bench.session.call(tool.name, usual.arguments, CALL_SECONDS, tape)
    except (SessionBroken, CallTimedOut) as error:
        return CaseResult(tool.name, name, "failed", str(error))
    # A type that a document shows by one example alone may be another: `schema` is no bug here.
    if came.failure is None or came.failure.kind != "bug":
        return CaseResult(tool.name, name, "passed", "a result or a failure that is told")
    where = f" at {came.failure.where}" if came.failure.where else ""
    reason = (
        f"the API answers as its document says, and the call failed ({came.failure.kind}{where}): "
        f"{came.failure.message}"
    )
    return _build_cell(tool, name, (reason,), usual.arguments)


def _build_cell(
    tool: ToolDefinition, name: str, problems: Sequence[str], arguments: Mapping[str, Any]
) -> CaseResult:
    told = "; ".join(problems)[:MAX_EVIDENCE] or "as documented"
    given = json.dumps(dict(arguments), ensure_ascii=False)[:400]
    return CaseResult(tool.name, name, "failed" if problems else "passed", told, given=given)


def _find_unasked(bundle: Bundle, tool: ToolDefinition, asked: set[str]) -> Iterator[CaseResult]:
    for other, operation in iterate_calls(bundle):
        if other == tool and operation.id not in asked:
            what = f"{operation.method.upper()} {operation.path}"
            reason = f"no case makes the request {what}: add one, or leave it out of `calls`"
            yield CaseResult(tool.name, f"asks {what}", "failed", reason)


class _DocumentJudge:
    """Holds requests and answers against the document."""

    def __init__(self, spec: APISpec) -> None:
        # A literal path goes before one with a placeholder in its place.
        self._operations = sorted(spec.operations, key=lambda operation: operation.url.count("{"))
        self._requests = DirectionalValidator(spec.schemas, "request")
        self._answers = DirectionalValidator(spec.schemas, "response")

    def list_asked(self, came: Outcome) -> set[str]:
        """The ids of the operations that were called."""
        made = (self._find_operation(e.request.method, e.request.url) for e in came.exchanges)
        return {operation.id for operation in made if operation}

    def check_requests(self, came: Outcome) -> Iterator[str]:
        for exchange in came.exchanges:
            request = exchange.request
            if not request.url.startswith(("http://", "https://")):
                continue
            shown = f"{request.method} {request.url[:160]}"
            operation = self._find_operation(request.method, request.url)
            if operation is None:
                yield f"{shown} is no operation of `api`"
                continue
            for problem in self._check_request(operation, request):
                yield f"{shown}: {problem}"
            if exchange.kind in ("refused", "unsupported"):
                yield f"{shown} was refused: {exchange.reason[:300]}"

    def check_answers(self, answers: Sequence[ExampleAnswer]) -> Iterator[str]:
        """How what a case has the API answer differs from what is documented."""
        for known in answers:
            if not known.is_http or known.failure:
                continue
            method, _, url = known.tool.partition(" ")
            operation = self._find_operation(method, url)
            if operation is None:
                yield f"the answer to {known.tool[:160]} is to no operation of `api`"
                continue
            if problem := self._check_answer(operation, known):
                yield f"the answer to {known.tool[:160]} is not as documented: {problem}"

    def _find_operation(self, method: str, url: str) -> Operation | None:
        place = url.partition("#")[0].partition("?")[0]
        return next(
            (
                operation
                for operation in self._operations
                if operation.method.upper() == method
                and parse_url_template(operation.url).path.match(place)
            ),
            None,
        )

    def _check_answer(self, operation: Operation, known: ExampleAnswer) -> str:
        exact = [r for r in operation.responses if r.status == str(known.status)]
        ranged = [r for r in operation.responses if r.status == f"{known.status // 100}XX"]
        found = exact or ranged or [r for r in operation.responses if r.status == "default"]
        if not found:
            good = [r.status for r in operation.responses if r.status.startswith("2")]
            wrong = known.status < 300 and good
            return f"the status is {known.status}, not {' or '.join(good)}" if wrong else ""
        schemas = [m.schema for m in found[0].content if "json" in m.type and m.schema is not None]
        problems = [self._answers.find_problem(schema, known.result) for schema in schemas]
        return str(problems[0]) if problems and all(problems) else ""

    def _check_request(self, operation: Operation, request: WireRequest) -> Iterator[str]:
        template = parse_url_template(operation.url)
        place, _, query = request.url.partition("#")[0].partition("?")
        found = template.path.match(place)
        segments = dict(zip(template.names, found.groups(), strict=True)) if found else {}
        pairs = split_pairs(query, "&")
        known = {name for name, _ in template.query} | {name for name, _ in template.slots}
        spread = False
        for parameter in operation.parameters:
            if parameter.location == "path" and parameter.name in segments:
                yield from _check_text(
                    f"path {parameter.name}", parameter.schema, [segments[parameter.name]]
                )
            elif parameter.location == "query":
                known.add(parameter.name)
                spread |= parameter.style in ("deepObject", "whole")
                sent = [raw for name, raw in pairs if name == parameter.name]
                if parameter.required and not sent:
                    yield f"the query parameter {parameter.name} is required"
                yield from _check_text(f"query {parameter.name}", parameter.schema, sent)
            elif parameter.location == "header" and parameter.required:
                if request.get_header(parameter.name) is None:
                    yield f"the header {parameter.name} is required"
        for name, _ in pairs:
            if name not in known and not spread:
                yield f"the query parameter {name[:60]} is not documented"
        headers = {p.name.lower() for p in operation.parameters if p.location == "header"}
        for name, _ in request.headers:
            if name.lower() not in headers | PLUMBING | IGNORED_HEADERS:
                yield f"the header {name[:60]} is not documented"
        yield from self._check_body(operation, request)

    def _check_body(self, operation: Operation, request: WireRequest) -> Iterator[str]:
        if operation.body is None:
            if request.body:
                yield "it has a body, and none is documented"
            return
        if not request.body:
            if operation.body.required:
                yield "it has no body, and one is required"
            return
        schemas = [m.schema for m in operation.body.content if "json" in m.type]
        if not schemas:
            return
        try:
            value = json.loads(request.body)
        except (ValueError, RecursionError):
            yield "its body is no JSON"
            return
        problems = [self._requests.find_problem(schema, value) for schema in schemas]
        if all(problems):
            yield f"its body breaks the documented schema: {problems[0]}"
            return
        fields = [_list_fields(schema) for schema in schemas]
        if isinstance(value, dict) and all(named is not None for named in fields):
            known = {name for named in fields for name in named or ()}
            for name in sorted(value.keys() - known):
                yield f"the body's field {name[:60]} is not documented"


def _list_fields(schema: Schema | None) -> tuple[str, ...] | None:
    """The fields that a body's schema names; None where it may have others."""
    if not isinstance(schema, Mapping) or schema.keys() & {"$ref", "allOf", "anyOf", "oneOf"}:
        return None
    named = schema.get("properties")
    return tuple(named) if isinstance(named, Mapping) and named else None


def _check_text(what: str, schema: Schema, sent: Sequence[str]) -> Iterator[str]:
    """What is wrong with the text of a plain value in a path or query."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    allowed = schema.get("enum") if isinstance(schema, Mapping) else None
    for raw in sent:
        if isinstance(kind, str) and kind in _SCALARS and not _SCALARS[kind].match(raw):
            yield f"{what} is {raw[:60]!r}, and its type is {kind}"
        elif isinstance(allowed, list) and kind == "string" and raw not in allowed:
            yield f"{what} is {raw[:60]!r}, none of {str(allowed)[:120]}"
