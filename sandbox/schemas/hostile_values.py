"""Arguments that somebody means ill with: hostile, nested and combined values, from a schema and a
seed. `sandbox.schemas.boundary_values` has the plain edges, one property at a time; none of those
comes again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from sandbox.schemas.boundary_values import first_properties
from sandbox.schemas.keywords import declared_types
from sandbox.schemas.validator import SchemaChecker

MAX_DEPTH = 4
COMBINED = 24
"""So many times several properties are hostile at once."""
LONGEST = 100_000
_TEXTS: tuple[tuple[str, str], ...] = (
    ("5,000 digits", "9" * 5_000),
    ("digits that are none", "²³"),
    ("digits of another script", "١٢٣"),
    ("not a number", "nan"),
    ("infinity", "-Infinity"),
    ("a day that is none", "2023-02-29"),
    ("a second that is none", "9999-12-31T23:59:60Z"),
    ("year zero", "0000-00-00"),
    ("a byte order mark", "\ufeffa,b\n1,2"),
    ("mixed line ends", 'a,b\r\n1\r2\n\n"3'),
    ("an open quote", '"a,b\n1,2'),
    ("rows of several lengths", "a,b\n1\n1,2,3\n,\n"),
    ("a zero byte", "a\x00b"),
    ("deep brackets", "[" * 2_000),
    ("deep objects", '{"a":' * 500),
    ("open parentheses", "(" * 2_000),
    ("what patterns stumble over", "a" * 3_000 + "!"),
    ("spaces before a letter", " " * 3_000 + "x"),
    ("marks of a format", "%s%n{0}{x!r}{0.__class__}"),
    ("another place", "../../../../etc/passwd"),
    ("an entity", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
    ("letters that grow", "ǰŉßﬃ" * 20),
    ("combined marks", "e\u0301\u0327" * 50),
    ("emoji of several parts", "\U0001f469\u200d\U0001f469\u200d\U0001f467"),
    ("a very long text", "word, " * (LONGEST // 6)),
)
_BEYOND_FLOAT: tuple[tuple[str, Any], ...] = (
    ("400 digits, more than a float holds", 10**400),
    ("minus 400 digits, more than a float holds", -(10**400)),
)
_NUMBERS: tuple[tuple[str, Any], ...] = (
    ("minus zero", -0.0),
    ("the smallest", 5e-324),
    ("beyond exact", 2**53 + 1),
    ("a third", 1 / 3),
    ("nearly one", 0.9999999999999999),
    ("forty digits", 10**40),
    *_BEYOND_FLOAT,
)
_INTEGERS: tuple[tuple[str, Any], ...] = (
    ("one", 1),
    ("beyond exact", 2**53 + 1),
    ("forty digits", 10**40),
    ("minus forty digits", -(10**40)),
    *_BEYOND_FLOAT,
)
_JSON: tuple[tuple[str, Any], ...] = (
    ("true for a number", True),
    ("nested", {"a": [{"b": [[[None]]]}]}),
    ("mixed", [1, "1", None, [], {}, 1.5, False]),
)


@dataclass(frozen=True)
class Attack:
    """Hostile arguments that the schema admits; `told` says of the properties that are so how."""

    arguments: Mapping[str, Any]
    told: Mapping[str, str]

    @property
    def name(self) -> str:
        return ", ".join(f"{name}: {what}" for name, what in self.told.items())


def generate_attacks(
    schema: Mapping[str, Any], base: Mapping[str, Any], judge: SchemaChecker, random: Random
) -> Iterator[Attack]:
    """Attacks that the schema admits: each property by itself, then several at once."""
    values = {
        name: _list_hostile_values(part, base.get(name)) for name, part in first_properties(schema)
    }
    for name, listed in values.items():
        for what, value in listed:
            made = {**base, name: value}
            if judge.find_problem(made) is None:
                yield Attack(made, {name: what})
    several = [name for name, listed in values.items() if listed]
    for _ in range(COMBINED if len(several) > 1 else 0):
        names = tuple(random.sample(several, random.randint(2, len(several))))
        chosen = {name: random.choice(values[name]) for name in names}
        made = {**base, **{name: value for name, (_, value) in chosen.items()}}
        if judge.find_problem(made) is None:
            yield Attack(made, {name: what for name, (what, _) in chosen.items()})


def simplify_attack(
    attack: Attack, base: Mapping[str, Any], judge: SchemaChecker
) -> Iterator[Attack]:
    """Attacks that are less than this one: a property as usual, or half as long."""
    for name in attack.told if len(attack.told) > 1 else ():
        left = {key: value for key, value in attack.arguments.items() if key != name}
        made = {**left, **({name: base[name]} if name in base else {})}
        if judge.find_problem(made) is None:
            yield Attack(made, {each: what for each, what in attack.told.items() if each != name})
    for name in attack.told:
        value = attack.arguments.get(name)
        if isinstance(value, str | list) and len(value) > 1:
            for part in (value[: len(value) // 2], value[len(value) // 2 :]):
                made = {**attack.arguments, name: part}
                if judge.find_problem(made) is None:
                    yield Attack(made, attack.told)


def _list_hostile_values(schema: Any, usual: Any, depth: int = 0) -> list[tuple[str, Any]]:
    flat = _to_mapping(schema)
    if isinstance(flat.get("enum"), list):
        return [(f"{json.dumps(value)[:40]}", value) for value in flat["enum"][:8]]
    kinds = declared_types(flat)
    found: list[tuple[str, Any]] = []
    if not kinds or "string" in kinds:
        longest = flat.get("maxLength", LONGEST)
        limit = longest if isinstance(longest, int) else LONGEST
        found += list(dict.fromkeys((what, text[:limit]) for what, text in _TEXTS))
        if isinstance(usual, str) and usual:
            found += [("as usual, cut", usual[: len(usual) // 2]), ("twice", (usual * 2)[:limit])]
    if not kinds or "number" in kinds:
        found += _NUMBERS
    if not kinds or "integer" in kinds:
        found += _INTEGERS
        # Whole arguments are tried so by `sandbox.schemas.boundary_values`.
        found += [("2.0, an integer to JSON Schema", 2.0)] if depth else []
    if not kinds:
        found += _JSON
    if depth < MAX_DEPTH:
        found += _list_inner_values(flat, usual, depth) if kinds & {"array", "object"} else []
    return found


def _list_inner_values(flat: Mapping[str, Any], usual: Any, depth: int) -> list[tuple[str, Any]]:
    """Lists and objects of which one part is hostile."""
    found: list[tuple[str, Any]] = []
    if isinstance(usual, list):
        first = usual[0] if usual else None
        for what, value in _list_hostile_values(flat.get("items", {}), first, depth + 1):
            found.append((f"an item {what}", [*usual[1:], value]))
        found += [("the other way round", usual[::-1]), ("twice", [*usual, *usual])]
        if depth and "number" in declared_types(_to_mapping(flat.get("items"))):
            found.append(("a sum that no float holds", [1e308, 1e308]))
    if isinstance(usual, Mapping):
        for name, part in first_properties(flat):
            for what, value in _list_hostile_values(part, usual.get(name), depth + 1):
                found.append((f"{name} {what}", {**usual, name: value}))
    return found


def _to_mapping(schema: Any) -> Mapping[str, Any]:
    return schema if isinstance(schema, Mapping) else {}
