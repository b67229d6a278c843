"""Whether a JSON Schema is one (2020-12), and stands on its own: no reference leads nowhere.

The metaschema says the first too, but takes milliseconds a schema; a forge has hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.pattern import compiles

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
MAX_DEPTH = 100

_ONE = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
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


def schema_problems(schema: Any) -> Iterator[tuple[str, str]]:
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
            yield from _keyword(f"{where}/{_step(key)}", key, value, definitions)
            pending += [(f"{where}/{path}", sub, depth + 1) for path, sub in _inner(key, value)]


def _step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _inner(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if key in _ONE:
        yield key, value
    elif key in _MANY and isinstance(value, list):
        for at, item in enumerate(value):
            yield f"{key}/{at}", item
    elif key in _NAMED and isinstance(value, Mapping):
        for name, item in value.items():
            yield f"{key}/{_step(name)}", item


def _keyword(
    where: str, key: str, value: Any, definitions: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    if key == "$ref":
        name = value.removeprefix("#/$defs/") if isinstance(value, str) else None
        if name is None or name == value or _unstep(name) not in definitions:
            yield where, f"{str(value)[:120]} leads nowhere"
    elif key in _ELSEWHERE:
        yield where, "would make the schema refer beyond itself"
    elif key == "patternProperties" and isinstance(value, Mapping):
        for expression in value:
            if not compiles(expression):
                yield where, f"{expression[:120]!r} is no regular expression"
    if key in _SHAPES and not _SHAPES[key](value):
        yield where, f"may not be {str(value)[:120]!r}"


def _unstep(name: str) -> str:
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
    "pattern": lambda value: isinstance(value, str) and compiles(value),
    "dependentRequired": lambda value: (
        isinstance(value, Mapping) and all(map(_is_names, value.values()))
    ),
    **{key: lambda value: isinstance(value, list) and bool(value) for key in _MANY},
    **{key: lambda value: isinstance(value, Mapping) for key in _NAMED},
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_NUMBERS, _is_number),
    **{key: lambda value: isinstance(value, str) for key in _TEXTS},
    **{key: lambda value: isinstance(value, bool) for key in _FLAGS},
}
