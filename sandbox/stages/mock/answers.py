"""Building answers of a documented API, valid and invalid, from its schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sandbox.bundle.apispec import APISpec, MediaType, Operation, Response, Schema
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.samples import USUAL, Sampler, SampleStyle, Unsatisfiable, Variant
from sandbox.stages.contract.body import extract_essence, is_json
from sandbox.stages.contract.result import Expectation
from sandbox.stages.mock.schema_check import find_output_problems
from sandbox.wire.exchange import WireResponse

NO_CONTENT = frozenset({204, 205})
"""Statuses that never carry content (RFC 9110, sections 15.3.5 and 15.3.6)."""

_NO_CONTENT_TEXTS = frozenset(map(str, NO_CONTENT))
_SUCCESS = re.compile(r"2(?:\d\d|XX)\Z", re.IGNORECASE)
_ERROR = re.compile(r"[45](?:\d\d|XX)\Z", re.IGNORECASE)
_TEXTUAL = re.compile(r"text/|.*(?:xml|yaml|javascript|graphql|csv|json|x-www-form-urlencoded)")
_LINES = ("ndjson", "jsonl", "json-seq", "json-lines")
"""In the names of types with one JSON value a line."""
_NOT_ASCII = "é\U0001f600"
_WRONG_TYPES: tuple[Any, ...] = (
    "wrong-type-8471",
    847_100.5,
    ["wrong-type-8472"],
    {"wrong_type": "wrong-type-8473"},
    True,
)
"""Null is none of them: any answer may be null."""


@dataclass(frozen=True)
class DocumentedAnswer:
    """One documented answer: a status, and one of its media types (None: no content)."""

    status: int
    media: MediaType | None


def is_textual(media_type: str) -> bool:
    return bool(_TEXTUAL.match(extract_essence(media_type)))


class AnswerBuilder:
    """Builds answers for the operations of an API; the same seed gives the same answers."""

    def __init__(self, spec: APISpec, seed: int = 0) -> None:
        self._judge = DirectionalValidator(spec.schemas, "response")
        self._certain = DirectionalValidator(spec.schemas, "response", certain=True)
        self._sampler = Sampler(self._judge, seed)
        self._made: dict[tuple[str, str, Variant, SampleStyle], tuple[bytes, int]] = {}
        self._spared = 0

    @property
    def effort(self) -> int:
        """The effort for the answers so far, as `Sampler.effort`. An answer that was made before
        counts again, so that one tool's effort does not hang on which tools came before it.
        """
        return self._sampler.effort + self._spared

    def list_successes(self, operation: Operation) -> tuple[DocumentedAnswer, ...]:
        """Each documented success, JSON before other media types of its status.

        `default` stands for 200 where no success is documented; so does nothing at all.
        """
        found = [r for r in operation.responses if _SUCCESS.match(r.status)]
        if not found:
            found = [r for r in operation.responses if r.status == "default"]
        explicit = {int(r.status) for r in found if r.status.isdigit()}
        free = iter(status for status in range(200, 300) if status not in explicit)
        out: list[DocumentedAnswer] = []
        for response in found:
            status = int(response.status) if response.status.isdigit() else next(free)
            out += _list_contents(operation, response, status)
        return tuple(out) or (DocumentedAnswer(200, None),)

    def list_errors(self, operation: Operation) -> tuple[DocumentedAnswer, ...]:
        """Each documented 4xx and 5xx status, with the first of its media types."""
        out = []
        for response in operation.responses:
            if _ERROR.match(response.status):
                status = int(response.status.upper().replace("XX", "00"))
                out.append(_list_contents(operation, response, status)[0])
        return tuple(out)

    def build_answer(
        self, documented: DocumentedAnswer, variant: Variant, flavour: SampleStyle = USUAL
    ) -> WireResponse:
        """An answer as documented. Raises Unsatisfiable."""
        if documented.media is None:
            return WireResponse(documented.status)
        kind = _resolve_range(documented.media.type)
        return WireResponse(
            documented.status,
            (("content-type", kind),),
            self._build_content(documented.media, kind, variant, flavour),
        )

    def build_value_answer(
        self, operation: Operation, value: Any
    ) -> tuple[WireResponse, Expectation] | None:
        """A JSON answer with this value and the expected outcome; None where the documented answers
        neither allow it nor refuse its type.
        """
        documented = self.find_json_success(operation)
        if documented is None or documented.media is None:
            headers = (("content-type", "application/json"),)
            return WireResponse(200, headers, _encode_json(value)), "answer"
        kind = _resolve_range(documented.media.type)
        response = WireResponse(documented.status, (("content-type", kind),), _encode_json(value))
        if self._judge.accepts(documented.media.schema, value):
            return response, "answer"
        schemas = self._list_json_schemas(operation)
        is_wrong = bool(schemas) and all(self._refuses_type(schema, value) for schema in schemas)
        return (response, "arrived") if is_wrong else None

    def add_unknown_field(self, operation: Operation, response: WireResponse) -> WireResponse:
        """Add an undocumented field to an answer, where its schema allows one."""
        success = self.find_json_success(operation)
        try:
            value = json.loads(response.body)
        except ValueError:
            return response
        if success is None or success.media is None or not isinstance(value, dict):
            return response
        more = {**value, "Extra-Field": {"List": [4, 7, 1, 8], "Text": "  EXTRA-4718 "}}
        accepted = self._judge.accepts(success.media.schema, more)
        return replace(response, body=_encode_json(more)) if accepted else response

    def find_output_problems(self, tool: ToolDefinition, operation: Operation) -> Iterator[str]:
        """The differences between the tool's output schema and the documented JSON answers."""
        yield from find_output_problems(tool, self._list_json_schemas(operation), self._judge)

    def _list_json_schemas(self, operation: Operation) -> list[Schema | None]:
        """The schemas of all explicitly documented successes that a body of JSON may have. What a
        document says of the content of a 204 never arrives, and lines of JSON are given as text.
        """
        successes = (each for each in operation.responses if _SUCCESS.match(each.status))
        told = [each for each in successes if each.status not in _NO_CONTENT_TEXTS]
        media = [media for response in told for media in response.content]
        return [m.schema for m in media if _may_be_body(_resolve_range(m.type).lower())]

    def build_wrong_type(self, operation: Operation) -> WireResponse | None:
        """A success whose JSON no documented success allows, or None where any JSON is allowed.

        `default` does not count: as a rule it describes errors.
        """
        documented = self.find_json_success(operation)
        explicit = any(_SUCCESS.match(response.status) for response in operation.responses)
        if documented is None or documented.media is None or not explicit:
            return None
        schemas = [
            success.media.schema
            for success in self.list_successes(operation)
            if success.media and is_json(extract_essence(_resolve_range(success.media.type)))
        ]
        for value in _WRONG_TYPES:
            if all(self._refuses_type(schema, value) for schema in schemas):
                kind = _resolve_range(documented.media.type)
                return WireResponse(
                    documented.status, (("content-type", kind),), _encode_json(value)
                )
        return None

    def _refuses_type(self, schema: Schema | None, value: Any) -> bool:
        """Whether a value is of a wrong type. Missing or further members of an object do not count,
        nor that several alternatives match: a tool may be more tolerant than the document.
        """
        breach = self._judge.breach(schema, value)
        if breach is None or breach.keyword == "many":
            return False
        return not isinstance(value, dict) or breach.keyword == "type"

    def find_json_success(self, operation: Operation) -> DocumentedAnswer | None:
        """The first documented success that is JSON, or None."""
        for success in self.list_successes(operation):
            if success.media and is_json(extract_essence(_resolve_range(success.media.type))):
                return success
        return None

    def find_problem(self, operation: Operation, response: WireResponse) -> str | None:
        """The reason why a real answer is no documented success, or None."""
        sent = extract_essence(response.get_header("content-type") or "")
        if not 200 <= response.status < 300:
            return f"the status is {response.status}"
        success = self.find_json_success(operation)
        if success is None or success.media is None or not response.body:
            return None
        if not is_json(sent):
            return f"the answer is {sent or 'of no type'}, not JSON"
        try:
            value = json.loads(response.body)
        except (ValueError, RecursionError):
            return "the answer does not parse as JSON"
        return self._judge.find_problem(success.media.schema, value)

    def is_certain(self, operation: Operation, response: WireResponse) -> bool:
        """Whether a JSON answer is known to be as documented: whether a text fits a pattern that
        only backtracking can match is not.
        """
        try:
            value = json.loads(response.body)
        except (ValueError, RecursionError):
            return True
        schemas = self._list_json_schemas(operation)
        return not schemas or any(self._certain.accepts(schema, value) for schema in schemas)

    def _build_content(
        self, media: MediaType, kind: str, variant: Variant, flavour: SampleStyle
    ) -> bytes:
        """The content, made once: most operations of an API document the same errors."""
        key = (json.dumps(media.schema), kind, variant, flavour)
        if (known := self._made.get(key)) is not None:
            self._spared += known[1]
            return known[0]
        before = self._sampler.effort
        content = self._make_content(media, kind, variant, flavour)
        self._made[key] = content, self._sampler.effort - before
        return content

    def _make_content(
        self, media: MediaType, kind: str, variant: Variant, flavour: SampleStyle
    ) -> bytes:
        if is_json(extract_essence(kind)):
            suffix = _NOT_ASCII if variant == "full" else ""
            return _encode_json(
                self._sampler.make_sample(media.schema, variant, suffix=suffix, flavour=flavour)
            )
        return _encode_text(self._build_plain_text(media, flavour), kind)

    def _build_plain_text(self, media: MediaType, flavour: SampleStyle) -> str:
        try:
            value = self._sampler.make_sample(media.schema, "full", flavour=flavour)
        except Unsatisfiable:
            return "sample"
        return value if isinstance(value, str) else json.dumps(value)


def _may_be_body(kind: str) -> bool:
    return "json" in kind and not any(name in kind for name in _LINES)


def build_generic_error(status: int) -> WireResponse:
    """An error that no document describes: HTML for 500, plain text for 404, JSON otherwise."""
    told = f"undocumented-{status}-6093"
    kind, text = {
        404: ("text/plain", f"not here: {told}"),
        500: ("text/html; charset=utf-8", f"<h1>Server Error</h1><p>{told}</p>"),
    }.get(status, ("application/json", json.dumps({"error": {"message": told}})))
    return WireResponse(status, (("content-type", kind),), text.encode())


def _list_contents(operation: Operation, response: Response, status: int) -> list[DocumentedAnswer]:
    bare = status in NO_CONTENT or operation.method.upper() == "HEAD" or not response.content
    if bare:
        return [DocumentedAnswer(status, None)]
    ordered = sorted(response.content, key=lambda media: not is_json(_resolve_range(media.type)))
    return [DocumentedAnswer(status, media) for media in ordered]


def _resolve_range(media_type: str) -> str:
    """A concrete media type for a documented range such as `text/*`."""
    kind, _, subtype = extract_essence(media_type).partition("/")
    if kind == "*":
        return "application/json"
    if subtype in ("*", ""):
        return f"{kind}/{_EXAMPLES.get(kind, 'octet-stream')}"
    return media_type


_EXAMPLES = {"text": "plain", "image": "png", "application": "json", "audio": "mpeg"}


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _encode_text(sample: str, kind: str) -> bytes:
    """Text in a form of its type, else bytes that are text in no encoding of ours."""
    name = extract_essence(kind)
    if name.endswith("xml"):
        return b"<sample><value>xml-5127</value></sample>"
    if "json" in name:
        return b'{"line": "one-5128"}\n{"line": "two-5129"}\n'
    if is_textual(kind):
        return f"text-5130 {sample}".encode()
    return b"\x89BIN\r\n\x1a\n\x00\xff\xfe" + sample.encode()
