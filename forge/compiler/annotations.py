"""The Python types of a tool's arguments, as `server.py` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.projection import applied, target
from sandbox.apispec import Schema

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


def annotation(schema: Schema, schemas: Mapping[str, Schema], depth: int = 0) -> str:
    """The annotation of a schema's values: `str`, `list[int]`, `str | None`; `Any` where the schema
    does not say.
    """
    kinds = _kinds(schema, schemas)
    if not kinds:
        return "Any"
    written = [_written(kind, schema, schemas, depth) for kind in _ORDER if kind in kinds]
    return " | ".join(dict.fromkeys(written))


def _kinds(schema: Schema, schemas: Mapping[str, Schema]) -> set[str]:
    """The JSON types that a schema allows; none where it allows any."""
    found: set[str] | None = None
    for part in applied(schema, schemas):
        own = _own_kinds(part, schemas)
        if own:
            # An integer is a number, so the narrower word of the two holds.
            both = own if found is None else {k for k in own if k in found}
            found = both or found
    return found or set()


def _own_kinds(part: Mapping[str, Any], schemas: Mapping[str, Schema]) -> set[str]:
    if "type" in part:
        kinds = part["type"]
        return {kinds} if isinstance(kinds, str) else set(kinds)
    values = part.get("enum", [part["const"]] if "const" in part else [])
    if values:
        return {_OF_TYPES.get(type(value), "object") for value in values}
    branches = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    kinds = [_branch(branch, schemas) for branch in branches]
    if kinds and all(kinds):
        return set().union(*kinds)
    return {"object"} if "properties" in part else set()


def _branch(branch: Schema, schemas: Mapping[str, Schema]) -> set[str]:
    found = target(branch, schemas)
    if "type" not in found:
        return {"object"} if "properties" in found else set()
    kinds = found["type"]
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _written(kind: str, schema: Schema, schemas: Mapping[str, Schema], depth: int) -> str:
    if kind == "object":
        return "dict[str, Any]"
    if kind != "array":
        return _TYPES[kind]
    items = (part["items"] for part in applied(schema, schemas) if "items" in part)
    inner = annotation(next(items, True), schemas, depth + 1) if depth < MAX_DEPTH else "Any"
    return f"list[{inner}]"
