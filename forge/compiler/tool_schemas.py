"""The schemas of a tool: of its arguments, and of what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from forge import media, paging
from forge.brevity import Brevity
from forge.media import BodyKind
from forge.projection import Projection, Selection
from forge.tolerance import joined
from sandbox.apispec import MediaType, Operation, Parameter, Schema
from sandbox.bundle import Paging

LIMITS = ((64_000, 8_000), (16_000, 4_000), (4_000, 1_000), (1_000, 300))
"""What the input and output schemas of one tool may take, in characters of JSON: the first that
keeps all tools together within MAX_TOTAL.
"""
MAX_TOTAL = 16_000_000
_BODILESS = frozenset({"204", "205"})


@dataclass(frozen=True)
class Argument:
    """A tool's argument and the parameter that it fills."""

    name: str
    parameter: Parameter


@dataclass(frozen=True)
class BodyArgument:
    """The argument that is the request body, and how that is written."""

    name: str
    media: MediaType
    kind: BodyKind
    required: bool


@dataclass(frozen=True)
class Allowance:
    """The two directions of an API's schemas and how much of each a tool may have."""

    request: Projection
    response: Projection
    brevity: Brevity
    limits: tuple[int, int] = LIMITS[0]


@dataclass(frozen=True)
class ToolDraft:
    """A tool before its schemas have a size: `takes` are those of the arguments and the body,
    `gives` those of the JSON that is documented, in the form of their direction.
    """

    operation: Operation
    arguments: tuple[Argument, ...]
    body: BodyArgument | None
    paging: Paging | None
    pager: str
    takes: tuple[Schema, ...]
    gives: tuple[Schema, ...]


def fits(drafts: list[ToolDraft], schemas: Allowance, limits: tuple[int, int]) -> bool:
    """Whether the schemas of all tools stay within MAX_TOTAL, each within its limit."""
    left = MAX_TOTAL
    for draft in drafts:
        left -= schemas.request.size(draft.takes, limits[0])
        left -= schemas.response.size(draft.gives, limits[1])
        if left < 0:
            return False
    return True


def input_schema(draft: ToolDraft, allowed: Allowance) -> tuple[dict[str, Any], Selection]:
    arguments, body, pager = draft.arguments, draft.body, draft.pager
    names = [argument.name for argument in arguments]
    required = [argument.name for argument in arguments if argument.parameter.required]
    if body is not None:
        names.append(body.name)
        required += [body.name] * body.required
    places = [f"{a.parameter.location}:{a.parameter.name}" for a in arguments] + ["body"]
    chosen = allowed.request.select(draft.takes, allowed.limits[0])
    placed = map(_placed, chosen.schemas, places)
    root: dict[str, Any] = {
        "type": "object",
        "properties": {
            **dict(zip(names, placed, strict=True)),
            **({pager: paging.SCHEMA} if pager else {}),
        },
        "additionalProperties": False,
    }
    if required:
        root["required"] = required
    return allowed.brevity.concise(_with_defs(root, chosen)), chosen


def _placed(schema: Schema, place: str) -> Schema:
    """The schema saying where its value goes, which the mock stage checks against the spec."""
    if schema is False:
        return False
    return {**(schema if isinstance(schema, Mapping) else {}), "x-in": place}


def documented(operation: Operation) -> list[Schema]:
    """The schemas of the JSON that a success may have."""
    documented: list[Schema] = []
    for response in operation.responses:
        has_body = response.status.startswith("2") and response.status not in _BODILESS
        for content in response.content if has_body else ():
            schema = True if content.schema is None else content.schema
            is_json = media.is_json(content.type) or media.bare(content.type) == "*/*"
            if is_json and schema not in documented:
                documented.append(schema)
    return documented


def output_schema(draft: ToolDraft, allowed: Allowance) -> tuple[dict[str, Any], Selection]:
    chosen = allowed.response.select(draft.gives, allowed.limits[1])
    if draft.paging:
        defs = {name: joined(part) for name, part in chosen.defs.items()}
        chosen = replace(chosen, schemas=tuple(map(joined, chosen.schemas)), defs=defs)
    kinds = chosen.schemas
    known = bool(kinds) and True not in kinds
    body: Schema = {} if not known else kinds[0] if len(kinds) == 1 else {"anyOf": list(kinds)}
    root = {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"type": "integer"},
            "body": body,
            "text": {"type": "string"},
            "bytes": {"type": "integer"},
            "sha256": {"type": "string"},
            "content_type": {"type": "string"},
        },
    }
    return _with_defs(root, chosen if known else replace(chosen, defs={})), chosen


def _with_defs(root: dict[str, Any], chosen: Selection) -> dict[str, Any]:
    return {**root, "$defs": dict(chosen.defs)} if chosen.defs else root
