"""Fields of a case's answers that are missing or renamed, and what may come of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sandbox.bundle.example import is_same_value
from sandbox.bundle.source import UnparsableSource, parse_source
from sandbox.stages.replay.paging import MARKS, normalize_name

MAX_DEPTH = 8
MAX_FIELDS = 40
"""So many fields of one answer are tried."""
EACH = "*"
Path = tuple[str, ...]
"""Keys from an answer's root to a field; `*` stands for every element of an array."""
GONE = object()


def list_named_texts(code: str) -> frozenset[str]:
    """The texts that stand in the code. A key that is none of them is data to it, no field."""
    source = parse_source(code)
    if isinstance(source, UnparsableSource):
        return frozenset()
    return frozenset(
        node.value
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def list_fields(value: Any, named: Iterable[str]) -> tuple[Path, ...]:
    """The fields of an answer that the code names, each once, in their order."""
    found = dict.fromkeys(_iterate_paths(value, frozenset(named), (), 0))
    return tuple(found)[:MAX_FIELDS]


def _iterate_paths(value: Any, named: frozenset[str], at: Path, depth: int) -> Iterator[Path]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in named:
                yield (*at, key)
            yield from _iterate_paths(item, named, (*at, key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_paths(item, named, (*at, EACH), depth + 1)


def without_field(value: Any, path: Path, renamed: str = "") -> Any:
    """The value without a field, wherever the path leads; with its content under another name where
    one is given.
    """
    if not path:
        return value
    first, rest = path[0], path[1:]
    if first == EACH and isinstance(value, list):
        return [without_field(item, rest, renamed) for item in value]
    if not isinstance(value, Mapping) or first not in value:
        return value
    if rest:
        return {**value, first: without_field(value[first], rest, renamed)}
    left = {key: item for key, item in value.items() if key != first}
    return {**left, renamed: value[first]} if renamed else left


def is_shown_optional(values: Iterable[Any], path: Path) -> bool:
    """Whether the answers show that a field may be missing, and it is no number and no list, whose
    absence nobody can see in a sum or a count. A mark of more pages may be of any type where an
    answer leaves it out: one that is null at the end is there.
    """
    found = [item for value in values for item in _iterate_values(value, path)]
    there = [item for item in found if item is not GONE and item is not None]
    counted = (isinstance(i, list | dict | float | int) and not isinstance(i, bool) for i in there)
    left_out = normalize_name(path[-1]) in MARKS and GONE in found
    return len(there) < len(found) and bool(there) and (left_out or not any(counted))


def with_other_values(value: Any, path: Path) -> Any:
    """The value with other ones of their type in the place of a field's plain values."""
    if not path:
        return _get_other(value)
    first, rest = path[0], path[1:]
    if first == EACH and isinstance(value, list):
        return [with_other_values(item, rest) for item in value]
    if isinstance(value, Mapping) and first in value:
        return {**value, first: with_other_values(value[first], rest)}
    return value


def _get_other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}~" if isinstance(value, str) else value


def _iterate_values(value: Any, path: Path) -> Iterator[Any]:
    """What stands at a path; GONE where an object has no such field."""
    if not path:
        yield value
    elif path[0] == EACH:
        for item in value if isinstance(value, list) else ():
            yield from _iterate_values(item, path[1:])
    elif isinstance(value, Mapping):
        if path[0] in value:
            yield from _iterate_values(value[path[0]], path[1:])
        elif len(path) == 1:
            yield GONE


def says_missing(usual: Any, given: Any, schema: Any) -> bool:
    """Whether a result differs only where it says that something is missing: null, or a field left
    out, and the output schema says that there may be.
    """
    if is_same_value(usual, given):
        return True
    part = schema if isinstance(schema, Mapping) else {}
    if given is None:
        return _admits_null(part)
    if isinstance(usual, Mapping) and isinstance(given, Mapping):
        if given.keys() - usual.keys():
            return False
        inner, needed = part.get("properties") or {}, part.get("required") or ()
        return all(
            says_missing(item, given[key], inner.get(key))
            if key in given
            else key not in needed and key in inner
            for key, item in usual.items()
        )
    if isinstance(usual, list) and isinstance(given, list) and len(usual) == len(given):
        items = part.get("items")
        return all(says_missing(a, b, items) for a, b in zip(usual, given, strict=True))
    return False


def _admits_null(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    parts = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return (
        "null" in kinds
        or None in (schema.get("enum") or ())
        or any(isinstance(part, Mapping) and _admits_null(part) for part in parts)
    )
