"""The places inside a value that a schema describes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 5
MAX_PLACES = 400
_DEREFERENCES = 16
ITEM = "[]"


@dataclass(frozen=True)
class Spot:
    """A place in a value: property names, and ITEM for every item of a list."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    required: bool

    @property
    def kinds(self) -> frozenset[str]:
        return kinds(self.schema)


def kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema names; what its keywords imply where it names none."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(map(str, named))
    if "properties" in schema:
        return frozenset({"object"})
    return frozenset({"array"}) if "items" in schema else frozenset()


def resolved(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """The schema without its reference, and with the parts of an `allOf` or its first branch."""
    made = dict(schema) if isinstance(schema, Mapping) and depth < _DEREFERENCES else {}
    for _ in range(_DEREFERENCES):
        reference = made.pop("$ref", None)
        if isinstance(reference, str):
            name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
            made = {**_mapping(defs.get(name)), **made}
            continue
        parts = made.pop("allOf", None) or (made.pop("anyOf", None) or made.pop("oneOf", []))[:1]
        if not parts:
            return made
        for part in parts:
            made = _joined(made, resolved(part, defs, depth + 1))
    return made


def spots(schema: Any, defs: Mapping[str, Any]) -> Iterator[Spot]:
    """The places in the instances of a schema, the root first, nearest before deeper."""
    waiting = deque([Spot((), resolved(schema, defs), True)])
    for _ in range(MAX_PLACES):
        if not waiting:
            return
        spot = waiting.popleft()
        yield spot
        if len(spot.path) >= MAX_DEPTH:
            continue
        needed = spot.schema.get("required") or ()
        for name, part in _mapping(spot.schema.get("properties")).items():
            if name != ITEM:
                waiting.append(Spot((*spot.path, name), resolved(part, defs), name in needed))
        if isinstance(spot.schema.get("items"), Mapping):
            waiting.append(Spot((*spot.path, ITEM), resolved(spot.schema["items"], defs), False))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    made = {**right, **left}
    if "properties" in left and "properties" in right:
        made["properties"] = {**right["properties"], **left["properties"]}
    if "required" in left and "required" in right:
        made["required"] = [*left["required"], *right["required"]]
    return made
