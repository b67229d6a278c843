"""Lenient readers of the JSON Schema keywords whose values are not schemas.

A reader returns the value to keep, None to drop the keyword silently, or INVALID to report it.
"""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from forge.text import sanitize_prose

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
MAX_PATTERN = 2000
_COLLECTION = (dict, list)
_LITERAL = re.compile(r"/(.+)/([dgimsuvy]*)\Z", re.DOTALL)
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


def limit_value(value: Any, limit: int = 100_000) -> Any:
    """Return a JSON value that fits in `limit` characters, integers in 64 bits; else INVALID."""
    try:
        if isinstance(value, _COLLECTION):
            text = json.dumps(value)
            return value if len(text) <= limit else INVALID
    except (ValueError, RecursionError):
        return INVALID
    if isinstance(value, str):
        return value if len(value) <= limit else INVALID
    return _limit_number(value)


def _limit_number(value: Any) -> Any:
    is_big = isinstance(value, int) and not -(2**63) <= value < 2**64
    return (float(value) if abs(value) < 10**300 else INVALID) if is_big else value


def _read_type(raw: Any) -> Any:
    if isinstance(raw, list):
        # YAML's `[string, null]` holds the null value, not the word.
        kinds = ["null" if item is None else _read_type(item) for item in raw]
        if not kinds or None in kinds:
            return None
        if INVALID in kinds or "file" in kinds:
            return INVALID
        kinds = list(dict.fromkeys(kinds))
        return kinds[0] if len(kinds) == 1 else kinds
    if not isinstance(raw, str):
        return None if raw is None else INVALID
    if raw in TYPES:
        return raw
    name = raw.strip().lower()
    if name in ("any", "mixed", ""):
        return None
    name = _ALIASES.get(name, name)
    return name if name in TYPES or name == "file" else INVALID


def _read_number(raw: Any) -> Any:
    if isinstance(raw, str):
        try:
            raw = float(raw) if any(c in raw for c in ".eE") else int(raw)
        except ValueError:
            return INVALID
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None if raw is None else INVALID
    return _limit_number(raw) if raw == raw and abs(raw) != float("inf") else INVALID


def _read_positive(raw: Any) -> Any:
    number = _read_number(raw)
    return number if number is None or number is INVALID or number > 0 else INVALID


def _read_count(raw: Any) -> Any:
    number = _read_number(raw)
    if number is None or number is INVALID:
        return number
    return int(number) if number >= 0 and number == int(number) else INVALID


def _read_exclusive(raw: Any) -> Any:
    return raw if isinstance(raw, bool) else _read_number(raw)


def _read_flag(raw: Any) -> Any:
    if isinstance(raw, str) and raw.lower() in ("true", "false"):
        raw = raw.lower() == "true"
    return raw if isinstance(raw, bool) else None if raw is None else INVALID


def _read_names(raw: Any) -> Any:
    if raw is None or raw == []:
        return None
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw):
        return INVALID
    return list(dict.fromkeys(raw))


def _read_enum(raw: Any) -> Any:
    if not isinstance(raw, list) or not raw:
        return None if raw is None else INVALID
    values = [limit_value(value) for value in raw]
    return INVALID if any(value is INVALID for value in values) else values


@functools.lru_cache(maxsize=4096)
def _check_pattern(raw: Any) -> Any:
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


def _read_pattern(raw: Any) -> Any:
    if not isinstance(raw, str):
        return None if raw is None else INVALID
    literal = _LITERAL.match(raw)
    # A schema has no flags, so a pattern for both cases cannot be kept.
    return _check_pattern(raw) if literal is None else _strip_slashes(*literal.groups())


def _strip_slashes(pattern: str, flags: str) -> Any:
    """Return the pattern of a regular expression that is written as in JavaScript. The slashes,
    taken as part of it, would refuse what it is for: nothing stands before `^`.
    """
    return None if "i" in flags else _check_pattern(pattern.replace("\\/", "/"))


def _read_word(raw: Any) -> Any:
    return raw[:80] if isinstance(raw, str) and raw.isprintable() else None


def _read_short_value(raw: Any) -> Any:
    """Return a default or an example while it is short; else None."""
    value = limit_value(raw, 200)
    return None if value is INVALID else value


def _read_example(raw: Any) -> Any:
    fits = isinstance(raw, str | int | float) and len(str(raw)) <= 60
    return raw if fits and limit_value(raw) is not INVALID and str(raw).isprintable() else None


def _read_examples(raw: Any) -> Any:
    values = [_read_example(value) for value in raw[:2]] if isinstance(raw, list) else []
    return [value for value in values if value is not None] or None


def _read_dependent(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return INVALID
    made = {name: _read_names(value) for name, value in raw.items()}
    return (
        INVALID
        if any(value is INVALID for value in made.values())
        else {name: value or [] for name, value in made.items()}
    )


def _read_xml(raw: Any) -> Any:
    """Read an XML object (OpenAPI 3.1 section 4.8.26), only with valid XML names, since they are
    sent in requests.
    """
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
    node_type = raw.get("nodeType")
    if isinstance(node_type, str) and node_type in _NODE_TYPES:
        made[_NODE_TYPES[node_type]] = True
    return made or None


VALUES: dict[str, Callable[[Any], Any]] = {
    "type": _read_type,
    "title": lambda raw: sanitize_prose(raw, 120) or None,
    "description": lambda raw: sanitize_prose(raw, 500) or None,
    "format": _read_word,
    "enum": _read_enum,
    "const": limit_value,
    "default": _read_short_value,
    "example": _read_example,
    "examples": _read_examples,
    "pattern": _read_pattern,
    "required": _read_names,
    "xml": _read_xml,
    "dependentRequired": _read_dependent,
    "contentEncoding": _read_word,
    "contentMediaType": _read_word,
    "multipleOf": _read_positive,
    "minimum": _read_number,
    "maximum": _read_number,
    "exclusiveMinimum": _read_exclusive,
    "exclusiveMaximum": _read_exclusive,
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated", "uniqueItems"), _read_flag),
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
        _read_count,
    ),
}
