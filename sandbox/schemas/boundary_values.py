"""Arguments that nobody wrote an example for, made from an input schema: those that it refuses, and
the most extreme that it admits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.validation import Checker

MAX_PROPERTIES = 24
HUGE = 1e308
"""Twice this is more than a float holds."""
LONG = 10_000
MANY = 1_000
_WRONG: tuple[Any, ...] = (None, "x", 7, True, [], {})
_VALUES: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "string": (
        ("empty", ""),
        ("blank", " \t\n"),
        ("foreign", "Zoë \U0001f389 \u202e\u0000'\"\\{}"),
        ("a number", "-1e400"),
        # More than `int` reads: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
        ("5,000 digits", "9" * 5_000),
    ),
    "number": (("zero", 0), ("negative", -1), ("huge", HUGE), ("hugely negative", -HUGE)),
    "integer": (("zero", 0), ("negative", -1), ("huge", 2**63), ("hugely negative", -(2**63))),
    "boolean": (("true", True), ("false", False)),
    "array": (("empty", []),),
    "object": (("empty", {}),),
    "null": (("null", None),),
}


@dataclass(frozen=True)
class Trial:
    """Arguments and what is special about them."""

    name: str
    arguments: Mapping[str, Any]


def malformed(schema: Mapping[str, Any], base: Mapping[str, Any], judge: Checker) -> list[Trial]:
    """Arguments that break the schema in one place each; `base` are arguments that it admits."""
    return [trial for trial in _broken(schema, base) if judge.problem(trial.arguments)]


def extreme(schema: Mapping[str, Any], base: Mapping[str, Any], judge: Checker) -> list[Trial]:
    """Arguments at the schema's edges, one property at a time, all admitted by it."""
    return [trial for trial in _edges(schema, base) if judge.problem(trial.arguments) is None]


def _broken(schema: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[Trial]:
    for name in list(schema.get("required", ()))[:MAX_PROPERTIES]:
        yield Trial(f"without {name}", {k: v for k, v in base.items() if k != name})
    for name, declared in _properties(schema):
        kinds = _kinds(declared)
        kinds |= {"integer"} if "number" in kinds else frozenset()
        wrong = [value for value in _WRONG if kinds and _kind(value) not in kinds]
        if wrong:
            yield Trial(f"{name} of a wrong type", {**base, name: wrong[0]})
    yield Trial("an unknown argument", {**base, "zz_unknown": 1})


def _edges(schema: Mapping[str, Any], base: Mapping[str, Any]) -> Iterator[Trial]:
    required = set(schema.get("required", ()))
    fewest = {name: value for name, value in base.items() if name in required}
    if fewest != base:
        yield Trial("only what is required", fewest)
    for name, declared in _properties(schema):
        for what, value in _extremes(declared, base.get(name)):
            yield Trial(f"{name}: {what}", {**base, name: value})
    numbers = [name for name, declared in _properties(schema) if "number" in _kinds(declared)]
    if len(numbers) > 1:
        yield Trial("every number huge", {**base, **dict.fromkeys(numbers, HUGE)})


def _extremes(declared: Any, usual: Any) -> Iterator[tuple[str, Any]]:
    kinds = _kinds(declared) or frozenset(("string", "integer", "array", "object", "null"))
    flat = declared if isinstance(declared, Mapping) else {}
    for kind in sorted(kinds):
        yield from _VALUES.get(kind, ())
    if "integer" in kinds:
        yield "a whole number as JSON writes a float", _as_float(usual)
    if "string" in kinds:
        longest = flat.get("maxLength")
        yield "long", "x" * min(longest if isinstance(longest, int) else LONG, LONG)
    if "array" in kinds:
        yield from _huge_items(flat.get("items"), usual)
    if "array" in kinds and isinstance(usual, list) and usual:
        most = flat.get("maxItems")
        yield "many", [usual[0]] * min(most if isinstance(most, int) else MANY, MANY)
    for keyword in ("minimum", "maximum"):
        if isinstance(flat.get(keyword), int | float):
            yield f"the {keyword}", flat[keyword]


def _as_float(usual: Any) -> float:
    """An integer to JSON Schema that reaches code as a float: the usual one, else 2."""
    plain = isinstance(usual, int) and not isinstance(usual, bool) and abs(usual) < 2**53
    return float(usual) if plain else 2.0


def _huge_items(items: Any, usual: Any) -> Iterator[tuple[str, Any]]:
    """Two items whose sum no float holds: numbers, or objects with numbers in them."""
    first = usual[0] if isinstance(usual, list) and usual else None
    if "number" in _kinds(items):
        yield "a sum that no float holds", [HUGE, HUGE]
    elif isinstance(items, Mapping) and isinstance(first, dict):
        numbers = [name for name, part in _properties(items) if "number" in _kinds(part)]
        if numbers:
            item = {**first, **dict.fromkeys(numbers, HUGE)}
            yield "a sum that no float holds", [item, item]


def _properties(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list((schema.get("properties") or {}).items())[:MAX_PROPERTIES]


def _kinds(declared: Any) -> frozenset[str]:
    """The types that a schema names; none where it does not say."""
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    named = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return frozenset(name for name in named if isinstance(name, str))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names[type(value)]
