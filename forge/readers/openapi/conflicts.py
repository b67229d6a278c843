"""Detection and repair of schemas whose `allOf` parts contradict each other, so that no value fits.

`allOf` requires every part at once (2020-12 core, section 10.2.1.1), while documents often use it
for inheritance, where a later part overrides an earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from forge.schemas.projection import list_applied_schemas
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import COMBINING

_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_LOWER = frozenset(low for low, _ in _BOUNDS)
_VALUES = frozenset({"enum", "const"})
_OF_PROPERTIES = frozenset({"properties", "required", "additionalProperties"})
_ALL_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_SAYS_TYPE = COMBINING | frozenset(
    "type $ref title description default examples deprecated readOnly writeOnly xml".split()
)
"""Of a part that has no more than these nothing is known but its type."""
MAX_NAMES = 3


def find_conflict(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """Return why no value, or none with all of its properties, can fit all parts of a schema; ""
    where no contradiction is found.
    """
    found = list_applied_schemas(schema, schemas)
    if len(found) < 2:
        return ""
    reason = _find_value_conflict(found)
    if reason or all(map(_OF_PROPERTIES.isdisjoint, found)):
        return reason
    wanted = list_required(found)
    clashing = [
        name for name in _list_shared_properties(found) if _is_conflicting(name, found, schemas)
    ]
    if clashing:
        return f"its parts contradict each other in {', '.join(clashing[:MAX_NAMES])}"
    refused = [name for name in wanted if any(_refuses_property(part, name) for part in found)]
    if refused:
        return f"one part requires {', '.join(refused[:MAX_NAMES])}, which another closes out"
    refused = _list_closed_out(found)
    if refused:
        return f"one part has {', '.join(refused[:MAX_NAMES])}, which another closes out"
    return ""


def merge_parts(schema: Mapping[str, Any], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Merge the parts to one schema in which a later keyword overrides an earlier one; keywords
    that combine schemas are kept in `allOf`. A type of which a part says more counts before one
    that stands alone: generators write `type: object` beside a reference to whatever it is.
    """
    made: dict[str, Any] = {}
    combining: list[Schema] = []
    ordered = list(_order_parts(schema, schemas, set()))
    for part in ordered:
        plain = {key: value for key, value in part.items() if key not in COMBINING | {"$ref"}}
        rest = {key: value for key, value in part.items() if key in COMBINING - {"allOf"}}
        properties = {**made.get("properties", {}), **plain.get("properties", {})}
        required = [*made.get("required", ()), *plain.get("required", ())]
        made.update(plain)
        if properties:
            made["properties"] = properties
        if required:
            made["required"] = list(dict.fromkeys(required))
        combining += [rest] if rest else []
    told = [part["type"] for part in ordered if "type" in part and not _SAYS_TYPE.issuperset(part)]
    if told and not _have_common_type(ordered):
        made["type"] = told[-1]
    if made.get("additionalProperties") is False:
        # Closed was the one part; what the others have is in the properties.
        made.pop("unevaluatedProperties", None)
    return {**made, "allOf": combining} if combining else made


def _order_parts(
    schema: Schema, schemas: Mapping[str, Schema], seen: set[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema, a referenced one before the one that refers to it."""
    if not isinstance(schema, Mapping):
        return
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in schemas and name not in seen:
        yield from _order_parts(schemas[name], schemas, {*seen, name})
    for part in schema.get("allOf", ()):
        yield from _order_parts(part, schemas, seen)
    yield schema


def _find_value_conflict(found: list[Mapping[str, Any]]) -> str:
    written = set().union(*found)
    if "type" in written and not _have_common_type(found):
        named = sorted({str(part["type"]) for part in found if "type" in part})
        return f"its parts want {' and '.join(named[:MAX_NAMES])}"
    if not written.isdisjoint(_VALUES) and not _has_common_value(found):
        return "its parts allow no value in common"
    for low, high in _BOUNDS if not written.isdisjoint(_LOWER) else ():
        lows = [part[low] for part in found if low in part]
        highs = [part[high] for part in found if high in part]
        if lows and highs and max(lows) > min(highs):
            return f"its parts want at least {max(lows)} and at most {min(highs)}"
    return ""


def _have_common_type(found: list[Mapping[str, Any]]) -> bool:
    return bool(frozenset.intersection(*map(find_types, found)))


def find_types(part: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema's own `type` allows."""
    written = part.get("type")
    if written is None:
        return _ALL_TYPES
    kinds = {written} if isinstance(written, str) else set(written)
    return frozenset(kinds | ({"integer"} if "number" in kinds else set()))


def _has_common_value(found: list[Mapping[str, Any]]) -> bool:
    """Whether the enumerations of the parts have a value in common."""
    known = [values for part in found if (values := find_values(part)) is not None]
    return not known or any(all(v in values for values in known[1:]) for v in known[0])


def find_values(part: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema's own `enum` or `const` allows; None where it has neither."""
    listed: list[Any] | None = part.get("enum", [part["const"]] if "const" in part else None)
    return listed


def _list_shared_properties(found: list[Mapping[str, Any]]) -> list[str]:
    names = Counter(name for part in found for name in part.get("properties", {}))
    return (
        sorted(name for name, often in names.items() if often > 1) if names.total() < 5000 else []
    )


def _is_conflicting(
    name: str, found: list[Mapping[str, Any]], schemas: Mapping[str, Schema]
) -> bool:
    """Whether two parts give a property schemas that no value can fit both of."""
    written = [part["properties"][name] for part in found if name in part.get("properties", {})]
    parts = [inner for schema in written for inner in list_applied_schemas(schema, schemas)]
    return bool(_find_value_conflict(parts)) if parts else False


def list_required(found: list[Mapping[str, Any]]) -> list[str]:
    """The properties that the parts of an object require."""
    return list(dict.fromkeys(name for part in found for name in part.get("required", ())))


def _list_closed_out(found: list[Mapping[str, Any]]) -> list[str]:
    """The properties that a part has and that another one, which is closed, does not know."""
    closed = [part for part in found if part.get("additionalProperties") is False]
    closed = [part for part in closed if "patternProperties" not in part]
    if not closed:
        return []
    known = set.intersection(*(set(part.get("properties", ())) for part in closed))
    names = (name for part in found for name, own in _list_properties(part) if own is not False)
    return [name for name in dict.fromkeys(names) if name not in known]


def _list_properties(part: Mapping[str, Any]) -> Iterable[tuple[str, Schema]]:
    found: Mapping[str, Schema] = part.get("properties", {})
    return found.items()


def _refuses_property(part: Mapping[str, Any], name: str) -> bool:
    if part.get("properties", {}).get(name) is False:
        return True
    is_closed = part.get("additionalProperties") is False and "patternProperties" not in part
    return is_closed and name not in part.get("properties", {})
