"""Arguments that nobody wrote an example for, made from an input schema: those that it refuses, and
the most extreme that it admits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.schemas.keywords import declared_types
from sandbox.schemas.validator import SchemaChecker

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
class BoundaryArguments:
    """Arguments and what is special about them."""

    name: str
    arguments: Mapping[str, Any]


def build_malformed(
    schema: Mapping[str, Any], base: Mapping[str, Any], judge: SchemaChecker
) -> list[BoundaryArguments]:
    """Arguments that break the schema in one place each; `base` are arguments that it admits."""
    return [trial for trial in _iterate_broken(schema, base) if judge.find_problem(trial.arguments)]


def build_extreme(
    schema: Mapping[str, Any], base: Mapping[str, Any], judge: SchemaChecker
) -> list[BoundaryArguments]:
    """Arguments at the schema's edges, one property at a time, all admitted by it."""
    return [
        trial
        for trial in _iterate_edges(schema, base)
        if judge.find_problem(trial.arguments) is None
    ]


def _iterate_broken(
    schema: Mapping[str, Any], base: Mapping[str, Any]
) -> Iterator[BoundaryArguments]:
    for name in list(schema.get("required", ()))[:MAX_PROPERTIES]:
        yield BoundaryArguments(f"without {name}", {k: v for k, v in base.items() if k != name})
    for name, declared in first_properties(schema):
        kinds = declared_types(declared)
        kinds |= {"integer"} if "number" in kinds else frozenset()
        wrong = [value for value in _WRONG if kinds and _get_type(value) not in kinds]
        if wrong:
            yield BoundaryArguments(f"{name} of a wrong type", {**base, name: wrong[0]})
    yield BoundaryArguments("an unknown argument", {**base, "zz_unknown": 1})


def _iterate_edges(
    schema: Mapping[str, Any], base: Mapping[str, Any]
) -> Iterator[BoundaryArguments]:
    required = set(schema.get("required", ()))
    fewest = {name: value for name, value in base.items() if name in required}
    if fewest != base:
        yield BoundaryArguments("only what is required", fewest)
    for name, declared in first_properties(schema):
        for what, value in _iterate_extremes(declared, base.get(name)):
            yield BoundaryArguments(f"{name}: {what}", {**base, name: value})
    numbers = _numbers(schema)
    if len(numbers) > 1:
        yield BoundaryArguments("every number huge", {**base, **dict.fromkeys(numbers, HUGE)})


def _iterate_extremes(declared: Any, usual: Any) -> Iterator[tuple[str, Any]]:
    kinds = declared_types(declared) or frozenset(("string", "integer", "array", "object", "null"))
    flat = declared if isinstance(declared, Mapping) else {}
    for kind in sorted(kinds):
        yield from _VALUES.get(kind, ())
    if "integer" in kinds:
        yield "a whole number as JSON writes a float", _to_float(usual)
    if "string" in kinds:
        longest = flat.get("maxLength")
        yield "long", "x" * min(longest if isinstance(longest, int) else LONG, LONG)
    if "array" in kinds:
        yield from _iterate_huge_items(flat.get("items"), usual)
    if "array" in kinds and isinstance(usual, list) and usual:
        most = flat.get("maxItems")
        yield "many", [usual[0]] * min(most if isinstance(most, int) else MANY, MANY)
    for keyword in ("minimum", "maximum"):
        if isinstance(flat.get(keyword), int | float):
            yield f"the {keyword}", flat[keyword]


def _to_float(usual: Any) -> float:
    """An integer to JSON Schema that reaches code as a float: the usual one, else 2."""
    plain = isinstance(usual, int) and not isinstance(usual, bool) and abs(usual) < 2**53
    return float(usual) if plain else 2.0


def _iterate_huge_items(items: Any, usual: Any) -> Iterator[tuple[str, Any]]:
    """Two items whose sum no float holds: numbers, or objects with numbers in them."""
    first = usual[0] if isinstance(usual, list) and usual else None
    if "number" in declared_types(items):
        yield "a sum that no float holds", [HUGE, HUGE]
    elif isinstance(items, Mapping) and isinstance(first, dict):
        numbers = _numbers(items)
        if numbers:
            item = {**first, **dict.fromkeys(numbers, HUGE)}
            yield "a sum that no float holds", [item, item]


def first_properties(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The properties that a schema declares, as many of them as values are made for."""
    return list((schema.get("properties") or {}).items())[:MAX_PROPERTIES]


def _numbers(schema: Mapping[str, Any]) -> list[str]:
    """The names of the properties that may be any number."""
    return [name for name, part in first_properties(schema) if "number" in declared_types(part)]


def _get_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names[type(value)]


MAX_PER_VALUE = 8
MAX_DEPTH = 4
MAX_ITEMS = 3
_RUNS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")


def iterate_neighbours(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments with one value changed, in the order of the values."""
    for name, value in arguments.items():
        for changed in list(_change_value(value, 0))[:MAX_PER_VALUE]:
            yield {**arguments, name: changed}


def _change_value(value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, bool) or value is None or depth > MAX_DEPTH:
        return
    if isinstance(value, int):
        yield from (value + 1, value - 1, value + 10, value * 2)
    elif isinstance(value, float):
        yield from (value + 1, value - 1, value * 2, value / 2)
    elif isinstance(value, str):
        yield from _change_text(value)
    elif isinstance(value, list):
        yield from _change_list(value, depth)
    elif isinstance(value, dict):
        for name in list(value)[:MAX_ITEMS]:
            for changed in list(_change_value(value[name], depth + 1))[:MAX_ITEMS]:
                yield {**value, name: changed}


def _change_text(text: str) -> Iterator[str]:
    if not text:
        return
    places = sorted({len(text) // 2, 0, len(text) - 1, len(text) // 3}, reverse=True)
    for at in places:
        follower = _find_follower(text[at])
        if follower != text[at]:
            yield text[:at] + follower + text[at + 1 :]
    yield text[:-1]
    yield text + text[-1]
    yield text + text
    middle = len(text) // 2
    yield text[middle:] + text[:middle]


def _find_follower(letter: str) -> str:
    """The next letter or digit of its kind; any other character stays."""
    for run in _RUNS:
        if letter in run:
            return run[(run.index(letter) + 1) % len(run)]
    return letter


def _change_list(items: list[Any], depth: int) -> Iterator[list[Any]]:
    if not items:
        return
    yield items[:-1]
    yield items[::-1]
    yield [*items, items[0]]
    for at, item in enumerate(items[:MAX_ITEMS]):
        for changed in list(_change_value(item, depth + 1))[:MAX_ITEMS]:
            yield [*items[:at], changed, *items[at + 1 :]]
