"""JSON Schema from the values that were seen: types and names, never what was in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from forge.recorded.secrets import is_secret, showable

MAX_DEPTH = 12
MAX_PROPERTIES = 200
MAX_ITEMS = 20


def shape(values: Sequence[Any], *, shares: bool = False, depth: int = 0) -> dict[str, Any]:
    """A schema that admits all the values, as wide as they are apart. With `shares`, plain values
    of its leaves are told as examples.

    Null says nothing of what else may stand there. A whole number is a number: the next value seen
    may be 10.5.
    """
    if depth == MAX_DEPTH:
        return {}
    kinds = sorted({_kind(value) for value in values})
    if not kinds or "null" in kinds:
        return {}
    if len(kinds) > 1:
        return {"type": kinds}
    if kinds == ["object"]:
        return _object(values, shares, depth)
    if kinds == ["array"]:
        items = [item for value in values for item in value[:MAX_ITEMS]]
        found = shape(items, shares=shares, depth=depth + 1)
        return {"type": "array", "items": found} if found else {"type": "array"}
    schema: dict[str, Any] = {"type": kinds[0]}
    if shares and showable(values[0]):
        schema["examples"] = [values[0]]
    return schema


def _object(values: Iterable[Any], shares: bool, depth: int) -> dict[str, Any]:
    seen: dict[str, list[Any]] = {}
    for value in values:
        for name, inner in value.items():
            if name in seen or len(seen) < MAX_PROPERTIES:
                seen.setdefault(name, []).append(inner)
    found = {
        name: shape(inner, shares=shares and not is_secret(name), depth=depth + 1)
        for name, inner in seen.items()
    }
    return {"type": "object", "properties": found} if found else {"type": "object"}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
