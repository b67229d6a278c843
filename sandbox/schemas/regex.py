"""Strings for regular expressions and for what else a schema says of its strings.

Reads the part of ECMA-262 that JSON Schema asks for (2020-12 core, section 6.4).
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sandbox.schemas.patterns import MAX_PATTERN, is_expression, matches

_PRINTABLE = "".join(map(chr, range(33, 127)))
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
    "D": string.ascii_letters,
    "W": "-.",
    "S": string.ascii_letters + string.digits,
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_FLAGS = re.compile(r"\(\?[ims]{1,3}\)")
_COUNT = re.compile(r"\{(\d{1,6})(?:(,)(\d{1,6})?)?\}")


class PatternUnreadable(Exception):
    """The expression uses something that no string is made for here."""


@dataclass(frozen=True)
class _Chars:
    choices: str


@dataclass(frozen=True)
class _Sequence:
    items: tuple[_Node, ...]


@dataclass(frozen=True)
class _Alternatives:
    items: tuple[_Node, ...]


@dataclass(frozen=True)
class _Repeat:
    item: _Node
    low: int
    high: int | None


_Node = _Chars | _Sequence | _Alternatives | _Repeat


@dataclass(frozen=True)
class ParsedPattern:
    """An expression that strings can be made for."""

    tree: _Node

    def sample_text(self, rng: random.Random, extent: int) -> str:
        """A string for the expression; open-ended repeats run at most `extent` times further."""
        out: list[str] = []
        _write_sample(self.tree, rng, extent, out)
        return "".join(out)


@lru_cache(maxsize=2_000)
def parse_pattern(pattern: str) -> ParsedPattern | None:
    """The expression, or None where it is not one that this module reads."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        flags = _FLAGS.match(pattern)
        tree = _PatternParser(pattern[flags.end() :] if flags else pattern).parse_whole()
    except (PatternUnreadable, RecursionError):
        return None
    return ParsedPattern(tree)


def _write_sample(node: _Node, rng: random.Random, extent: int, out: list[str]) -> None:
    if isinstance(node, _Chars):
        out.append(rng.choice(node.choices))
    elif isinstance(node, _Sequence):
        for item in node.items:
            _write_sample(item, rng, extent, out)
    elif isinstance(node, _Alternatives):
        _write_sample(rng.choice(node.items), rng, extent, out)
    else:
        high = node.low + extent if node.high is None else min(node.high, node.low + extent)
        for _ in range(rng.randint(node.low, max(high, node.low))):
            if len(out) > 10_000:
                raise PatternUnreadable("too long")
            _write_sample(node.item, rng, extent, out)


class _PatternParser:
    """A recursive-descent reader; each method takes what it names and moves `at` behind it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def parse_whole(self) -> _Node:
        node = self._parse_alternatives()
        if self.at != len(self.text):
            raise PatternUnreadable(f"unexpected {self.text[self.at]!r}")
        return node

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        if self.at >= len(self.text):
            raise PatternUnreadable("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def _parse_alternatives(self) -> _Node:
        items = [self._parse_sequence()]
        while self._peek() == "|":
            self.at += 1
            items.append(self._parse_sequence())
        return items[0] if len(items) == 1 else _Alternatives(tuple(items))

    def _parse_sequence(self) -> _Node:
        items: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            atom = self._parse_atom()
            if atom is not None:
                items.append(self._parse_repeat(atom))
        return _Sequence(tuple(items))

    def _parse_repeat(self, atom: _Node) -> _Node:
        count = _COUNT.match(self.text, self.at)
        if count:
            low = int(count[1])
            high = low if not count[2] else int(count[3]) if count[3] else None
            self.at = count.end()
        elif self._peek() and self._peek() in "*+?":
            sign = self._take()
            low, high = (1 if sign == "+" else 0), (1 if sign == "?" else None)
        else:
            return atom
        if self._peek() and self._peek() in "?+":
            self.at += 1
        return _Repeat(atom, low, high)

    def _parse_atom(self) -> _Node | None:
        letter = self._take()
        if letter in "^$":
            return None
        if letter == ".":
            return _Chars(string.ascii_lowercase)
        if letter == "(":
            return self._parse_group()
        if letter == "[":
            return _Chars(self._parse_set())
        if letter == "\\":
            return self._parse_escape()
        if letter in "*+?":
            raise PatternUnreadable("nothing to repeat")
        return _Chars(letter)

    def _parse_group(self) -> _Node | None:
        assertion = False
        if self.text.startswith(("?:", "?=", "?!"), self.at):
            assertion = self.text[self.at + 1] != ":"
            self.at += 2
        elif self.text.startswith(("?<=", "?<!"), self.at):
            assertion = True
            self.at += 3
        elif self._peek() == "?":
            end = self.text.find(">", self.at)
            if not self.text.startswith(("?<", "?P<"), self.at) or end < 0:
                raise PatternUnreadable("unknown group")
            self.at = end + 1
        node = self._parse_alternatives()
        if self._take() != ")":
            raise PatternUnreadable("open group")
        return None if assertion else node

    def _parse_escape(self) -> _Node | None:
        letter = self._take()
        if letter in "bBAZz":
            return None
        if letter in "123456789pPk":
            raise PatternUnreadable(f"\\{letter}")
        return _Chars(self._resolve_escape(letter))

    def _resolve_escape(self, letter: str) -> str:
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in "xu":
            digits = self.text[self.at : self.at + (2 if letter == "x" else 4)]
            self.at += len(digits)
            try:
                return chr(int(digits, 16))
            except ValueError:
                raise PatternUnreadable(f"\\{letter}") from None
        return _CONTROLS.get(letter, letter)

    def _parse_set(self) -> str:
        negated = self._peek() == "^"
        self.at += negated
        found: list[str] = []
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._parse_member()
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._parse_member()
                if len(low) != 1 or len(high) != 1:
                    raise PatternUnreadable("range of classes")
                end = min(ord(high), ord(low) + 256)
                found.extend(map(chr, range(ord(low), end + 1)))
            else:
                found.extend(low)
        self.at += 1
        if negated:
            found = [letter for letter in _PRINTABLE if letter not in found]
        usable = "".join(letter for letter in found if letter.isprintable()) or "".join(found)
        if not usable:
            raise PatternUnreadable("empty set")
        return usable

    def _parse_member(self) -> str:
        letter = self._take()
        if letter != "\\":
            return letter
        escaped = self._take()
        if escaped in "pPk":
            raise PatternUnreadable(f"\\{escaped}")
        return "\b" if escaped == "b" else self._resolve_escape(escaped)


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
    low, high = _get_length(schema, "minLength", 0), _get_length(schema, "maxLength", MAX_LENGTH)
    if low > MAX_LENGTH or high < low:
        return None
    if schema.get("contentEncoding") == "base64" or schema.get("format") in ("byte", "binary"):
        return _encode_sample(n, low, high)
    wanted = schema.get("pattern")
    if isinstance(wanted, str) and is_expression(wanted):
        return _find_matching(wanted, schema, n, low, high, rng)
    formatted = _format_sample(schema.get("format"), n)
    if formatted is not None:
        return formatted if low <= len(formatted) <= high else None
    return _build_plain(n, low, high, suffix)


def fit_text(schema: Mapping[str, Any], text: str) -> str | None:
    """The text, cut or lengthened to what the schema's length asks for; None where the schema says
    more than that of its strings.
    """
    if {"pattern", "contentEncoding", "enum", "const"} & schema.keys():
        return None
    if schema.get("format") in _CHECKED:
        return None
    low, high = _get_length(schema, "minLength", 0), _get_length(schema, "maxLength", MAX_LENGTH)
    return text[:high].ljust(low, "x") if low <= MAX_LENGTH and high >= low else None


def _get_length(schema: Mapping[str, Any], key: str, default: int) -> int:
    value = schema.get(key)
    return int(value) if isinstance(value, int | float) and value >= 0 else default


def _format_sample(name: Any, n: int) -> str | None:
    template = _FORMATS.get(name) if isinstance(name, str) else None
    if name == "date-time" and n % 2:
        template = _WITH_OFFSET
    if template is None:
        return None
    return template.format(n=n, month=n % 12 + 1, day=n % 28 + 1, minute=n % 60, byte=n % 250 + 1)


def _build_plain(n: int, low: int, high: int, suffix: str) -> str:
    for text in (f"v{n}W{suffix}", f"v{n}W", f"{n}"):
        if len(text) <= high:
            return text.ljust(low, "x")
    return f"{n}"[-high:] if high else ""


def _encode_sample(n: int, low: int, high: int) -> str | None:
    # Ends, where there is room, in what base64's two letters stand for that URLs write otherwise.
    for data in ((b"bytes-%d" % n).ljust(12, b".") + b"\xff\xff\xff\xfb\xef\xbe", b"%d\xff" % n):
        text = base64.b64encode(data.ljust(low * 3 // 4, b"x")).decode()
        if low <= len(text) <= high:
            return text
    return None


def _find_matching(
    wanted: str, schema: Mapping[str, Any], n: int, low: int, high: int, rng: random.Random
) -> str | None:
    candidates = [
        _format_sample(schema.get("format"), n) or "",
        _build_plain(n, low, min(high, 64), ""),
    ]
    parsed = parse_pattern(wanted)
    if parsed is not None:
        for extent in (3, 3, 8, 0, 0, low, low, 40):
            try:
                candidates.append(parsed.sample_text(rng, min(extent, 1_000)))
            except PatternUnreadable:
                break
    candidates += [text.format(n=n) for text in _LAST_RESORTS]
    fitting = [text for text in candidates if text and low <= len(text) <= high]
    fitting = [text for text in fitting if text.strip() == text]
    verdicts = {text: matches(wanted, text) for text in fitting}
    for text in fitting:
        if verdicts[text]:
            return text
    # Where no match can be told safely, what was made from the pattern is the likeliest to fit.
    return next((text for text in fitting[2:] if verdicts[text] is None), None)
