"""The answers that a documented API may give, good and bad, made from its schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sandbox.agreement import output_problems
from sandbox.apispec import APISpec, MediaType, Operation, Response, Schema
from sandbox.bundle import ToolDefinition
from sandbox.contract import Expectation
from sandbox.contract.body import essence, is_json
from sandbox.exchange import WireResponse
from sandbox.judge import Judge
from sandbox.samples import USUAL, Flavour, Sampler, Unsatisfiable, Variant

NO_CONTENT = frozenset({204, 205})
"""Statuses that never carry content (RFC 9110, sections 15.3.5 and 15.3.6)."""

_SUCCESS = re.compile(r"2(?:\d\d|XX)\Z", re.IGNORECASE)
_ERROR = re.compile(r"[45](?:\d\d|XX)\Z", re.IGNORECASE)
_TEXTUAL = re.compile(r"text/|.*(?:xml|yaml|javascript|graphql|csv|json|x-www-form-urlencoded)")
_NOT_ASCII = "é\U0001f600"
_WRONG_TYPES: tuple[Any, ...] = (
    "wrong-type-8471",
    847_100.5,
    ["wrong-type-8472"],
    {"wrong_type": "wrong-type-8473"},
    True,
    None,
)


@dataclass(frozen=True)
class Documented:
    """One documented answer: a status, and one of its media types (None: no content)."""

    status: int
    media: MediaType | None


def is_textual(media_type: str) -> bool:
    return bool(_TEXTUAL.match(essence(media_type)))


class Answers:
    """Makes answers for the operations of an API; the same seed makes the same answers."""

    def __init__(self, spec: APISpec, seed: int = 0) -> None:
        self._judge = Judge(spec.schemas, "response")
        self._sampler = Sampler(self._judge, seed)

    @property
    def effort(self) -> int:
        """What the answers so far have taken, as `Sampler.effort`."""
        return self._sampler.effort

    def successes(self, operation: Operation) -> tuple[Documented, ...]:
        """Each documented success, JSON before other media types of its status.

        `default` stands for 200 where no success is documented; so does nothing at all.
        """
        found = [r for r in operation.responses if _SUCCESS.match(r.status)]
        if not found:
            found = [r for r in operation.responses if r.status == "default"]
        explicit = {int(r.status) for r in found if r.status.isdigit()}
        free = iter(status for status in range(200, 300) if status not in explicit)
        out: list[Documented] = []
        for response in found:
            status = int(response.status) if response.status.isdigit() else next(free)
            out += _contents(operation, response, status)
        return tuple(out) or (Documented(200, None),)

    def errors(self, operation: Operation) -> tuple[Documented, ...]:
        """Each documented 4xx and 5xx status, with the first of its media types."""
        out = []
        for response in operation.responses:
            if _ERROR.match(response.status):
                status = int(response.status.upper().replace("XX", "00"))
                out.append(_contents(operation, response, status)[0])
        return tuple(out)

    def good(
        self, documented: Documented, variant: Variant, flavour: Flavour = USUAL
    ) -> WireResponse:
        """That answer as documented. Raises Unsatisfiable."""
        if documented.media is None:
            return WireResponse(documented.status)
        kind = _concrete(documented.media.type)
        return WireResponse(
            documented.status,
            (("content-type", kind),),
            self._content(documented.media, kind, variant, flavour),
        )

    def plain(self, operation: Operation, value: Any) -> tuple[WireResponse, Expectation] | None:
        """A JSON answer with this value and what must come of it; None where the documented answers
        neither allow it nor refuse its type.
        """
        documented = self.json_success(operation)
        if documented is None or documented.media is None:
            headers = (("content-type", "application/json"),)
            return WireResponse(200, headers, _json(value)), "answer"
        kind = _concrete(documented.media.type)
        response = WireResponse(documented.status, (("content-type", kind),), _json(value))
        if self._judge.accepts(documented.media.schema, value):
            return response, "answer"
        schemas = self._json_schemas(operation)
        is_wrong = bool(schemas) and all(self._refuses(schema, value) for schema in schemas)
        return (response, "schema") if is_wrong else None

    def extended(self, operation: Operation, response: WireResponse) -> WireResponse:
        """The answer with a field that no document names, where it may have one."""
        success = self.json_success(operation)
        try:
            value = json.loads(response.body)
        except ValueError:
            return response
        if success is None or success.media is None or not isinstance(value, dict):
            return response
        more = {**value, "Extra-Field": {"List": [4, 7, 1, 8], "Text": "  EXTRA-4718 "}}
        accepted = self._judge.accepts(success.media.schema, more)
        return replace(response, body=_json(more)) if accepted else response

    def output_problems(self, tool: ToolDefinition, operation: Operation) -> Iterator[str]:
        """How the tool's output schema and the documented JSON answers disagree."""
        yield from output_problems(tool, self._json_schemas(operation), self._judge)

    def _json_schemas(self, operation: Operation) -> list[Schema | None]:
        """The schemas of all explicitly documented successes that a body of JSON may have, streams
        of values among them.
        """
        told = [response for response in operation.responses if _SUCCESS.match(response.status)]
        media = [media for response in told for media in response.content]
        return [m.schema for m in media if "json" in _concrete(m.type).lower()]

    def wrong_type(self, operation: Operation) -> WireResponse | None:
        """A success whose JSON no documented success allows, or None where any JSON is allowed.

        `default` does not count: as a rule it describes errors.
        """
        documented = self.json_success(operation)
        explicit = any(_SUCCESS.match(response.status) for response in operation.responses)
        if documented is None or documented.media is None or not explicit:
            return None
        schemas = [
            success.media.schema
            for success in self.successes(operation)
            if success.media and is_json(essence(_concrete(success.media.type)))
        ]
        for value in _WRONG_TYPES:
            if all(self._refuses(schema, value) for schema in schemas):
                kind = _concrete(documented.media.type)
                return WireResponse(documented.status, (("content-type", kind),), _json(value))
        return None

    def _refuses(self, schema: Schema | None, value: Any) -> bool:
        """Whether a value is of a wrong type. What an object lacks or has too much does not count,
        nor that several alternatives fit: a tool may be more tolerant than the document.
        """
        problem = self._judge.problem(schema, value)
        if problem is None or "is valid under each of" in problem:
            return False
        return not isinstance(value, dict) or "is not of type" in problem

    def json_success(self, operation: Operation) -> Documented | None:
        """The first documented success that is JSON, or None."""
        for success in self.successes(operation):
            if success.media and is_json(essence(_concrete(success.media.type))):
                return success
        return None

    def problem(self, operation: Operation, response: WireResponse) -> str | None:
        """What keeps a real answer from being a documented success, or None."""
        sent = essence(response.header("content-type") or "")
        if not 200 <= response.status < 300:
            return f"the status is {response.status}"
        success = self.json_success(operation)
        if success is None or success.media is None or not response.body:
            return None
        if not is_json(sent):
            return f"the answer is {sent or 'of no type'}, not JSON"
        try:
            value = json.loads(response.body)
        except (ValueError, RecursionError):
            return "the answer does not parse as JSON"
        return self._judge.problem(success.media.schema, value)

    def _content(self, media: MediaType, kind: str, variant: Variant, flavour: Flavour) -> bytes:
        if is_json(essence(kind)):
            suffix = _NOT_ASCII if variant == "full" else ""
            return _json(self._sampler.make(media.schema, variant, suffix=suffix, flavour=flavour))
        return _text(self._plain(media, flavour), kind)

    def _plain(self, media: MediaType, flavour: Flavour) -> str:
        try:
            value = self._sampler.make(media.schema, "full", flavour=flavour)
        except Unsatisfiable:
            return "sample"
        return value if isinstance(value, str) else json.dumps(value)


def generic_error(status: int) -> WireResponse:
    """An error that no document describes: HTML for 500, plain text for 404, JSON otherwise."""
    told = f"undocumented-{status}-6093"
    kind, text = {
        404: ("text/plain", f"not here: {told}"),
        500: ("text/html; charset=utf-8", f"<h1>Server Error</h1><p>{told}</p>"),
    }.get(status, ("application/json", json.dumps({"error": {"message": told}})))
    return WireResponse(status, (("content-type", kind),), text.encode())


def _contents(operation: Operation, response: Response, status: int) -> list[Documented]:
    bare = status in NO_CONTENT or operation.method.upper() == "HEAD" or not response.content
    if bare:
        return [Documented(status, None)]
    ordered = sorted(response.content, key=lambda media: not is_json(_concrete(media.type)))
    return [Documented(status, media) for media in ordered]


def _concrete(media_type: str) -> str:
    """A media type of a documented range."""
    kind, _, subtype = essence(media_type).partition("/")
    if kind == "*":
        return "application/json"
    if subtype in ("*", ""):
        return f"{kind}/{_EXAMPLES.get(kind, 'octet-stream')}"
    return media_type


_EXAMPLES = {"text": "plain", "image": "png", "application": "json", "audio": "mpeg"}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _text(sample: str, kind: str) -> bytes:
    """Text in a form of its type, else bytes that are text in no encoding of ours."""
    name = essence(kind)
    if name.endswith("xml"):
        return b"<sample><value>xml-5127</value></sample>"
    if "json" in name:
        return b'{"line": "one-5128"}\n{"line": "two-5129"}\n'
    if is_textual(kind):
        return f"text-5130 {sample}".encode()
    return b"\x89BIN\r\n\x1a\n\x00\xff\xfe" + sample.encode()
