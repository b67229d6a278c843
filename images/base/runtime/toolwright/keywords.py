"""The keywords of JSON Schema: the check of each.

A check takes its keyword's argument, the value, the part of the schema that the keyword is in, the
budget, and how deep the schemas below are. Where the argument is or holds schemas, it has parts in
their place.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .schema import Budget, Part, Schema

    Problem = tuple[tuple["str | int", ...], str]
    Check = Callable[[Any, Any, Part, Budget, int], "Problem | None"]

MAX_SHOWN = 80
MAX_PATTERN_INPUT = 64 * 1024
_OBJECT, _ARRAY, _STRING, _NUMBER = (dict,), (list, tuple), (str,), (int, float)


class Exhausted(Exception):
    """The bounds are used up; the message says which."""


def equal(left: Any, right: Any) -> bool:
    """JSON equality: 1 is 1.0, but true is not 1."""
    return bool(_key(left) == _key(right))


def _key(value: Any) -> Any:
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(item)) for name, item in value.items()))
    if isinstance(value, _ARRAY):
        return (list, tuple(map(_key, value)))
    return value


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value[: MAX_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _listed(values: Any) -> str:
    shown = [_shown(value) for value in values[:8]]
    return ", ".join(shown) + (", …" if len(values) > 8 else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBER) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and bool(value == int(value))


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, _ARRAY),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}
_EXACT_TYPES = {
    "object": frozenset((dict,)),
    "array": frozenset((list,)),
    "string": frozenset((str,)),
    "boolean": frozenset((bool,)),
    "null": frozenset((type(None),)),
    "number": frozenset((int, float)),
    "integer": frozenset((int,)),
}
NO_TYPES: frozenset[type] = frozenset()
ALL_TYPES = NO_TYPES.union(*_EXACT_TYPES.values())


def exact_types(names: Any) -> frozenset[type]:
    """Python's types all of whose values the keyword `type` accepts."""
    if isinstance(names, str):
        return _EXACT_TYPES.get(names, NO_TYPES)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return NO_TYPES
    found = NO_TYPES.union(*(_EXACT_TYPES.get(name, NO_TYPES) for name in names))
    # Whether infinity is an integer cannot be told, even where any number would do.
    return found - {float} if "integer" in names else found


def refuse(argument: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    return (), f"{_shown(value)} is not allowed here"


def _type(names: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    allowed = [names] if isinstance(names, str) else names
    if any(_TYPES[name](value) for name in allowed if name in _TYPES):
        return None
    return (), f"{_shown(value)} is not of type {' or '.join(map(str, allowed))}"


def _enum(values: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if isinstance(value, str) and isinstance(values, list) and value in values:
        return None
    key = _key(value)
    if any(_key(candidate) == key for candidate in values):
        return None
    return (), f"{_shown(value)} is none of {_listed(values)}"


def _const(const: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    return None if equal(const, value) else ((), f"{_shown(value)} is not {_shown(const)}")


def _ref(target: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not isinstance(target, str) or (target != "#" and not target.startswith("#/")):
        raise Exhausted("refers to something outside of itself")
    return owner.whole.target(target).problem(value, budget, depth)


def _bound(
    types: tuple[type, ...],
    holds: Callable[[Any, Any], bool],
    reason: str,
) -> Check:
    def check(limit: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
        if not isinstance(value, types) or isinstance(value, bool) or holds(value, limit):
            return None
        return (), f"{_shown(value)} {reason} {limit}"

    return check


def _is_multiple(value: Any, factor: Any) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    top, places = _read_decimal(value)
    bottom, others = _read_decimal(factor)
    most = max(places, others)
    remainder: int = top * 10 ** (most - places) % (bottom * 10 ** (most - others))
    return remainder == 0


def _read_decimal(number: Any) -> tuple[int, int]:
    """A number as JSON has it: an integer, and how many of its digits are decimal places.

    19.99 is a multiple of 0.01, though not to binary floating point.
    """
    if isinstance(number, int):
        return number, 0
    digits, _, exponent = repr(number).partition("e")
    whole, _, decimals = digits.partition(".")
    return int(whole + decimals), len(decimals) - int(exponent or 0)


def _matches(value: str, pattern: str) -> bool:
    if len(value) > MAX_PATTERN_INPUT:
        raise Exhausted("has a pattern for a string that is too long for one")
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # ECMA 262 has forms that Python has not; such a pattern says nothing here.
        return True


def _unique(wanted: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not wanted or not isinstance(value, _ARRAY):
        return None
    seen: dict[Any, int] = {}
    for index, item in enumerate(value):
        first = seen.setdefault(_key(item), index)
        if first != index:
            return (index,), f"repeats item {first}"
    return None


def _required(names: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                return (), f"{_shown(name)} is missing"
    return None


def _dependent(rules: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if isinstance(value, dict):
        for name, needed in rules.items():
            absent = [other for other in needed if other not in value] if name in value else []
            if absent:
                return (), f"{_shown(absent[0])} is missing beside {_shown(name)}"
    return None


def _dependent_schemas(
    parts: Any, value: Any, owner: Part, budget: Budget, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for name, part in parts.items():
            found: Problem | None = part.problem(value, budget, depth) if name in value else None
            if found:
                return found
    return None


def _below(key: str | int, found: Problem) -> Problem:
    return (key, *found[0]), found[1]


def _properties(parts: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not isinstance(value, dict):
        return None
    # As `_each`, whose loop takes two thirds longer where every item comes with its own part.
    plain, found = 0, None
    for name, part in parts.items():
        if name in value:
            item = value[name]
            if type(item) in part.accepts:
                plain += 1
                continue
            found = part.problem(item, budget, depth)
            if found:
                found = _below(name, found)
                break
    budget.left -= plain
    return found


def _each(
    part: Part, items: Iterable[tuple[str | int, Any]], budget: Budget, depth: int
) -> Problem | None:
    """The first problem of any of these items, which come with their keys, with one part."""
    plain, found = 0, None
    for key, item in items:
        if type(item) in part.accepts:
            plain += 1
            continue
        found = part.problem(item, budget, depth)
        if found:
            found = _below(key, found)
            break
    budget.left -= plain
    return found


def _pattern_properties(
    parts: Any, value: Any, owner: Part, budget: Budget, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for pattern, part in parts.items():
            matching = (member for member in value.items() if _matches(member[0], pattern))
            found = _each(part, matching, budget, depth)
            if found:
                return found
    return None


def _additional(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not isinstance(value, dict) or part.schema is True:
        return None
    known = owner.schema.get("properties", {})
    if isinstance(known, dict) and value.keys() <= known.keys():
        return None
    others = (member for member in value.items() if member[0] not in known)
    patterns = owner.schema.get("patternProperties", {})
    if patterns != {}:
        others = (o for o in others if not any(_matches(o[0], each) for each in patterns))
    if part.schema is False:
        return next((((name,), "is not a known property") for name, _ in others), None)
    return _each(part, others, budget, depth)


def _names(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if isinstance(value, dict):
        for name in value:
            found = part.problem(name, budget, depth)
            if found:
                return (name,), f"is no name for a property: {found[1]}"
    return None


def _prefix(parts: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if isinstance(value, _ARRAY):
        for index, (part, item) in enumerate(zip(parts, value, strict=False)):
            found = part.problem(item, budget, depth)
            if found:
                return _below(index, found)
    return None


def _items(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not isinstance(value, _ARRAY) or part.schema is True:
        return None
    start = len(owner.schema.get("prefixItems", ()))
    return _each(part, enumerate(value[start:] if start else value, start), budget, depth)


def _contains(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if not isinstance(value, _ARRAY):
        return None
    least = owner.schema.get("minContains", 1)
    most = owner.schema.get("maxContains", len(value))
    count = sum(part.problem(item, budget, depth) is None for item in value)
    if least <= count <= most:
        return None
    return (), f"{count} items match `contains`, not {least} to {most}"


def _all_of(parts: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    for part in parts:
        found: Problem | None = part.problem(value, budget, depth)
        if found:
            return found
    return None


def _any_of(parts: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    closest: Problem | None = None
    for part in parts:
        if type(value) in part.accepts:
            budget.left -= 1
            return None
        found = part.problem(value, budget, depth)
        if found is None:
            return None
        closest = _closer(closest, found)
    return closest or ((), "no alternative is given")


def _one_of(parts: Any, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    closest: Problem | None = None
    count = 0
    for part in parts:
        found = part.problem(value, budget, depth)
        if found:
            closest = _closer(closest, found)
        else:
            count += 1
    if count:
        return None if count == 1 else ((), f"matches {count} alternatives, not one")
    return closest or ((), "no alternative is given")


def _closer(closest: Problem | None, found: Problem) -> Problem:
    """The one that is deeper in the value: it is from the alternative that was meant."""
    return found if closest is None or len(found[0]) > len(closest[0]) else closest


def _not(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    if part.problem(value, budget, depth):
        return None
    return (), f"{_shown(value)} matches what it must not"


def _if(part: Part, value: Any, owner: Part, budget: Budget, depth: int) -> Problem | None:
    branch = "else" if part.problem(value, budget, depth) else "then"
    return owner.whole.part(owner.schema.get(branch, True)).problem(value, budget, depth)


CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "minimum": _bound(_NUMBER, lambda value, limit: value >= limit, "is less than"),
    "maximum": _bound(_NUMBER, lambda value, limit: value <= limit, "is more than"),
    "exclusiveMinimum": _bound(_NUMBER, lambda value, limit: value > limit, "is not more than"),
    "exclusiveMaximum": _bound(_NUMBER, lambda value, limit: value < limit, "is not less than"),
    "multipleOf": _bound(_NUMBER, _is_multiple, "is not a multiple of"),
    "minLength": _bound(_STRING, lambda v, n: len(v) >= n, "is shorter than"),
    "maxLength": _bound(_STRING, lambda v, n: len(v) <= n, "is longer than"),
    "pattern": _bound(_STRING, _matches, "does not match"),
    "minItems": _bound(_ARRAY, lambda v, n: len(v) >= n, "has fewer items than"),
    "maxItems": _bound(_ARRAY, lambda v, n: len(v) <= n, "has more items than"),
    "uniqueItems": _unique,
    "minProperties": _bound(_OBJECT, lambda v, n: len(v) >= n, "has fewer members than"),
    "maxProperties": _bound(_OBJECT, lambda v, n: len(v) <= n, "has more members than"),
    "required": _required,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent_schemas,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "prefixItems": _prefix,
    "items": _items,
    "contains": _contains,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
}


def _as_part(schema: Any, whole: Schema) -> Any:
    return whole.part(schema)


def _as_parts(schemas: Any, whole: Schema) -> Any:
    return list(map(whole.part, schemas)) if isinstance(schemas, list | dict | str) else schemas


def _as_named_parts(schemas: Any, whole: Schema) -> Any:
    if not isinstance(schemas, dict):
        return schemas
    return {name: whole.part(schema) for name, schema in schemas.items()}


# What makes parts of an argument. It leaves one that is malformed as it is, for the check to trip
# over, because that runs only where a value reaches it.
PREPARE: dict[str, Callable[[Any, Schema], Any]] = {
    **dict.fromkeys(("additionalProperties", "propertyNames", "items", "contains"), _as_part),
    **dict.fromkeys(("not", "if"), _as_part),
    **dict.fromkeys(("prefixItems", "allOf", "anyOf", "oneOf"), _as_parts),
    **dict.fromkeys(("dependentSchemas", "properties", "patternProperties"), _as_named_parts),
}
