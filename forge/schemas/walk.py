"""Schemas rebuilt from their parts, and the references among them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import BRANCHES, COMBINING, HOLDERS, convert_held, parts

PREFIX = "#/$defs/"
UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE = COMBINING | {"$ref"}
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def memoize(make: Callable[[Any], T]) -> Callable[[Any], T]:
    """A function that is asked again and again about the same objects, which are never changed:
    what it makes of each is made once. Equal objects that are not the same are not known again.
    """
    known: dict[int, tuple[Any, T]] = {}

    def recall(value: Any) -> T:
        found = known.get(id(value))
        if found is None:
            # The object is kept, so that no other one gets its id.
            found = known[id(value)] = value, make(value)
        return found[1]

    return recall


def memoize_pairs(make: Callable[[Any, K], T]) -> Callable[[Any, K], T]:
    """As `memoize`, of an object and a plain value."""
    known: dict[tuple[int, K], tuple[Any, T]] = {}

    def recall(value: Any, beside: K) -> T:
        key = (id(value), beside)
        found = known.get(key)
        if found is None:
            found = known[key] = value, make(value, beside)
        return found[1]

    return recall


def make_once(known: dict[int, tuple[Any, T]], value: Any, make: Callable[[Any], T]) -> T:
    """As `memoize`, with what is made in `known`: for methods. An object that had a memoized method
    of its own would hold itself, and so stay until the interpreter looks for cycles.
    """
    found = known.get(id(value))
    if found is None:
        found = known[id(value)] = value, make(value)
    return found[1]


def is_leaf(schema: Mapping[str, Any]) -> bool:
    """Whether a schema holds no other and refers to none: what is rebuilt of it is the same."""
    return HOLDERS.isdisjoint(schema) and "$ref" not in schema


def rebuild_schema(
    schema: Mapping[str, Any], convert: Callable[[Schema], Schema]
) -> dict[str, Any]:
    """The schema with each direct part converted, made sound where a part became true."""
    return convert_parts(dict(schema), convert)


def convert_parts(made: dict[str, Any], convert: Callable[[Schema], Schema]) -> dict[str, Any]:
    """As `rebuild_schema`, in place: of a schema that nobody else has."""
    if HOLDERS.isdisjoint(made):
        return made
    for key, value in made.items():
        if key in HOLDERS:
            made[key] = convert_held(key, value, convert)
    return made if COMBINING.isdisjoint(made) else make_sound(made)


def make_sound(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what a part that takes any value would turn into a refusal of all.

    An unknown part is true; `not` and `oneOf` then refuse what the author meant to allow.
    """
    if COMBINING.isdisjoint(schema):
        return schema
    if True in schema.get("oneOf", ()):
        branches = schema.pop("oneOf")
        schema.setdefault("anyOf", branches)
    if schema.get("not") is True:
        del schema["not"]
    if schema.get("if") is True:
        for key in ("if", "then", "else"):
            schema.pop(key, None)
    if not UNEVALUATED.isdisjoint(schema) and any(True in schema.get(key, ()) for key in BRANCHES):
        for key in UNEVALUATED:
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
    if not isinstance(schema, dict) or is_leaf(schema):
        return set()
    found: set[str] = set()
    waiting: list[Schema] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "$ref" in item:
                found.add(item["$ref"].removeprefix(PREFIX))
            if not HOLDERS.isdisjoint(item):
                waiting += parts(item)
    return found


def find_endless_references(defs: Mapping[str, Schema]) -> list[tuple[str, str]]:
    """The references (from, to) between named schemas that make an evaluation never end."""
    found: list[tuple[str, str]] = []
    done: set[str] = set()
    for start, schema in defs.items():
        is_alone = isinstance(schema, dict) and _IN_PLACE.isdisjoint(schema)
        path = {} if is_alone or start in done else {start: list_in_place_references(schema)}
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
