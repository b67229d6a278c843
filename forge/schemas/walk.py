"""Schemas rebuilt from their parts, and the references among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import BRANCHES, COMBINING, HOLDERS, convert_held, parts

PREFIX = "#/$defs/"
_IN_PLACE_ONE = ("not", "if", "then", "else")
P = ParamSpec("P")
T = TypeVar("T")


class Memo(Generic[P, T]):
    """A function that is asked again and again about the same objects, which are never changed:
    what it makes of each is made once. Equal objects that are not the same are not known again.
    """

    def __init__(self, make: Callable[Concatenate[Any, P], T]) -> None:
        self._make = make
        self._known: dict[tuple[Any, ...], tuple[Any, T]] = {}

    def __call__(self, value: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (id(value), *args)
        known = self._known.get(key)
        if known is None:
            # The object is kept, so that no other one gets its id.
            known = self._known[key] = value, self._make(value, *args, **kwargs)
        return known[1]


def is_leaf(schema: Mapping[str, Any]) -> bool:
    """Whether a schema holds no other and refers to none: what is rebuilt of it is the same."""
    return HOLDERS.isdisjoint(schema) and "$ref" not in schema


def rebuild_schema(
    schema: Mapping[str, Any], convert: Callable[[Schema], Schema]
) -> dict[str, Any]:
    """The schema with each direct part converted, made sound where a part became true."""
    made = dict(schema)
    if HOLDERS.isdisjoint(schema):
        return made
    for key, value in schema.items():
        if key in HOLDERS:
            made[key] = convert_held(key, value, convert)
    return make_sound(made)


def make_sound(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what a part that takes any value would turn into a refusal of all.

    An unknown part is true; `not` and `oneOf` then refuse what the author meant to allow.
    """
    if COMBINING.isdisjoint(schema):
        return schema
    if any(part is True for part in schema.get("oneOf", ())):
        branches = schema.pop("oneOf")
        schema.setdefault("anyOf", branches)
    if schema.get("not") is True:
        del schema["not"]
    if schema.get("if") is True:
        for key in ("if", "then", "else"):
            schema.pop(key, None)
    if any(part is True for key in BRANCHES for part in schema.get(key, ())):
        for key in ("unevaluatedProperties", "unevaluatedItems"):
            schema.pop(key, None)
    return schema


def list_in_place_references(schema: Schema) -> Iterator[str]:
    """The names of the schemas that apply to the same value as this one."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(PREFIX)
    for key in BRANCHES:
        for branch in schema.get(key, ()):
            yield from list_in_place_references(branch)
    for key in _IN_PLACE_ONE:
        yield from list_in_place_references(schema.get(key, True))


def list_references(schema: Schema) -> set[str]:
    """The names of all schemas that this one refers to, directly."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and "$ref" in item:
            found.add(item["$ref"].removeprefix(PREFIX))
        waiting += parts(item)
    return found


def find_endless_references(defs: Mapping[str, Schema]) -> list[tuple[str, str]]:
    """The references (from, to) between named schemas that make an evaluation never end."""
    found: list[tuple[str, str]] = []
    done: set[str] = set()
    for start in defs:
        path = {} if start in done else {start: list_in_place_references(defs[start])}
        while path:
            name = next(reversed(path))
            other = next(path[name], None)
            if other is None:
                done.add(name)
                del path[name]
            elif other in path:
                found.append((name, other))
            elif other in defs and other not in done:
                path[other] = list_in_place_references(defs[other])
    return list(dict.fromkeys(found))


def cut_reference(schema: Schema, name: str) -> Schema:
    """The schema without its in-place references to the named one."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if (key, value) != ("$ref", PREFIX + name)}
    for key in BRANCHES:
        if key in kept:
            kept[key] = [cut_reference(branch, name) for branch in kept[key]]
    for key in _IN_PLACE_ONE:
        if key in kept:
            kept[key] = cut_reference(kept[key], name)
    return make_sound(kept) or True
