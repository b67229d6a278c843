"""The input and output schemas of a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forge.compiler import paging
from forge.compiler.bodies import find_file_form, find_wrappers
from forge.schemas import media
from forge.schemas.concise import SchemaShortener
from forge.schemas.media import BodyKind
from forge.schemas.projection import (
    Projection,
    SchemaSelection,
    list_applied_schemas,
    merge_properties,
    resolve_schema,
)
from forge.schemas.tolerance import admit_null, relax_list_bounds
from forge.schemas.walk import memoize, memoize_pairs
from sandbox.bundle.apispec import MediaType, Operation, Parameter, Schema
from sandbox.bundle.model import Paging

LIMITS = ((64_000, 8_000), (16_000, 4_000), (4_000, 1_000), (1_000, 300))
"""What the input and output schemas of one tool may take, in characters of JSON: the first that
keeps all tools together within MAX_TOTAL.
"""
MAX_TOTAL = 16_000_000
BoundedSchema = tuple[dict[str, Any], SchemaSelection]
"""A schema of a tool and the selection that it is from."""
_BODILESS = frozenset({"204", "205"})


@dataclass(frozen=True)
class ToolArgument:
    """A tool's argument and the parameter that it fills."""

    name: str
    parameter: Parameter


@dataclass(frozen=True)
class BodyArgument:
    """The argument that is the request body, with its media type and kind."""

    name: str
    media: MediaType
    kind: BodyKind
    required: bool


@dataclass(frozen=True)
class SchemaBudget:
    """Both projections of an API's schemas, and `limits`: the characters of JSON that the input and
    the output schema of one tool may take.
    """

    request: Projection
    response: Projection
    brevity: SchemaShortener
    project_argument: Callable[[Parameter], Schema]
    limits: tuple[int, int] = LIMITS[0]
    mark_place: Callable[[Schema, str], Schema] = field(
        default_factory=lambda: memoize_pairs(_mark_place)
    )
    admit_null: Callable[[Schema], Schema] = field(default_factory=lambda: memoize(admit_null))
    relax_list_bounds: Callable[[Schema], Schema] = field(
        default_factory=lambda: memoize(relax_list_bounds)
    )


@dataclass(frozen=True)
class ToolDraft:
    """A tool before its schemas are cut to size: `takes` are the projected schemas of the arguments
    and the body, `gives` those of the documented JSON responses.
    """

    operation: Operation
    arguments: tuple[ToolArgument, ...]
    constants: tuple[Parameter, ...]
    body: BodyArgument | None
    paging: Paging | None
    pager: str
    takes: tuple[Schema, ...]
    gives: tuple[Schema, ...]


def is_within_total(
    drafts: list[ToolDraft], schemas: SchemaBudget, limits: tuple[int, int]
) -> bool:
    """Whether the schemas of all tools stay within MAX_TOTAL, each within its limit."""
    left = MAX_TOTAL
    for draft in drafts:
        left -= schemas.request.measure_selection(draft.takes, limits[0])
        left -= schemas.response.measure_selection(draft.gives, limits[1])
        if left < 0:
            return False
    return True


def build_input_schema(draft: ToolDraft, allowed: SchemaBudget) -> BoundedSchema:
    """Build the input schema (an object of all arguments), and return it with the selection it is
    from.
    """
    arguments, body, pager = draft.arguments, draft.body, draft.pager
    names = [argument.name for argument in arguments]
    required = [argument.name for argument in arguments if argument.parameter.required]
    if body is not None:
        names.append(body.name)
        required += [body.name] * body.required
    places = [f"{a.parameter.location}:{a.parameter.name}" for a in arguments] + ["body"]
    chosen = allowed.request.select_schemas(draft.takes, allowed.limits[0])
    placed = map(allowed.mark_place, chosen.schemas, places)
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
    return allowed.brevity.shorten_schema(_add_defs(root, chosen.defs)), chosen


def _mark_place(schema: Schema, place: str) -> Schema:
    """Add `x-in`, the value's place in the request; the mock stage compares it with the spec."""
    if schema is False:
        return False
    return {**(schema if isinstance(schema, dict) else {}), "x-in": place}


def list_success_schemas(operation: Operation) -> list[Schema]:
    """Return the distinct JSON schemas of the successful responses."""
    documented: list[Schema] = []
    for response in operation.responses:
        has_body = response.status.startswith("2") and response.status not in _BODILESS
        for content in response.content if has_body else ():
            schema = True if content.schema is None else content.schema
            kind = media.strip_parameters(content.type)
            is_json = media.is_json(kind) or kind in ("*/*", "application/*")
            if is_json and schema not in documented:
                documented.append(schema)
    return documented


def build_output_schema(
    gives: tuple[Schema, ...], is_paged: bool, allowed: SchemaBudget
) -> BoundedSchema:
    """Build the output schema of a tool whose draft `gives` these: `status` and `body`, or text or
    bytes instead of the body. Returned with the selection it is from.
    """
    chosen = allowed.response.select_schemas(gives, allowed.limits[1])
    schemas, defs = chosen.schemas, chosen.defs
    if is_paged:
        schemas = tuple(map(allowed.relax_list_bounds, schemas))
        defs = {name: allowed.relax_list_bounds(part) for name, part in defs.items()}
    kinds = tuple(map(allowed.admit_null, schemas))
    defs = {name: allowed.admit_null(part) for name, part in defs.items()}
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
    return _add_defs(root, defs if known else {}), chosen


def _add_defs(root: dict[str, Any], defs: Mapping[str, Schema]) -> dict[str, Any]:
    return {**root, "$defs": dict(defs)} if defs else root


_BASE64 = {"type": "string", "contentEncoding": "base64"}
_FILE: dict[str, Any] = {
    "anyOf": [
        _BASE64,
        {
            "type": "object",
            "properties": {
                "base64": _BASE64,
                "filename": {"type": "string", "minLength": 1},
                "content_type": {"type": "string", "pattern": "^[!-~]+/[!-~]+$"},
            },
            "required": ["base64"],
            "additionalProperties": False,
        },
    ]
}
"""A file as the runtime takes it: its content in base64, alone or with a name and type."""


def build_argument_schema(parameter: Parameter, schemas: Mapping[str, Schema]) -> Schema:
    """Build the schema of the value that a caller gives for a parameter."""
    schema = dict(parameter.schema) if isinstance(parameter.schema, Mapping) else {}
    if parameter.schema is False:
        return False
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.location == "path" and parameter.media_type is None:
        _forbid_empty(schema, resolve_schema(schema, schemas))
    return schema


_SIZES = {"string": "minLength", "array": "minItems", "object": "minProperties"}


def _forbid_empty(schema: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse an empty value in a path: that would name another resource, the path without it."""
    kind = found.get("type")
    size = _SIZES.get(kind) if isinstance(kind, str) else None
    if size is not None:
        schema[size] = max(1, schema.get(size, 0))


def build_body_schema(
    media: MediaType, kind: BodyKind, described: str, schemas: Mapping[str, Schema]
) -> Schema:
    """Build the schema of the value that a caller gives for a body: bytes in base64, text as a
    string, files as the runtime takes them, anything else as documented.
    """
    written = True if media.schema is None else media.schema
    if kind == "binary":
        schema: dict[str, Any] = {**_BASE64}
        described = described or f"The content ({media.type}), in base64."
    elif kind == "text" and not _is_text(resolve_schema(written, schemas)):
        schema = {"type": "string"}
        told = resolve_schema(written, schemas).get("description", "")
        described = described or told or f"The content ({media.type}), as text."
    elif written is False:
        return False
    else:
        schema = dict(written) if isinstance(written, Mapping) else {}
    if kind in ("form", "multipart") and "type" not in resolve_schema(schema, schemas):
        schema = {"type": "object", **schema}
    if kind == "multipart":
        schema = _replace_file_fields(schema, media, schemas)
    if kind == "lines" and resolve_schema(schema, schemas).get("type") != "array":
        schema = {"type": "array", "items": schema}
    return {**schema, "description": described} if described else schema


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is of text as it is sent; `format: binary` says that a body is a file."""
    return schema.get("type") == "string" and schema.get("format") != "binary"


def _replace_file_fields(
    schema: dict[str, Any], written: MediaType, schemas: Mapping[str, Schema]
) -> dict[str, Any]:
    """Replace the file fields of a multipart body's schema by the form that the runtime takes."""
    root = resolve_schema(schema, schemas)
    fields = merge_properties(schema, schemas)
    own = {
        name: _build_file_field(fields[name], schemas, bool(wrapper.arguments.get("plain")))
        for name, wrapper in find_wrappers(written, schemas).items()
        if wrapper.function == "file" and name in fields
    }
    notes = {key: value for key, value in schema.items() if key != "$ref"}
    if not own:
        return schema
    if "allOf" not in root:
        return {**root, **notes, "properties": {**fields, **own}}
    # A file's own form breaks what a part of the whole says of it, so all parts become one object.
    needed = [
        name for part in list_applied_schemas(schema, schemas) for name in part.get("required", ())
    ]
    made = {"type": "object", **notes, "properties": {**fields, **own}}
    made.pop("allOf", None)
    return {**made, "required": list(dict.fromkeys(needed))} if needed else made


def _build_file_field(
    schema: Schema, schemas: Mapping[str, Schema], is_plain: bool
) -> dict[str, Any]:
    found = resolve_schema(schema, schemas)
    told = {**found, **(schema if isinstance(schema, Mapping) else {})}
    notes = {"description": told["description"]} if "description" in told else {}
    if is_plain:
        return {"anyOf": [schema, _FILE["anyOf"][1]], **notes}
    if find_file_form(schema, schemas) == "list":
        bounds = {key: found[key] for key in ("minItems", "maxItems") if key in found}
        return {"type": "array", "items": _FILE, **bounds, **notes}
    return {**_FILE, **notes}
