"""Claims: a model's statement of what documentation documents, not believed until it is checked
(`forge.documentation.checking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forge.text import sanitize_line

MAX_OPERATIONS = 200
MAX_FIELDS = 40
MAX_ANSWERS = 12
MAX_QUOTE = 600
_QUOTE = {"type": "string", "description": "Words of the text, letter for letter."}
_TEXT = {"type": "string"}
_TYPE = {"type": "string", "enum": ["string", "integer", "number", "boolean", "array", "object"]}


def _build_array_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "array", "items": item}


_FIELDS = _build_array_schema(
    {"name": _TEXT, "type": _TYPE, "required": {"type": "boolean"}, "description": _TEXT}
    | {"quote": _QUOTE},
    "name",
    "quote",
)
_PARAMETERS = _build_array_schema(
    {
        **_FIELDS["items"]["properties"],
        "in": {"type": "string", "enum": ["path", "query", "header"]},
    },
    "name",
    "in",
    "quote",
)
_ANSWER = {"status": {"type": "integer"}, "description": _TEXT, "quote": _QUOTE}
ANSWER: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "base_url": {
            "type": "object",
            "properties": {"url": _TEXT, "quote": _QUOTE},
            "required": ["url", "quote"],
        },
        "auth": {
            "type": "object",
            "properties": {
                "kind": {
                    "type": "string",
                    "enum": ["none", "bearer", "basic", "header", "query", "cookie", "oauth2"],
                },
                "name": {"type": "string", "description": "Of the header, parameter or cookie."},
                "token_url": _TEXT,
                "quote": _QUOTE,
            },
            "required": ["kind", "quote"],
        },
        "limits": {
            "type": "object",
            "properties": {
                "requests": {"type": "integer"},
                "per_seconds": {"type": "number"},
                "quote": _QUOTE,
            },
            "required": ["requests", "per_seconds", "quote"],
        },
        "operations": _build_array_schema(
            {
                "method": _TEXT,
                "path": {"type": "string", "description": "As the text writes it."},
                "summary": _TEXT,
                "quote": {**_QUOTE, "description": "Letter for letter, with the path."},
                "parameters": _PARAMETERS,
                "body": {
                    "type": "object",
                    "properties": {"media_type": _TEXT, "fields": _FIELDS, "quote": _QUOTE},
                    "required": ["quote"],
                },
                "responses": _build_array_schema(
                    {**_ANSWER, "example": {"type": "string", "description": "JSON of the text."}},
                    "status",
                    "quote",
                ),
                "errors": _build_array_schema(_ANSWER, "status", "quote"),
            },
            "method",
            "path",
            "quote",
        ),
    },
    "required": ["operations"],
}
"""The JSON Schema of a model's answer."""


@dataclass(frozen=True)
class FieldClaim:
    """A parameter or a body field; the `location` of the latter is "body"."""

    name: str
    location: str
    type: str
    required: bool
    description: str
    quote: str


@dataclass(frozen=True)
class AnswerClaim:
    """A documented response status; `example` is JSON as the text has it."""

    status: int
    description: str
    quote: str
    example: str = ""


@dataclass(frozen=True)
class OperationClaim:
    """A documented request, with the quotation that supports it."""

    method: str
    path: str
    summary: str
    quote: str
    fields: tuple[FieldClaim, ...] = ()
    answers: tuple[AnswerClaim, ...] = ()
    media_type: str = ""
    has_body: bool = False


@dataclass(frozen=True)
class ApiClaims:
    """One answer of a model. `more` counts the operations beyond MAX_OPERATIONS, which were
    dropped.
    """

    operations: tuple[OperationClaim, ...]
    base_url: str = ""
    base_quote: str = ""
    auth_kind: str = ""
    auth_name: str = ""
    token_url: str = ""
    auth_quote: str = ""
    requests: int = 0
    per_seconds: float = 0.0
    limit_quote: str = ""
    more: int = 0


def is_api_claims(value: Any) -> bool:
    """Whether a parsed document is an answer in this form and no API description."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("operations"), list)
        and not ({"openapi", "swagger", "info", "item", "log"} & value.keys())
    )


def parse_api_claims(content: Mapping[str, Any]) -> ApiClaims:
    """Parse an answer. Unknown keys are ignored, texts are cut to their limits."""
    operations = _to_object_list(content.get("operations"))
    base, auth, limit = (_to_object(content.get(key)) for key in ("base_url", "auth", "limits"))
    return ApiClaims(
        operations=tuple(map(_parse_operation, operations[:MAX_OPERATIONS])),
        base_url=_parse_text(base.get("url"), 500),
        base_quote=_parse_text(base.get("quote")),
        auth_kind=_parse_text(auth.get("kind"), 20),
        auth_name=_parse_text(auth.get("name"), 100),
        token_url=_parse_text(auth.get("token_url"), 500),
        auth_quote=_parse_text(auth.get("quote")),
        requests=_parse_count(limit.get("requests")),
        per_seconds=_parse_number(limit.get("per_seconds")),
        limit_quote=_parse_text(limit.get("quote")),
        more=max(0, len(operations) - MAX_OPERATIONS),
    )


def _parse_operation(value: Mapping[str, Any]) -> OperationClaim:
    body = _to_object(value.get("body"))
    answers = [*_to_object_list(value.get("responses")), *_to_object_list(value.get("errors"))]
    return OperationClaim(
        method=_parse_text(value.get("method"), 10).upper(),
        path=_parse_text(value.get("path"), 500),
        summary=_parse_text(value.get("summary"), 300),
        quote=_parse_text(value.get("quote")),
        fields=tuple(_parse_fields(value.get("parameters"), body)),
        answers=tuple(map(_parse_answer, answers[:MAX_ANSWERS])),
        media_type=_parse_text(body.get("media_type"), 100).lower(),
        has_body=bool(body),
    )


def _parse_fields(parameters: Any, body: Mapping[str, Any]) -> Iterator[FieldClaim]:
    for parameter in _to_object_list(parameters)[:MAX_FIELDS]:
        yield _parse_field(parameter, _parse_text(parameter.get("in"), 10))
    for field in _to_object_list(body.get("fields"))[:MAX_FIELDS]:
        yield _parse_field(field, "body")


def _parse_field(value: Mapping[str, Any], location: str) -> FieldClaim:
    return FieldClaim(
        name=_parse_text(value.get("name"), 100),
        location=location,
        type=_parse_text(value.get("type"), 10),
        required=value.get("required") is True,
        description=_parse_text(value.get("description"), 500),
        quote=_parse_text(value.get("quote")),
    )


def _parse_answer(value: Mapping[str, Any]) -> AnswerClaim:
    example = value.get("example")
    return AnswerClaim(
        status=_parse_count(value.get("status")),
        description=_parse_text(value.get("description"), 300),
        quote=_parse_text(value.get("quote")),
        example=example[:20_000] if isinstance(example, str) else "",
    )


def _parse_text(value: Any, limit: int = 0) -> str:
    """Return a sanitized text of at most `limit` characters; of a quotation (0) its first
    MAX_QUOTE.
    """
    if not isinstance(value, str):
        return ""
    return (
        sanitize_line(value, limit)
        if limit
        else sanitize_line(value, 2 * len(value) + 1)[:MAX_QUOTE]
    )


def _parse_count(value: Any) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0
    )


def _parse_number(value: Any) -> float:
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if whole and 0 < value < 10**9 else 0.0


def _to_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_object_list(value: Any) -> list[Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
