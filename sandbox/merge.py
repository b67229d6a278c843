"""Two schemas as one: the conjunction that `allOf` means, as far as sampling needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LARGER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_JOINED = frozenset({"properties", "patternProperties", "dependentRequired", "dependentSchemas"})
_BOTH = frozenset({"items", "contains", "propertyNames"})
_BRANCHES = frozenset({"oneOf", "anyOf", "$ref"})
_FIRST = frozenset({"format", "pattern", "contentEncoding", "readOnly", "writeOnly", "if"})


def merge(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose instances are meant to satisfy both; the caller checks what it samples."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] == value:
            merged[key] = value
        else:
            _combine(merged, key, merged[key], value)
    return merged


def _combine(merged: dict[str, Any], key: str, left: Any, right: Any) -> None:
    if key in _JOINED:
        merged[key] = _join(left, right)
    elif key == "required":
        merged[key] = list(dict.fromkeys([*left, *right]))
    elif key in _LARGER:
        merged[key] = max(left, right)
    elif key in _SMALLER:
        merged[key] = min(left, right)
    elif key == "enum":
        merged[key] = [value for value in left if value in right] or right
    elif key == "type":
        merged[key] = _types(left, right)
    elif key == "allOf":
        merged[key] = [*left, *right]
    elif key == "additionalProperties":
        merged[key] = False if left is False or right is False else {"allOf": [left, right]}
    elif key in _BRANCHES:
        merged["allOf"] = [*merged.get("allOf", ()), {key: right}]
    elif key in _BOTH:
        merged[key] = {"allOf": [left, right]}
    elif key == "not":
        merged[key] = {"anyOf": [left, right]}
    elif key not in _FIRST:
        merged[key] = right


def _join(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(left)
    for name, schema in right.items():
        both = name in joined and joined[name] != schema
        joined[name] = {"allOf": [joined[name], schema]} if both else schema
    return joined


def _types(left: Any, right: Any) -> Any:
    wanted = [right] if isinstance(right, str) else right
    offered = [left] if isinstance(left, str) else left
    shared = [name for name in offered if name in wanted]
    if not shared and {"integer", "number"} <= {*offered, *wanted}:
        shared = ["integer"]
    return shared[0] if len(shared) == 1 else shared or offered
