"""JSON values: the one that is absent, and how values are written as text."""

from __future__ import annotations

import json
import re

from .errors import ArgumentInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOT_UNRESERVED = re.compile(r"[^A-Za-z0-9\-._~]+")
# RFC 6570's reserved expansion without what would end or split a query, or be read as a space.
_NOT_ALLOWED_IN_QUERY = re.compile(r"[^A-Za-z0-9\-._~:/?@!$'()*,;]+")
_NOT_ALLOWED_IN_SEGMENT = re.compile(r"[^A-Za-z0-9\-._~:@!$&'()*+,;=]+")
_PLAIN_EXPONENTS = 40
# A call for each of the scalars of a large value would take as long as all the rest.
_SCALARS = frozenset((str, int, float, bool, type(None)))


class Unset:
    """The type of UNSET: an argument that was not given."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


def is_absent(value: Any) -> bool:
    """Whether a parameter is left out of a request: null is undefined to RFC 6570, section 3.2.1"""
    return value is None or isinstance(value, Unset)


def without_unset(value: Any) -> Any:
    """A JSON value with every UNSET member and item left out."""
    if isinstance(value, dict):
        return {
            name: item if type(item) in _SCALARS else without_unset(item)
            for name, item in value.items()
            if not isinstance(item, Unset)
        }
    if isinstance(value, list | tuple):
        return [
            item if type(item) in _SCALARS else without_unset(item)
            for item in value
            if not isinstance(item, Unset)
        ]
    return value


def to_json(value: Any, ascii_only: bool = False) -> str:
    """Compact JSON. Raises ArgumentInvalid for what JSON cannot hold, such as infinity."""
    try:
        return json.dumps(
            without_unset(value),
            ensure_ascii=ascii_only,
            allow_nan=False,
            separators=(",", ":"),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise ArgumentInvalid("", f"cannot be written as JSON: {error}") from error


def scalar(value: Any) -> str:
    """A value as a parameter's text: `true`, exact integers, decimals without an exponent.

    An array or object inside a parameter that has no style for it is written as JSON.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, int):
        return str(value)
    return to_json(value, ascii_only=True)


def utf8(text: str) -> bytes:
    """Raises ArgumentInvalid for half of a surrogate pair, which UTF-8 cannot hold."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentInvalid("", "holds half of a surrogate pair") from error


def percent_encode(text: str) -> str:
    """All but RFC 3986's unreserved characters as UTF-8 triplets (RFC 6570, section 3.2.1)."""
    return _NOT_UNRESERVED.sub(_triplets, text)


def encode_reserved(text: str) -> str:
    """For `allowReserved`: reserved characters stay, but the value always decodes to itself."""
    return _NOT_ALLOWED_IN_QUERY.sub(_triplets, text)


def encode_segment(text: str) -> str:
    """For `allowReserved` in a path: what a segment may hold stays; a slash does not."""
    return _NOT_ALLOWED_IN_SEGMENT.sub(_triplets, text)


def _triplets(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in utf8(match[0]))


def _decimal(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        raise ArgumentInvalid("", "is not a finite number")
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent or abs(int(exponent)) > _PLAIN_EXPONENTS:
        return repr(number).replace("e+", "e")
    return _shifted(mantissa, int(exponent))


def _shifted(mantissa: str, exponent: int) -> str:
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, fraction = digits.partition(".")
    point = len(whole) + exponent
    digits = whole + fraction
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    digits = digits.ljust(point, "0")
    return sign + digits[:point] + (f".{digits[point:]}" if digits[point:] else "")
