"""Sample strings: of a format, of a pattern, of a length."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from typing import Any

from sandbox import pattern

MAX_LENGTH = 20_000
AWKWARD = "/ ?&=#%2F+é\U0001f600"
"""What a builder that escapes carelessly loses (RFC 3986, section 2.2), and what is not ASCII."""

_FORMATS = {
    "date": "2024-{month:02d}-{day:02d}",
    "date-time": "2024-{month:02d}-{day:02d}T10:{minute:02d}:00Z",
    "datetime": "2024-{month:02d}-{day:02d}T10:{minute:02d}:00Z",
    "time": "10:{minute:02d}:00Z",
    "duration": "PT{n}S",
    "uuid": "{n:08X}-1111-4111-8111-abcd{n:08x}",
    "guid": "{n:08X}-1111-4111-8111-ABCD{n:08x}",
    "email": "User{n}@example.com",
    "idn-email": "User{n}@example.com",
    "uri": "https://example.com/Item{n}?q=a%20b&c=d+e#f",
    "url": "https://example.com/Item{n}?q=a%20b&c=d+e#f",
    "iri": "https://example.com/Item{n}?q=é",
    "uri-reference": "/Item{n}",
    "hostname": "Host{n}.example.com",
    "idn-hostname": "Host{n}.example.com",
    "ipv4": "192.0.2.{byte}",
    "ip": "192.0.2.{byte}",
    "ipv6": "2001:db8::{n:x}",
    "mac": "02:00:00:00:00:{byte:02x}",
    "json-pointer": "/Item{n}",
    "int32": "{n}",
    "int64": "{n}",
}
_WITH_OFFSET = "2024-{month:02d}-{day:02d}T10:{minute:02d}:00.125+02:00"
_CHECKED = (_FORMATS.keys() - {"int32", "int64"}) | {"byte", "binary"}
"""Formats that an API may well insist on; other names say nothing of a string's letters."""
_LAST_RESORTS = ("abc{n}", "ABC", "1234", "a@example.com", "Abcdef1!{n}", "https://example.com/{n}")


def sample_string(
    schema: Mapping[str, Any], n: int, rng: random.Random, suffix: str = ""
) -> str | None:
    """A string for the schema's keywords, told apart from others by `n`; None where none is found.

    `suffix` is appended where nothing but the length limits the string.
    """
    low, high = _length(schema, "minLength", 0), _length(schema, "maxLength", MAX_LENGTH)
    if low > MAX_LENGTH or high < low:
        return None
    if schema.get("contentEncoding") == "base64" or schema.get("format") in ("byte", "binary"):
        return _encoded(n, low, high)
    wanted = schema.get("pattern")
    if isinstance(wanted, str) and pattern.compiles(wanted):
        return _matching(wanted, schema, n, low, high, rng)
    formatted = _formatted(schema.get("format"), n)
    if formatted is not None:
        return formatted if low <= len(formatted) <= high else None
    return _plain(n, low, high, suffix)


def fitted(schema: Mapping[str, Any], text: str) -> str | None:
    """The text, cut or lengthened to what the schema's length asks for; None where the schema says
    more than that of its strings.
    """
    if {"pattern", "contentEncoding", "enum", "const"} & schema.keys():
        return None
    if schema.get("format") in _CHECKED:
        return None
    low, high = _length(schema, "minLength", 0), _length(schema, "maxLength", MAX_LENGTH)
    return text[:high].ljust(low, "x") if low <= MAX_LENGTH and high >= low else None


def _length(schema: Mapping[str, Any], key: str, default: int) -> int:
    value = schema.get(key)
    return int(value) if isinstance(value, int | float) and value >= 0 else default


def _formatted(name: Any, n: int) -> str | None:
    template = _FORMATS.get(name) if isinstance(name, str) else None
    if name == "date-time" and n % 2:
        template = _WITH_OFFSET
    if template is None:
        return None
    return template.format(n=n, month=n % 12 + 1, day=n % 28 + 1, minute=n % 60, byte=n % 250 + 1)


def _plain(n: int, low: int, high: int, suffix: str) -> str:
    for text in (f"v{n}W{suffix}", f"v{n}W", f"{n}"):
        if len(text) <= high:
            return text.ljust(low, "x")
    return f"{n}"[-high:] if high else ""


def _encoded(n: int, low: int, high: int) -> str | None:
    # Ends, where there is room, in what base64's two letters stand for that URLs write otherwise.
    for data in ((b"bytes-%d" % n).ljust(12, b".") + b"\xff\xff\xff\xfb\xef\xbe", b"%d\xff" % n):
        text = base64.b64encode(data.ljust(low * 3 // 4, b"x")).decode()
        if low <= len(text) <= high:
            return text
    return None


def _matching(
    wanted: str, schema: Mapping[str, Any], n: int, low: int, high: int, rng: random.Random
) -> str | None:
    candidates = [_formatted(schema.get("format"), n) or "", _plain(n, low, min(high, 64), "")]
    parsed = pattern.read(wanted)
    if parsed is not None:
        for extent in (3, 3, 8, 0, 0, low, low, 40):
            try:
                candidates.append(parsed.sample(rng, min(extent, 1_000)))
            except pattern.Unreadable:
                break
    candidates += [text.format(n=n) for text in _LAST_RESORTS]
    fitting = [text for text in candidates if text and low <= len(text) <= high]
    fitting = [text for text in fitting if text.strip() == text]
    verdicts = {text: pattern.matches(wanted, text) for text in fitting}
    for text in fitting:
        if verdicts[text]:
            return text
    # Where no match can be told safely, what was made from the pattern is the likeliest to fit.
    return next((text for text in fitting[2:] if verdicts[text] is None), None)
