"""Whole numbers that JSON writes as 5.0: integers to JSON Schema, floats to Python."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 20
EXACT = 2**53
"""Below this a float is exactly the number that was written."""


def whole(schema: Any, value: Any, depth: int = 0) -> Any:
    """The value with `int`s where its schema's `type`, in its own `properties` and `items`, says
    integer and not number.
    """
    if isinstance(value, float):
        return int(value) if _is_whole(schema, value) else value
    if not isinstance(schema, dict) or depth == MAX_DEPTH:
        return value
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        known = schema["properties"]
        return {name: whole(known.get(name), part, depth + 1) for name, part in value.items()}
    if isinstance(value, list) and _has_integers(schema.get("items")):
        return [whole(schema["items"], part, depth + 1) for part in value]
    return value


def _has_integers(schema: Any) -> bool:
    """Whether there may be any in a value of that schema, at a glance."""
    return isinstance(schema, dict) and (
        "properties" in schema or "items" in schema or "integer" in _kinds(schema)
    )


def _is_whole(schema: Any, value: float) -> bool:
    kinds = _kinds(schema)
    wanted = "integer" in kinds and "number" not in kinds
    return wanted and -EXACT < value < EXACT and value.is_integer()


def _kinds(schema: Any) -> list[Any]:
    named = schema.get("type") if isinstance(schema, dict) else None
    return [named] if isinstance(named, str) else named if isinstance(named, list) else []
