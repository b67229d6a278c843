"""Comparing a value with the text that stands for it on the wire.

OpenAPI leaves open how nested values, null and floating-point numbers are written as text (3.1,
appendix B), so every usual way is taken; a different value never is.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][-+]?\d{1,3})?\Z")


def is_equal_json(left: Any, right: Any) -> bool:
    """JSON equality: 1 equals 1.0, and True does not equal 1 (2020-12 core, section 4.2.2)."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            is_equal_json(left[key], right[key]) for key in left
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(is_equal_json, left, right))
    return bool(left == right)


def reads_as(text: str, value: Any) -> bool:
    """Whether the text stands for the value."""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if value is None:
        return text in ("", "null")
    if isinstance(value, int | float):
        return bool(_NUMBER.match(text)) and _equals_number(text, value)
    if isinstance(value, str):
        return text == value
    parsed = parse_json(text)
    return parsed is not NOT_JSON and is_equal_json(parsed, value)


def _equals_number(text: str, value: float) -> bool:
    """Whether a numeral is that number: exactly for an integer, else as far as a double goes."""
    if isinstance(value, int) and text.lstrip("-").isdigit():
        return int(text) == value
    return float(text) == value


def all_read_as(texts: Sequence[str], values: Sequence[Any]) -> bool:
    """Whether texts stand for a list; null items may be left out (RFC 6570, section 3.2.1)."""
    if len(texts) != len(values):
        values = [value for value in values if value is not None]
    return len(texts) == len(values) and all(map(reads_as, texts, values))


def members_read_as(pairs: Iterable[tuple[str, str]], value: Mapping[str, Any]) -> bool:
    """Whether pairs of texts stand for an object. A list may be written as repeated pairs; null and
    an empty list may be left out (RFC 6570, section 2.3).
    """
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(text)
    wanted = {k: item for k, item in value.items() if k in found or item not in (None, [])}
    return found.keys() == wanted.keys() and all(
        _member_reads_as(texts, wanted[name]) for name, texts in found.items()
    )


def _member_reads_as(texts: list[str], value: Any) -> bool:
    if len(texts) == 1 and reads_as(texts[0], value):
        return True
    if not isinstance(value, list):
        return False
    return all_read_as(texts, value) or (
        len(texts) == 1 and all_read_as(texts[0].split(","), value)
    )


NOT_JSON = object()


def parse_json(text: str | bytes) -> Any:
    """The JSON value of a text, or NOT_JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NOT_JSON


def decode_base64(text: Any) -> bytes | None:
    """What a string stands for in base64 (RFC 4648), either alphabet; None where it is not that."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text.translate(_STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return None


_STANDARD = str.maketrans("-_", "+/")
