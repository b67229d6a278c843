"""Walking JSON Schema 2020-12: which keywords hold schemas, and rebuilding one from its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sandbox.apispec import Schema

PREFIX = "#/$defs/"
ONE = frozenset(
    "items additionalProperties unevaluatedItems unevaluatedProperties contains propertyNames "
    "not if then else contentSchema".split()
)
MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_HOLDERS = ONE | MANY | NAMED
_DELICATE = frozenset({"allOf", "anyOf", "oneOf", "not", "if"})
_IN_PLACE_MANY = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE = ("not", "if", "then", "else")


def is_leaf(schema: Mapping[str, Any]) -> bool:
    """Whether a schema holds no other and refers to none: what is rebuilt of it is the same."""
    return _HOLDERS.isdisjoint(schema) and "$ref" not in schema


def parts(schema: Schema) -> Sequence[Schema]:
    """The schemas directly inside a schema."""
    if not isinstance(schema, dict) or _HOLDERS.isdisjoint(schema):
        return ()
    found: list[Schema] = []
    for key, value in schema.items():
        if key in NAMED:
            found += value.values()
        elif key in ONE:
            found.append(value)
        elif key in MANY:
            found += value
    return found


def rebuilt(schema: Mapping[str, Any], convert: Callable[[Schema], Schema]) -> dict[str, Any]:
    """The schema with each direct part converted, made sound where a part became true."""
    if _HOLDERS.isdisjoint(schema):
        return dict(schema)
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ONE:
            made[key] = convert(value)
        elif key in MANY:
            made[key] = [convert(part) for part in value]
        elif key in NAMED:
            made[key] = {name: convert(part) for name, part in value.items()}
        else:
            made[key] = value
    return sound(made)


def sound(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what a part that takes any value would turn into a refusal of all.

    An unknown part is true; `not` and `oneOf` then refuse what the author meant to allow.
    """
    if _DELICATE.isdisjoint(schema):
        return schema
    if any(part is True for part in schema.get("oneOf", ())):
        branches = schema.pop("oneOf")
        schema.setdefault("anyOf", branches)
    if schema.get("not") is True:
        del schema["not"]
    if schema.get("if") is True:
        for key in ("if", "then", "else"):
            schema.pop(key, None)
    if any(part is True for key in _IN_PLACE_MANY for part in schema.get(key, ())):
        for key in ("unevaluatedProperties", "unevaluatedItems"):
            schema.pop(key, None)
    return schema


def in_place(schema: Schema) -> Iterator[str]:
    """The names of the schemas that apply to the same value as this one."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(PREFIX)
    for key in _IN_PLACE_MANY:
        for branch in schema.get(key, ()):
            yield from in_place(branch)
    for key in _IN_PLACE_ONE:
        yield from in_place(schema.get(key, True))


def references(schema: Schema) -> set[str]:
    """The names of all schemas that this one refers to, directly."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and "$ref" in item:
            found.add(item["$ref"].removeprefix(PREFIX))
        waiting += parts(item)
    return found


def endless(defs: Mapping[str, Schema]) -> list[tuple[str, str]]:
    """The references (from, to) between named schemas that make an evaluation never end."""
    found: list[tuple[str, str]] = []
    done: set[str] = set()
    for start in defs:
        path = {} if start in done else {start: in_place(defs[start])}
        while path:
            name = next(reversed(path))
            other = next(path[name], None)
            if other is None:
                done.add(name)
                del path[name]
            elif other in path:
                found.append((name, other))
            elif other in defs and other not in done:
                path[other] = in_place(defs[other])
    return list(dict.fromkeys(found))


def cut(schema: Schema, name: str) -> Schema:
    """The schema without its in-place references to the named one."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if (key, value) != ("$ref", PREFIX + name)}
    for key in _IN_PLACE_MANY:
        if key in kept:
            kept[key] = [cut(branch, name) for branch in kept[key]]
    for key in _IN_PLACE_ONE:
        if key in kept:
            kept[key] = cut(kept[key], name)
    return sound(kept) or True
