"""Strictness of a widened schema: it holds all that it held but for the types that were added.

A schema that grows may be cut to its size by whoever designs the tool, and an API that answers
oddly in many places would so be rid of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.bundle.widening import SCALARS

MAX_STEPS = 50_000
MAX_DEPTH = 60
_PREFIX = "#/$defs/"
_COMBINING = ("allOf", "anyOf", "oneOf")


def is_as_strict(before: Any, after: Any) -> bool:
    """Whether `after` is `before` with scalar types added at most. False where that takes too many
    steps to tell.
    """
    return _Strictness(before, after).holds(before, after, 0)


class _Strictness:
    """One comparison: the definitions of both schemas, the pairs that were compared, the steps."""

    def __init__(self, before: Any, after: Any) -> None:
        self._before, self._after = _get_defs(before), _get_defs(after)
        self._left = MAX_STEPS
        self._seen: set[tuple[str, str]] = set()

    def holds(self, before: Any, after: Any, depth: int) -> bool:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            return False
        pair = (_get_reference(before), _get_reference(after))
        if all(pair):
            if pair in self._seen:
                return True
            self._seen.add(pair)
        before, after = _resolve(before, self._before), _resolve(after, self._after)
        if not isinstance(before, Mapping) or not before:
            return before is not False
        if not isinstance(after, Mapping):
            return False
        if "anyOf" in after and "anyOf" not in before:
            first, *others = after["anyOf"]
            added = all(set(_list_types(each)) <= set(SCALARS) for each in others if each)
            return added and all(others) and self.holds(before, first, depth + 1)
        return self._adds_scalars(before, after) and all(
            self.holds(*parts, depth + 1) for parts in _pair_parts(before, after)
        )

    def _adds_scalars(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        if "type" in before and not _list_types(after):
            return False
        more = set(_list_types(after)) - set(_list_types(before))
        return more <= set(SCALARS)


def _pair_parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The parts of a schema beside those that stand for them, True where there are none."""
    for name, part in before.get("properties", {}).items():
        yield part, after.get("properties", {}).get(name, True)
    for key in ("items", "additionalProperties"):
        if isinstance(before.get(key), Mapping):
            yield before[key], after.get(key, True)
    for key in _COMBINING:
        kept = after.get(key, [])
        for at, part in enumerate(before.get(key, [])):
            yield part, kept[at] if at < len(kept) else True


def _list_types(schema: Any) -> list[str]:
    types = schema.get("type", []) if isinstance(schema, Mapping) else []
    return [types] if isinstance(types, str) else list(types)


def _get_defs(schema: Any) -> Mapping[str, Any]:
    found = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _get_reference(schema: Any) -> str:
    found = schema.get("$ref", "") if isinstance(schema, Mapping) else ""
    return found if isinstance(found, str) else ""


def _resolve(schema: Any, defs: Mapping[str, Any]) -> Any:
    for _ in range(MAX_DEPTH):
        reference = _get_reference(schema)
        if not reference.startswith(_PREFIX):
            return schema
        schema = defs.get(reference.removeprefix(_PREFIX))
    return None
