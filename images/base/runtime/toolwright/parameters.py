"""Parameters as they stand in a request: OpenAPI's styles, which are RFC 6570's expansions.

https://spec.openapis.org/oas/v3.1.1#style-examples and https://www.rfc-editor.org/rfc/rfc6570
"""

from __future__ import annotations

import re
from functools import lru_cache

from .errors import ArgumentInvalid
from .styles import Resolved, resolved
from .values import (
    encode_reserved,
    encode_segment,
    is_absent,
    percent_encode,
    scalar,
    to_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")
DELIMITERS = {"spaceDelimited": "%20", "tabDelimited": "%09", "pipeDelimited": "%7C"}
_ILLEGAL = re.compile(r"[^A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+|%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_COOKIE = re.compile(r"[^ -:<-~]")
_DOTS = ("", ".", "..")


def expand_path(template: str, values: Mapping[str, Any]) -> str:
    """A template's path with its placeholders filled in.

    No value can change the route: each stays inside its segment, and one that leaves a segment
    empty, `.` or `..` raises ArgumentInvalid.
    """
    return "/".join([_segment(pieces, values) for pieces in _segments(template)])


def expand_template_query(template: str, values: Mapping[str, Any]) -> str:
    """The query that stands in a template, with any placeholder filled in."""
    pieces = _pieces(template)
    return _fill(pieces, lambda name: percent_encode(scalar(_given(name, values))))


def query_pairs(name: str, value: Any) -> list[str]:
    """A query, cookie or form parameter as encoded `name=value` texts; none where it is absent."""
    if isinstance(value, str):
        return [f"{percent_encode(name)}={percent_encode(value)}"]
    given = resolved(value, "form", True)
    value = given.value
    encode = encode_reserved if given.reserved else percent_encode
    if is_absent(value):
        return []
    if given.style == "cookie":
        return _unescaped_pairs(name, value, given.explode)
    if given.style in ("whole", "wholeJson"):
        text = to_json(value, True) if given.style == "wholeJson" else scalar(value)
        return [percent_encode(text)] if text else []
    key = percent_encode(name)
    if given.style == "json":
        return [f"{key}={encode(to_json(value, ascii_only=True))}"]
    if given.style == "deepObject" and isinstance(value, dict | list | tuple):
        members = deep_members(name, value)
        return [f"{percent_encode(key)}={encode(text)}" for key, text in members]
    if isinstance(value, list | tuple | dict) and not given.explode:
        joined = DELIMITERS.get(given.style, ",").join(map(encode, _flat(value)))
        return [f"{key}={joined}"] if _flat(value) else []
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in _repeated(percent_encode(k), v, encode)]
    return _repeated(key, value, encode)


def path_text(name: str, value: Any) -> str:
    """A path parameter: style simple, label or matrix."""
    if isinstance(value, str):
        return percent_encode(value)
    given = resolved(value, "simple", False)
    value = given.value
    if is_absent(value):
        raise ArgumentInvalid(f"/{name}", "is missing, and a path cannot leave it out")
    encode = encode_segment if given.reserved else percent_encode
    if given.style == "label":
        return _prefixed(".", value, given.explode, encode)
    if given.style == "matrix":
        return _matrix(percent_encode(name), value, given.explode, encode)
    return encode(to_json(value, True)) if given.style == "json" else _simple(given, encode)


def header_text(name: str, value: Any) -> str | None:
    """A header parameter (style simple, not percent-encoded), or None where it is absent."""
    text = value if isinstance(value, str) else _header_value(value)
    if text is None:
        return None
    if _CONTROL.search(text):
        raise ArgumentInvalid(f"/{name}", "holds a control character, which no header may")
    return text.strip(" \t")


def _header_value(value: Any) -> str | None:
    given = resolved(value, "simple", False)
    if is_absent(given.value):
        return None
    return to_json(given.value, True) if given.style == "json" else _simple(given, str)


@lru_cache(maxsize=256)
def _segments(template: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_pieces, template.split("/")))


def _segment(pieces: tuple[str, ...], values: Mapping[str, Any]) -> str:
    if len(pieces) == 1:
        return pieces[0]
    expanded = _fill(pieces, lambda name: path_text(name, _given(name, values)))
    if expanded in _DOTS:
        raise ArgumentInvalid(f"/{pieces[1]}", f"{expanded!r} in a path would change the route")
    return expanded


def _fill(pieces: tuple[str, ...], text: Callable[[str], str]) -> str:
    return "".join(
        _filled(piece, text(piece)) if index % 2 else piece for index, piece in enumerate(pieces)
    )


def _pieces(template: str) -> tuple[str, ...]:
    """A template's literal parts as they stand in a URL, and between them the names to fill in."""
    parts = PLACEHOLDER.split(template)
    parts[::2] = [_ILLEGAL.sub(_triplets, part) for part in parts[::2]]
    return tuple(parts)


def _filled(name: str, text: str) -> str:
    if not text:
        raise ArgumentInvalid(f"/{name}", "is empty, and a path cannot leave it out")
    return text


def _triplets(match: re.Match[str]) -> str:
    return "%25" if match[0] == "%" else percent_encode(match[0])


def _given(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise TypeError(f"the template needs {name!r}, which path= does not hold")
    return values[name]


def _flat(value: Any) -> list[str]:
    """An array's items, or an object's names and values in turn, without absent ones."""
    if isinstance(value, dict):
        pairs = [(k, v) for k, v in value.items() if not is_absent(v)]
        return [text for k, v in pairs for text in (str(k), scalar(v))]
    return [scalar(item) for item in value if not is_absent(item)]


def _repeated(key: str, value: Any, encode: Callable[[str], str]) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value]
    return [f"{key}={encode(scalar(item))}" for item in items if not is_absent(item)]


def _unescaped_pairs(name: str, value: Any, explode: bool) -> list[str]:
    """A cookie's pairs, none of which can begin another cookie or end the header."""
    if isinstance(value, list | tuple | dict) and not explode:
        pairs = [(name, ",".join(_flat(value)))] if _flat(value) else []
    elif isinstance(value, dict):
        pairs = [(str(k), scalar(v)) for k, v in value.items() if not is_absent(v)]
    else:
        items = value if isinstance(value, list | tuple) else [value]
        pairs = [(name, scalar(item)) for item in items if not is_absent(item)]
    for key, text in pairs:
        if _NO_COOKIE.search(text) or _NO_COOKIE.search(key) or "=" in key:
            reason = "has to be given percent-encoded: a cookie cannot hold all of its characters"
            raise ArgumentInvalid(f"/{name}", reason)
    return [f"{key}={text}" for key, text in pairs]


def deep_members(name: str, value: Any) -> list[tuple[str, str]]:
    """The names `name[key]` and the texts of a value that is written member by member.

    OpenAPI does not say how lists are written: those of objects with their numbers as keys, others
    as `name[]`. Servers that know brackets take that; of a name that is repeated without them many
    keep the last value only.
    """
    if isinstance(value, dict):
        inner = [(f"{name}[{key}]", item) for key, item in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(v, dict | list) for v in value):
        inner = [(f"{name}[{index}]", item) for index, item in enumerate(value)]
    elif isinstance(value, list | tuple):
        return [(f"{name}[]", scalar(item)) for item in value if not is_absent(item)]
    else:
        return [] if is_absent(value) else [(name, scalar(value))]
    return [member for key, item in inner for member in deep_members(key, item)]


def _simple(given: Resolved, encode: Callable[[str], str]) -> str:
    value = given.value
    if isinstance(value, dict) and given.explode:
        return ",".join(_assignments(value, encode))
    if isinstance(value, list | tuple | dict):
        return ",".join(map(encode, _flat(value)))
    return encode(scalar(value))


def _assignments(value: Mapping[str, Any], encode: Callable[[str], str]) -> list[str]:
    pairs = [(str(k), v) for k, v in value.items() if not is_absent(v)]
    return [f"{encode(k)}={encode(scalar(v))}" for k, v in pairs]


def _prefixed(prefix: str, value: Any, explode: bool, encode: Callable[[str], str]) -> str:
    if isinstance(value, dict) and explode:
        items = _assignments(value, encode)
    elif isinstance(value, list | tuple | dict):
        items = list(map(encode, _flat(value)))
    else:
        items = [encode(scalar(value))]
    return prefix + (prefix if explode else ",").join(items) if items else ""


def _matrix(name: str, value: Any, explode: bool, encode: Callable[[str], str]) -> str:
    if isinstance(value, dict) and explode:
        return "".join(f";{pair}" for pair in _assignments(value, encode))
    items = _flat(value) if isinstance(value, list | tuple | dict) else [scalar(value)]
    if explode:
        return "".join(f";{name}={encode(item)}" if item else f";{name}" for item in items)
    text = ",".join(map(encode, items))
    return (f";{name}={text}" if text else f";{name}") if items else ""
