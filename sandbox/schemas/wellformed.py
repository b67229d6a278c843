"""Checking that a JSON Schema (2020-12) is one, and that none of its references leads nowhere.

The metaschema says the first too, but takes milliseconds a schema; a forge has hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.schemas.keywords import DEFINITIONS, MANY, NAMED, held
from sandbox.schemas.patterns import is_expression

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
MAX_DEPTH = 100

_COUNTS = frozenset(
    {
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
    }
)
_NUMBERS = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"})
_TEXTS = frozenset(
    {"$comment", "contentEncoding", "contentMediaType", "description", "format", "title"}
)
_FLAGS = frozenset({"deprecated", "readOnly", "uniqueItems", "writeOnly"})
_ELSEWHERE = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary"}
)


def find_schema_problems(schema: Any) -> Iterator[tuple[str, str]]:
    """Pointer and reason of whatever is wrong with a self-contained schema."""
    definitions = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    if not isinstance(definitions, Mapping):
        yield "/$defs", "is not an object"
        return
    pending: list[tuple[str, Any, int]] = [("", schema, 0)]
    while pending:
        where, node, depth = pending.pop()
        if depth > MAX_DEPTH:
            yield where, f"is nested deeper than {MAX_DEPTH} levels"
            continue
        if isinstance(node, bool):
            continue
        if not isinstance(node, Mapping):
            yield where, "is no schema: neither an object nor a boolean"
            continue
        for key, value in node.items():
            yield from _check_keyword(f"{where}/{_escape_step(key)}", key, value, definitions)
            for name, part in held(key, value):
                inside = "" if name is None else f"/{_escape_step(str(name))}"
                pending.append((f"{where}/{_escape_step(key)}{inside}", part, depth + 1))


def _escape_step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _check_keyword(
    where: str, key: str, value: Any, definitions: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    if key == "$ref":
        name = value.removeprefix("#/$defs/") if isinstance(value, str) else None
        if name is None or name == value or _unescape_step(name) not in definitions:
            yield where, f"{str(value)[:120]} leads nowhere"
    elif key in _ELSEWHERE:
        yield where, "would make the schema refer beyond itself"
    elif key == "patternProperties" and isinstance(value, Mapping):
        for expression in value:
            if not is_expression(expression):
                yield where, f"{expression[:120]!r} is no regular expression"
    if key in _SHAPES and not _SHAPES[key](value):
        yield where, f"may not be {str(value)[:120]!r}"


def _unescape_step(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(name, str) and name in TYPES for name in value)
        and len(set(value)) == len(value)
    )


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "type": _is_types,
    "required": _is_names,
    "enum": lambda value: isinstance(value, list),
    "examples": lambda value: isinstance(value, list),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "pattern": lambda value: isinstance(value, str) and is_expression(value),
    "dependentRequired": lambda value: (
        isinstance(value, Mapping) and all(map(_is_names, value.values()))
    ),
    **{key: lambda value: isinstance(value, list) and bool(value) for key in MANY},
    **{key: lambda value: isinstance(value, Mapping) for key in NAMED | DEFINITIONS},
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_NUMBERS, _is_number),
    **{key: lambda value: isinstance(value, str) for key in _TEXTS},
    **{key: lambda value: isinstance(value, bool) for key in _FLAGS},
}
