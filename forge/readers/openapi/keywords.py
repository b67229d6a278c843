"""The keywords of JSON Schema whose values are plain: what each accepts, leniently read.

A reader returns the value to keep, None to leave the keyword out silently, or INVALID.
"""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from forge.prose import clean

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
MAX_PATTERN = 2000
_XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}\Z")
_NODE_TYPES = {"attribute": "attribute", "element": "wrapped"}
"""What 3.2's `nodeType` says in the words of 3.1; on what is no list `wrapped` says nothing."""
_ALIASES = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "text": "string",
    "str": "string",
    "date": "string",
    "datetime": "string",
    "uuid": "string",
}


class _Invalid:
    pass


INVALID: Final = _Invalid()


def bounded(value: Any, limit: int = 100_000) -> Any:
    """A JSON value that fits in `limit` characters, integers in 64 bits; else INVALID."""
    try:
        if isinstance(value, dict | list):
            text = json.dumps(value)
            return value if len(text) <= limit else INVALID
    except (ValueError, RecursionError):
        return INVALID
    if isinstance(value, str):
        return value if len(value) <= limit else INVALID
    return _word_sized(value)


def _word_sized(value: Any) -> Any:
    is_big = isinstance(value, int) and not -(2**63) <= value < 2**64
    return (float(value) if abs(value) < 10**300 else INVALID) if is_big else value


def _type(raw: Any) -> Any:
    if isinstance(raw, list):
        # YAML's `[string, null]` holds the null value, not the word.
        kinds = ["null" if item is None else _type(item) for item in raw]
        if not kinds or None in kinds:
            return None
        if INVALID in kinds or "file" in kinds:
            return INVALID
        kinds = list(dict.fromkeys(kinds))
        return kinds[0] if len(kinds) == 1 else kinds
    if not isinstance(raw, str):
        return None if raw is None else INVALID
    name = raw.strip().lower()
    if name in ("any", "mixed", ""):
        return None
    name = _ALIASES.get(name, name)
    return name if name in TYPES or name == "file" else INVALID


def _number(raw: Any) -> Any:
    if isinstance(raw, str):
        try:
            raw = float(raw) if any(c in raw for c in ".eE") else int(raw)
        except ValueError:
            return INVALID
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None if raw is None else INVALID
    return _word_sized(raw) if raw == raw and abs(raw) != float("inf") else INVALID


def _positive(raw: Any) -> Any:
    number = _number(raw)
    return number if number is None or number is INVALID or number > 0 else INVALID


def _count(raw: Any) -> Any:
    number = _number(raw)
    if number is None or number is INVALID:
        return number
    return int(number) if number >= 0 and number == int(number) else INVALID


def _exclusive(raw: Any) -> Any:
    return raw if isinstance(raw, bool) else _number(raw)


def _flag(raw: Any) -> Any:
    if isinstance(raw, str) and raw.lower() in ("true", "false"):
        raw = raw.lower() == "true"
    return raw if isinstance(raw, bool) else None if raw is None else INVALID


def _names(raw: Any) -> Any:
    if raw is None or raw == []:
        return None
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw):
        return INVALID
    return list(dict.fromkeys(raw))


def _enum(raw: Any) -> Any:
    if not isinstance(raw, list) or not raw:
        return None if raw is None else INVALID
    values = [bounded(value) for value in raw]
    return INVALID if any(value is INVALID for value in values) else values


@functools.lru_cache(maxsize=4096)
def _pattern(raw: Any) -> Any:
    if not isinstance(raw, str) or len(raw) > MAX_PATTERN:
        return None if raw is None else INVALID
    try:
        with warnings.catch_warnings():
            # "Possible nested set": such a pattern works today and would mean another thing later.
            warnings.simplefilter("error", FutureWarning)
            re.compile(raw)
    except (re.error, FutureWarning, OverflowError, RecursionError):
        return INVALID
    return raw


def _hashable_pattern(raw: Any) -> Any:
    return _pattern(raw) if isinstance(raw, str) else None if raw is None else INVALID


def _word(raw: Any) -> Any:
    return raw[:80] if isinstance(raw, str) and raw.isprintable() else None


def _small(raw: Any) -> Any:
    """A default or an example: worth keeping only while it is short."""
    value = bounded(raw, 200)
    return None if value is INVALID else value


def _example(raw: Any) -> Any:
    fits = isinstance(raw, str | int | float) and len(str(raw)) <= 60
    return raw if fits and bounded(raw) is not INVALID and str(raw).isprintable() else None


def _examples(raw: Any) -> Any:
    values = [_example(value) for value in raw[:2]] if isinstance(raw, list) else []
    return [value for value in values if value is not None] or None


def _dependent(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return INVALID
    made = {name: _names(value) for name, value in raw.items()}
    return (
        INVALID
        if any(value is INVALID for value in made.values())
        else {name: value or [] for name, value in made.items()}
    )


def _xml(raw: Any) -> Any:
    """An XML object with names that are XML names: element names reach the wire."""
    if not isinstance(raw, dict):
        return None
    made: dict[str, Any] = {}
    for key in ("name", "prefix"):
        if isinstance(raw.get(key), str) and _XML_NAME.match(raw[key]):
            made[key] = raw[key]
    uri = raw.get("namespace")
    if isinstance(uri, str) and uri.isprintable() and len(uri) <= 300:
        made["namespace"] = uri
    made |= {key: True for key in ("attribute", "wrapped") if raw.get(key) is True}
    if raw.get("nodeType") in _NODE_TYPES:
        made[_NODE_TYPES[raw["nodeType"]]] = True
    return made or None


VALUES: dict[str, Callable[[Any], Any]] = {
    "type": _type,
    "title": lambda raw: clean(raw, 120) or None,
    "description": lambda raw: clean(raw, 500) or None,
    "format": _word,
    "enum": _enum,
    "const": bounded,
    "default": _small,
    "example": _example,
    "examples": _examples,
    "pattern": _hashable_pattern,
    "required": _names,
    "xml": _xml,
    "dependentRequired": _dependent,
    "contentEncoding": _word,
    "contentMediaType": _word,
    "multipleOf": _positive,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _exclusive,
    "exclusiveMaximum": _exclusive,
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated", "uniqueItems"), _flag),
    **dict.fromkeys(
        (
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
        ),
        _count,
    ),
}
