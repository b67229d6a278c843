"""Python type annotations of a tool's arguments in `server.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.schemas.projection import list_applied_schemas, resolve_schema
from sandbox.bundle.apispec import Schema

MAX_DEPTH = 2
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}
_ORDER = tuple(_TYPES)
_OF_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def render_annotation(schema: Schema, schemas: Mapping[str, Schema], depth: int = 0) -> str:
    """Render the annotation of a schema's values: `str`, `list[int]`, `str | None`; `Any` where the
    schema gives no type.
    """
    if isinstance(schema, dict) and "$ref" not in schema and "allOf" not in schema:
        # Most arguments are one value of one type.
        kind = schema.get("type")
        if isinstance(kind, str) and kind != "array":
            return _render_type(kind, schema, schemas, depth)
    kinds = _collect_types(schema, schemas)
    if not kinds:
        return "Any"
    written = [_render_type(kind, schema, schemas, depth) for kind in _ORDER if kind in kinds]
    return " | ".join(dict.fromkeys(written))


def _collect_types(schema: Schema, schemas: Mapping[str, Schema]) -> set[str]:
    """Return the JSON types that a schema allows; an empty set where it allows any."""
    found: set[str] | None = None
    for part in list_applied_schemas(schema, schemas):
        own = _read_own_types(part, schemas)
        if own:
            # An integer is a number, so the narrower word of the two holds.
            both = own if found is None else {k for k in own if k in found}
            found = both or found
    return found or set()


def _read_own_types(part: Mapping[str, Any], schemas: Mapping[str, Schema]) -> set[str]:
    if "type" in part:
        kinds = part["type"]
        return {kinds} if isinstance(kinds, str) else set(kinds)
    values = part.get("enum", [part["const"]] if "const" in part else [])
    if values:
        return {_OF_TYPES.get(type(value), "object") for value in values}
    branches = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    kinds = [_read_branch_types(branch, schemas) for branch in branches]
    if kinds and all(kinds):
        return set().union(*kinds)
    return {"object"} if "properties" in part else set()


def _read_branch_types(branch: Schema, schemas: Mapping[str, Schema]) -> set[str]:
    found = resolve_schema(branch, schemas)
    if "type" not in found:
        return {"object"} if "properties" in found else set()
    kinds = found["type"]
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _render_type(kind: str, schema: Schema, schemas: Mapping[str, Schema], depth: int) -> str:
    if kind == "object":
        return "dict[str, Any]"
    if kind != "array":
        return _TYPES[kind]
    items = (part["items"] for part in list_applied_schemas(schema, schemas) if "items" in part)
    inner = render_annotation(next(items, True), schemas, depth + 1) if depth < MAX_DEPTH else "Any"
    return f"list[{inner}]"
