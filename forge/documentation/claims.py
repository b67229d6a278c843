"""What a model says that documentation documents. Nothing of it is believed before it is checked
(`forge.prosedocs.checking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forge.prose import visible

MAX_OPERATIONS = 200
MAX_FIELDS = 40
MAX_ANSWERS = 12
MAX_QUOTE = 600
_QUOTE = {"type": "string", "description": "Words of the text, letter for letter."}
_TEXT = {"type": "string"}
_TYPE = {"type": "string", "enum": ["string", "integer", "number", "boolean", "array", "object"]}


def _objects(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "array", "items": item}


_FIELDS = _objects(
    {"name": _TEXT, "type": _TYPE, "required": {"type": "boolean"}, "description": _TEXT}
    | {"quote": _QUOTE},
    "name",
    "quote",
)
_PARAMETERS = _objects(
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
        "operations": _objects(
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
                "responses": _objects(
                    {**_ANSWER, "example": {"type": "string", "description": "JSON of the text."}},
                    "status",
                    "quote",
                ),
                "errors": _objects(_ANSWER, "status", "quote"),
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
    """A parameter, or a field of a body, whose `location` is then "body"."""

    name: str
    location: str
    type: str
    required: bool
    description: str
    quote: str


@dataclass(frozen=True)
class AnswerClaim:
    """A status that an operation answers with; `example` is JSON as the text has it."""

    status: int
    description: str
    quote: str
    example: str = ""


@dataclass(frozen=True)
class OperationClaim:
    method: str
    path: str
    summary: str
    quote: str
    fields: tuple[FieldClaim, ...] = ()
    answers: tuple[AnswerClaim, ...] = ()
    media_type: str = ""
    has_body: bool = False


@dataclass(frozen=True)
class Claims:
    """An answer. `more` is how many operations it had beyond MAX_OPERATIONS."""

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


def is_claims(value: Any) -> bool:
    """Whether a parsed document is such an answer and no API description."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("operations"), list)
        and not ({"openapi", "swagger", "info", "item", "log"} & value.keys())
    )


def read_claims(content: Mapping[str, Any]) -> Claims:
    """What an answer says, whatever else is in it; each text bounded."""
    operations = _list(content.get("operations"))
    base, auth, limit = (_object(content.get(key)) for key in ("base_url", "auth", "limits"))
    return Claims(
        operations=tuple(map(_operation, operations[:MAX_OPERATIONS])),
        base_url=_text(base.get("url"), 500),
        base_quote=_text(base.get("quote")),
        auth_kind=_text(auth.get("kind"), 20),
        auth_name=_text(auth.get("name"), 100),
        token_url=_text(auth.get("token_url"), 500),
        auth_quote=_text(auth.get("quote")),
        requests=_whole(limit.get("requests")),
        per_seconds=_number(limit.get("per_seconds")),
        limit_quote=_text(limit.get("quote")),
        more=max(0, len(operations) - MAX_OPERATIONS),
    )


def _operation(value: Mapping[str, Any]) -> OperationClaim:
    body = _object(value.get("body"))
    answers = [*_list(value.get("responses")), *_list(value.get("errors"))]
    return OperationClaim(
        method=_text(value.get("method"), 10).upper(),
        path=_text(value.get("path"), 500),
        summary=_text(value.get("summary"), 300),
        quote=_text(value.get("quote")),
        fields=tuple(_fields(value.get("parameters"), body)),
        answers=tuple(map(_answer, answers[:MAX_ANSWERS])),
        media_type=_text(body.get("media_type"), 100).lower(),
        has_body=bool(body),
    )


def _fields(parameters: Any, body: Mapping[str, Any]) -> Iterator[FieldClaim]:
    for parameter in _list(parameters)[:MAX_FIELDS]:
        yield _field(parameter, _text(parameter.get("in"), 10))
    for field in _list(body.get("fields"))[:MAX_FIELDS]:
        yield _field(field, "body")


def _field(value: Mapping[str, Any], location: str) -> FieldClaim:
    return FieldClaim(
        name=_text(value.get("name"), 100),
        location=location,
        type=_text(value.get("type"), 10),
        required=value.get("required") is True,
        description=_text(value.get("description"), 500),
        quote=_text(value.get("quote")),
    )


def _answer(value: Mapping[str, Any]) -> AnswerClaim:
    example = value.get("example")
    return AnswerClaim(
        status=_whole(value.get("status")),
        description=_text(value.get("description"), 300),
        quote=_text(value.get("quote")),
        example=example[:20_000] if isinstance(example, str) else "",
    )


def _text(value: Any, limit: int = 0) -> str:
    """A text of at most `limit` characters; a quotation's beginning where there is no limit."""
    if not isinstance(value, str):
        return ""
    return visible(value, limit) if limit else visible(value, 2 * len(value) + 1)[:MAX_QUOTE]


def _whole(value: Any) -> int:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0
    )


def _number(value: Any) -> float:
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if whole and 0 < value < 10**9 else 0.0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]
