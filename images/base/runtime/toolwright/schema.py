"""JSON Schema 2020-12, as much of it as tool schemas use; unknown keywords are ignored.

https://json-schema.org/draft/2020-12/json-schema-validation. `format` is an annotation. A schema or
a value that cannot be checked within the bounds below is a problem, not a success.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Problem = tuple[tuple["str | int", ...], str]
    Check = Callable[["Validation", Any, Any, dict[str, Any], int], "Problem | None"]

MAX_DEPTH = 400
MAX_STEPS = 1_000_000
MAX_SHOWN = 80
MAX_PATTERN_INPUT = 64 * 1024
_NUMBERS = (int, float)


class Exhausted(Exception):
    """The bounds are used up; the message says which."""


class Validation:
    """One check of an instance against a root schema."""

    def __init__(self, root: Any, steps: int) -> None:
        self.root, self.left = root, steps

    def problem(self, schema: Any, value: Any, depth: int) -> Problem | None:
        """The first problem, its path relative to the value."""
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise Exhausted("takes too many steps" if self.left < 0 else "nests too deeply")
        if schema is True:
            return None
        if schema is False:
            return (), f"{_shown(value)} is not allowed here"
        if not isinstance(schema, dict):
            raise Exhausted("holds a schema that is neither an object nor a boolean")
        for keyword, argument in schema.items():
            check = _CHECKS.get(keyword)
            found = check(self, argument, value, schema, depth + 1) if check else None
            if found:
                return found
        return None

    def resolve(self, reference: str) -> Any:
        """What a `$ref` within the root schema (RFC 6901 pointer as fragment) points at."""
        target = self.root
        for token in reference.removeprefix("#").split("/")[1:]:
            name = _unescaped(token)
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list) and name.isdigit() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise Exhausted(f"refers to {reference[:MAX_SHOWN]}, which is not there")
        return target


def first_problem(schema: Any, value: Any, steps: int = MAX_STEPS) -> tuple[str, str] | None:
    """The first problem as a JSON pointer into the value and a reason, or None.

    `steps` is how many pairs of a schema and a value may be looked at.
    """
    try:
        found = Validation(schema, steps).problem(schema, value, 0)
    except Exhausted as bound:
        return "", f"cannot be checked: the schema {bound}"
    except (TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
        return "", f"cannot be checked: {type(error).__name__} in the schema"
    return (_pointer(found[0]), found[1]) if found else None


def equal(left: Any, right: Any) -> bool:
    """JSON equality: 1 is 1.0, but true is not 1."""
    return bool(_key(left) == _key(right))


def _key(value: Any) -> Any:
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return (list, tuple(map(_key, value)))
    return value


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def _unescaped(token: str) -> str:
    text = re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), token)
    return text.replace("~1", "/").replace("~0", "~")


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
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and bool(value == int(value))


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}


def _type(state: Validation, names: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    allowed = [names] if isinstance(names, str) else names
    if any(_TYPES[name](value) for name in allowed if name in _TYPES):
        return None
    return (), f"{_shown(value)} is not of type {' or '.join(map(str, allowed))}"


def _enum(state: Validation, values: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    key = _key(value)
    if any(_key(candidate) == key for candidate in values):
        return None
    return (), f"{_shown(value)} is none of {_listed(values)}"


def _const(state: Validation, const: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    return None if equal(const, value) else ((), f"{_shown(value)} is not {_shown(const)}")


def _ref(state: Validation, target: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if not isinstance(target, str) or (target != "#" and not target.startswith("#/")):
        raise Exhausted("refers to something outside of itself")
    return state.problem(state.resolve(target), value, depth)


def _bound(
    applies: Callable[[Any], bool],
    holds: Callable[[Any, Any], bool],
    reason: str,
) -> Check:
    def check(state: Validation, limit: Any, value: Any, schema: Any, depth: int) -> Problem | None:
        if not applies(value) or holds(value, limit):
            return None
        return (), f"{_shown(value)} {reason} {limit}"

    return check


def _is_multiple(value: Any, factor: Any) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = value / factor
    # 19.99 is a multiple of 0.01, though not to binary floating point.
    return bool(abs(quotient - round(quotient)) <= 1e-9 * max(1.0, abs(quotient)))


def _matches(value: str, pattern: str) -> bool:
    if len(value) > MAX_PATTERN_INPUT:
        raise Exhausted("has a pattern for a string that is too long for one")
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # ECMA 262 has forms that Python has not; such a pattern says nothing here.
        return True


def _unique(state: Validation, wanted: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if not wanted or not isinstance(value, list | tuple):
        return None
    seen: dict[Any, int] = {}
    for index, item in enumerate(value):
        first = seen.setdefault(_key(item), index)
        if first != index:
            return (index,), f"repeats item {first}"
    return None


def _required(state: Validation, names: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                return (), f"{_shown(name)} is missing"
    return None


def _dependent(
    state: Validation, rules: Any, value: Any, schema: Any, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for name, needed in rules.items():
            absent = [other for other in needed if other not in value] if name in value else []
            if absent:
                return (), f"{_shown(absent[0])} is missing beside {_shown(name)}"
    return None


def _dependent_schemas(
    state: Validation, rules: Any, value: Any, schema: Any, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for name, rule in rules.items():
            found = state.problem(rule, value, depth) if name in value else None
            if found:
                return found
    return None


def _below(key: str | int, found: Problem | None) -> Problem | None:
    return ((key, *found[0]), found[1]) if found else None


def _properties(
    state: Validation, properties: Any, value: Any, schema: Any, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for name, rule in properties.items():
            if name in value:
                found = state.problem(rule, value[name], depth)
                if found:
                    return _below(name, found)
    return None


def _pattern_properties(
    state: Validation, patterns: Any, value: Any, schema: Any, depth: int
) -> Problem | None:
    if isinstance(value, dict):
        for pattern, rule in patterns.items():
            for name, item in value.items():
                found = state.problem(rule, item, depth) if _matches(name, pattern) else None
                if found:
                    return _below(name, found)
    return None


def _additional(
    state: Validation, rule: Any, value: Any, schema: Any, depth: int
) -> Problem | None:
    if not isinstance(value, dict) or rule is True:
        return None
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, item in value.items():
        if name not in known and not any(_matches(name, pattern) for pattern in patterns):
            if rule is False:
                return (name,), "is not a known property"
            found = state.problem(rule, item, depth)
            if found:
                return _below(name, found)
    return None


def _names(state: Validation, rule: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if isinstance(value, dict):
        for name in value:
            found = state.problem(rule, name, depth)
            if found:
                return (name,), f"is no name for a property: {found[1]}"
    return None


def _prefix(state: Validation, rules: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if isinstance(value, list | tuple):
        for index, (rule, item) in enumerate(zip(rules, value, strict=False)):
            found = state.problem(rule, item, depth)
            if found:
                return _below(index, found)
    return None


def _items(state: Validation, rule: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if isinstance(value, list | tuple) and rule is not True:
        start = len(schema.get("prefixItems", ()))
        for index, item in enumerate(value[start:], start):
            found = state.problem(rule, item, depth)
            if found:
                return _below(index, found)
    return None


def _contains(state: Validation, rule: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if not isinstance(value, list | tuple):
        return None
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    count = sum(state.problem(rule, item, depth) is None for item in value)
    if least <= count <= most:
        return None
    return (), f"{count} items match `contains`, not {least} to {most}"


def _all_of(state: Validation, rules: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    for rule in rules:
        found = state.problem(rule, value, depth)
        if found:
            return found
    return None


def _any_of(state: Validation, rules: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    closest: Problem | None = None
    for rule in rules:
        found = state.problem(rule, value, depth)
        if found is None:
            return None
        if closest is None or len(found[0]) > len(closest[0]):
            closest = found
    return closest or ((), "no alternative is given")


def _one_of(state: Validation, rules: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    found = _any_of(state, rules, value, schema, depth)
    if found:
        return found
    count = sum(state.problem(rule, value, depth) is None for rule in rules)
    return None if count == 1 else ((), f"matches {count} alternatives, not one")


def _not(state: Validation, rule: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    if state.problem(rule, value, depth):
        return None
    return (), f"{_shown(value)} matches what it must not"


def _if(state: Validation, rule: Any, value: Any, schema: Any, depth: int) -> Problem | None:
    branch = "else" if state.problem(rule, value, depth) else "then"
    return state.problem(schema.get(branch, True), value, depth)


_CHECKS: dict[str, Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "minimum": _bound(_is_number, lambda value, limit: value >= limit, "is less than"),
    "maximum": _bound(_is_number, lambda value, limit: value <= limit, "is more than"),
    "exclusiveMinimum": _bound(_is_number, lambda value, limit: value > limit, "is not more than"),
    "exclusiveMaximum": _bound(_is_number, lambda value, limit: value < limit, "is not less than"),
    "multipleOf": _bound(_is_number, _is_multiple, "is not a multiple of"),
    "minLength": _bound(_TYPES["string"], lambda v, n: len(v) >= n, "is shorter than"),
    "maxLength": _bound(_TYPES["string"], lambda v, n: len(v) <= n, "is longer than"),
    "pattern": _bound(_TYPES["string"], _matches, "does not match"),
    "minItems": _bound(_TYPES["array"], lambda v, n: len(v) >= n, "has fewer items than"),
    "maxItems": _bound(_TYPES["array"], lambda v, n: len(v) <= n, "has more items than"),
    "uniqueItems": _unique,
    "minProperties": _bound(_TYPES["object"], lambda v, n: len(v) >= n, "has fewer members than"),
    "maxProperties": _bound(_TYPES["object"], lambda v, n: len(v) <= n, "has more members than"),
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
