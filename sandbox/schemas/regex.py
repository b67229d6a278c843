"""Strings for regular expressions, and which expressions are safe to match with.

Reads the part of ECMA-262 that JSON Schema asks for (2020-12 core, section 6.4). A pattern in a
document is attacker's text: nested unbounded repeats make `re` take exponential time, so a pattern
is only matched where that cannot happen.
"""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from functools import lru_cache

MAX_PATTERN = 2_000
MAX_STEPS = 2_000_000
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
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
_COUNT = re.compile(r"\{(\d{1,6})(?:(,)(\d{1,6})?)?\}")


class Unreadable(Exception):
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
class Pattern:
    """A readable expression; `unbounded` counts its open-ended repeats, `nested` their nesting."""

    tree: _Node
    unbounded: int
    nested: bool

    def sample(self, rng: random.Random, extent: int) -> str:
        """A string for the expression; open-ended repeats run at most `extent` times further."""
        out: list[str] = []
        _write(self.tree, rng, extent, out)
        return "".join(out)


@lru_cache(maxsize=2_000)
def read(pattern: str) -> Pattern | None:
    """The expression, or None where it is not one that this module reads."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        flags = _FLAGS.match(pattern)
        tree = _Reader(pattern[flags.end() :] if flags else pattern).whole()
    except (Unreadable, RecursionError):
        return None
    return Pattern(tree, *_repeats(tree))


def matches(pattern: str, text: str) -> bool | None:
    """Whether the expression is found in the text; None where that cannot be told safely."""
    parsed = read(pattern)
    compiled = _compiled(pattern)
    if parsed is None or compiled is None or parsed.nested:
        return None
    if (len(text) + 1) ** (parsed.unbounded + 1) > MAX_STEPS:
        return None
    return compiled.search(text) is not None


def compiles(pattern: str) -> bool:
    """Whether Python reads the expression at all."""
    return _compiled(pattern) is not None


@lru_cache(maxsize=2_000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except (re.error, RecursionError, OverflowError):
        return None


def _repeats(node: _Node) -> tuple[int, bool]:
    if isinstance(node, _Chars):
        return 0, False
    if isinstance(node, _Repeat):
        inner, nested = _repeats(node.item)
        open_ended = node.high is None or node.high > 64
        return inner + open_ended, nested or (open_ended and inner > 0)
    found = [_repeats(item) for item in node.items]
    return sum(count for count, _ in found), any(nested for _, nested in found)


def _write(node: _Node, rng: random.Random, extent: int, out: list[str]) -> None:
    if isinstance(node, _Chars):
        out.append(rng.choice(node.choices))
    elif isinstance(node, _Sequence):
        for item in node.items:
            _write(item, rng, extent, out)
    elif isinstance(node, _Alternatives):
        _write(rng.choice(node.items), rng, extent, out)
    else:
        high = node.low + extent if node.high is None else min(node.high, node.low + extent)
        for _ in range(rng.randint(node.low, max(high, node.low))):
            if len(out) > 10_000:
                raise Unreadable("too long")
            _write(node.item, rng, extent, out)


class _Reader:
    """A recursive-descent reader; each method takes what it names and moves `at` behind it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> _Node:
        node = self._alternatives()
        if self.at != len(self.text):
            raise Unreadable(f"unexpected {self.text[self.at]!r}")
        return node

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        if self.at >= len(self.text):
            raise Unreadable("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def _alternatives(self) -> _Node:
        items = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            items.append(self._sequence())
        return items[0] if len(items) == 1 else _Alternatives(tuple(items))

    def _sequence(self) -> _Node:
        items: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            atom = self._atom()
            if atom is not None:
                items.append(self._repeated(atom))
        return _Sequence(tuple(items))

    def _repeated(self, atom: _Node) -> _Node:
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

    def _atom(self) -> _Node | None:
        letter = self._take()
        if letter in "^$":
            return None
        if letter == ".":
            return _Chars(string.ascii_lowercase)
        if letter == "(":
            return self._group()
        if letter == "[":
            return _Chars(self._set())
        if letter == "\\":
            return self._escape()
        if letter in "*+?":
            raise Unreadable("nothing to repeat")
        return _Chars(letter)

    def _group(self) -> _Node | None:
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
                raise Unreadable("unknown group")
            self.at = end + 1
        node = self._alternatives()
        if self._take() != ")":
            raise Unreadable("open group")
        return None if assertion else node

    def _escape(self) -> _Node | None:
        letter = self._take()
        if letter in "bBAZz":
            return None
        if letter in "123456789pPk":
            raise Unreadable(f"\\{letter}")
        return _Chars(self._escaped(letter))

    def _escaped(self, letter: str) -> str:
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in "xu":
            digits = self.text[self.at : self.at + (2 if letter == "x" else 4)]
            self.at += len(digits)
            try:
                return chr(int(digits, 16))
            except ValueError:
                raise Unreadable(f"\\{letter}") from None
        return _CONTROLS.get(letter, letter)

    def _set(self) -> str:
        negated = self._peek() == "^"
        self.at += negated
        found: list[str] = []
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._member()
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._member()
                if len(low) != 1 or len(high) != 1:
                    raise Unreadable("range of classes")
                end = min(ord(high), ord(low) + 256)
                found.extend(map(chr, range(ord(low), end + 1)))
            else:
                found.extend(low)
        self.at += 1
        if negated:
            found = [letter for letter in _PRINTABLE if letter not in found]
        usable = "".join(letter for letter in found if letter.isprintable()) or "".join(found)
        if not usable:
            raise Unreadable("empty set")
        return usable

    def _member(self) -> str:
        letter = self._take()
        if letter != "\\":
            return letter
        escaped = self._take()
        if escaped in "pPk":
            raise Unreadable(f"\\{escaped}")
        return "\b" if escaped == "b" else self._escaped(escaped)
