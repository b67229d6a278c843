"""JSON by orjson, by the standard library where integers exceed 64 bits, so that none is lost.

Both read and write plain JSON (RFC 8259): a text with `NaN` or `Infinity` is none, and such a
number, which no JSON text holds, is written as `null`.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import orjson

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_INTEGER, _LONG_NEGATIVE = b"0" * 20, b"-" + b"0" * 19
"""Digits of integers that 64 bits may not hold, once every digit is a zero."""
_STRIDES = ((9, b"00"), (4, b"0000"))
"""Of 19 digits in a row every ninth byte is a digit, twice at least, and every fourth, four times.
The first is looked at in half the time, and says no of most texts that hold few numbers.
"""
_LONG = 4096
"""Bytes of a text that is looked at in strides first."""


def loads(content: bytes) -> Any:
    """Parse a JSON text. Raises ValueError or RecursionError."""
    if len(content) <= _LONG or _may_hold_digits(content):
        digits = content.translate(_DIGITS)
        if _LONG_INTEGER in digits or _LONG_NEGATIVE in digits:
            return _load_exactly(content.decode())
    return orjson.loads(content)


def _load_exactly(text: str) -> Any:
    """Parse by the standard library what orjson takes. Raises ValueError."""
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_finite)
    if "\\u" in text:
        # To orjson half a surrogate pair is no character. Cleaned away, it would join what
        # nothing found in two pieces.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _may_hold_digits(content: bytes) -> bool:
    """Whether a text may hold as many digits in a row as an integer beyond 64 bits has, in less
    time than it takes to find out.
    """
    return all(zeros in content[::step].translate(_DIGITS) for step, zeros in _STRIDES)


def dumps(value: Any) -> bytes:
    """Serialize compactly as UTF-8. Raises TypeError or ValueError for a value that is not JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_replace_infinite(value), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any number")
    return number


def _replace_infinite(value: Any) -> Any:
    """The value with `None` in the place of numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _replace_infinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_infinite(item) for item in value]
    return value
