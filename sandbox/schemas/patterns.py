"""Patterns of schemas that strangers wrote, matched on the host in linear time.

A pattern can take exponential time in an engine that tries one way after another
(https://swtch.com/~rsc/regexp/regexp1.html). RE2 never does, so patterns are matched with that
alone. What it cannot read, back-references and most look-around, is not run on the host: `matches`
is None, and checks leave it out. The sandbox, which has a limit of time, runs it.

JSON Schema's patterns are ECMA-262's with the flag `u` (2020-12 core, section 6.4); they are
rewritten where RE2 (https://github.com/google/re2/wiki/Syntax) reads another thing or nothing.
What ECMA-262 refuses, such as `{,3}`, `\\Z` or `(?i)`, means what it means to Python, which
reads patterns in the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_PATTERN = 2_000
MAX_MEMORY = 1 << 20
"""Bytes that one compiled pattern may take, the states that it remembers included."""
MAX_WORK = 100_000_000
"""The work of one match: about a second where RE2 runs out of memory for states."""

# ECMA-262, section 12.2 and 12.3: white space and line terminators. RE2's own are ASCII's.
_SPACES = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_GAPS = tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(((0, -1), *_SPACES, (0x110000, 0))))


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in ranges)


# Beside a class `-` is no range: the classes at both ends, which add nothing, keep that so.
_CLASSES = {"s": rf"\s{_ranges(_SPACES)}\s", "S": rf"\w{_ranges(_GAPS)}\w"}
_DOT = r"[^\n\r\x{2028}\x{2029}]"
_DOT_IS_ALL = re.compile(r"\(\?[a-z]*s")
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
_KNOWN = frozenset("0123456789ABDPSWZbcdfknprstuvwxz")
_CATEGORIES = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Other": "C",
}
"""Long names of general categories (ECMA-262, table 70), of which RE2 knows the short ones."""

_ESCAPE = (
    r"\\(?:u\{[0-9A-Fa-f]{1,6}\}"
    r"|u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"
    r"|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|c[A-Za-z]|[pP]\{[A-Za-z_]+(?:=[A-Za-z_]+)?\}|.)"
)
_SET = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_PART = re.compile(
    rf"(?P<set>{_SET})|(?P<escape>{_ESCAPE})|(?P<dot>\.)|\{{,(?P<most>\d+)\}}", re.DOTALL
)
_UNIT = re.compile(rf"{_SET}|\\.|.", re.DOTALL)
_QUANTIFIERS = ("*", "+", "?", "{")
_PART_OF_SET = re.compile(rf"{_ESCAPE}|(?!\A)\[", re.DOTALL)


class _PatternUnreadable(Exception):
    """RE2 has no such expression."""


@dataclass(frozen=True)
class LinearPattern:
    """A pattern that RE2 reads; what a match costs grows with the text and the pattern only.

    It is found where each of the `wanted` expressions is and none of the `unwanted`.
    """

    wanted: tuple[Any, ...]
    unwanted: tuple[Any, ...]

    @cached_property
    def size(self) -> int:
        """How many instructions it is to RE2."""
        return sum(part.programsize for part in (*self.wanted, *self.unwanted))

    def work(self, text: str) -> int:
        """The most that finding it in the text takes, in instructions."""
        return self.size * (len(text) + 1)

    def is_in(self, text: str) -> bool:
        """Whether it is found anywhere in the text."""
        encoded = _encode_text(text)
        return all(part.search(encoded) for part in self.wanted) and not any(
            part.search(encoded) for part in self.unwanted
        )


@lru_cache(maxsize=256)
def compile_linear(pattern: str) -> LinearPattern | None:
    """The pattern for RE2, or None where that cannot read it."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        wanted, unwanted = _split_look_ahead(pattern)
        return LinearPattern(tuple(map(_compile, wanted)), tuple(map(_compile, unwanted)))
    except (_PatternUnreadable, UnicodeEncodeError, re2.error):
        return None


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY
    return re2.compile(_translate(pattern).encode(), options)


def matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None where that cannot be told safely."""
    linear = compile_linear(pattern)
    if linear is None or linear.work(text) > MAX_WORK:
        return None
    return linear.is_in(text)


def is_expression(pattern: str) -> bool:
    """Whether RE2 or Python, which reads patterns in the sandbox, knows the expression."""
    return compile_linear(pattern) is not None or _is_python(pattern)


@lru_cache(maxsize=2_000)
def _is_python(pattern: str) -> bool:
    if len(pattern) > MAX_PATTERN:
        return False
    try:
        re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _split_look_ahead(pattern: str) -> tuple[list[str], list[str]]:
    """Expressions without the look-ahead that a pattern begins with, as in `^(?=.*[A-Z])(?!no)…`:
    those that have to be found, and those that must not be.
    """
    wanted, unwanted, at = list[str](), list[str](), 1
    while pattern.startswith("^") and pattern.startswith(("(?=", "(?!"), at):
        end = next((end for _, end, depth in _units(pattern, at) if depth == 0), None)
        if end is None or pattern.startswith(_QUANTIFIERS, end):
            raise _PatternUnreadable
        found = wanted if pattern[at + 2] == "=" else unwanted
        found.append(f"^(?:{pattern[at + 3 : end - 1]})")
        at = end
    if at == 1:
        return [pattern], []
    if any(unit == "|" and depth == 0 for unit, _, depth in _units(pattern, at)):
        raise _PatternUnreadable
    return [*wanted, f"^{pattern[at:]}"], unwanted


def _units(pattern: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Each character, escape or set from `at` on: with its end, and in how many groups that is."""
    depth = 0
    for unit in _UNIT.finditer(pattern, at):
        depth += (unit[0] == "(") - (unit[0] == ")")
        yield unit[0], unit.end(), depth


def _translate(pattern: str) -> str:
    dot = "." if _DOT_IS_ALL.search(pattern) else _DOT

    def translate(part: re.Match[str]) -> str:
        if part["set"]:
            return _PART_OF_SET.sub(_translate_in_set, part["set"])
        if part["escape"]:
            return _translate_escape(part["escape"])
        return dot if part["dot"] else f"{{0,{part['most']}}}"

    return _PART.sub(translate, pattern)


def _translate_in_set(part: re.Match[str]) -> str:
    # To RE2 `[[:alpha:]]` is a class of its own, to ECMA-262 a set that holds a bracket.
    if part[0] == "[":
        return r"\["
    if part[0] == r"\b":
        return r"\x08"
    return _CLASSES.get(part[0][1:]) or _translate_escape(part[0])


def _translate_escape(escape: str) -> str:
    letter, digits = escape[1], escape[2:].strip("{}")
    if letter in _CLASSES:
        return f"[{_CLASSES[letter]}]"
    if digits and letter in "pP":
        name = digits.rpartition("=")[2]
        return rf"\{letter}{{{_CATEGORIES.get(name, name)}}}"
    if digits:
        return rf"\x{{{_code_point(letter, digits):X}}}"
    if letter == "Z":
        return r"\z"
    if not letter.isascii():
        return letter
    if letter.isalpha() and letter not in _KNOWN:
        raise _PatternUnreadable
    return escape


def _code_point(letter: str, digits: str) -> int:
    if letter == "c":
        return ord(digits) % 32
    high, _, low = digits.partition(r"\u")
    return (int(high, 16) - 0xD800) * 0x400 + int(low, 16) + 0x2400 if low else int(high, 16)


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # JSON can hold half a character; to ECMA-262 that is a character of its own.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
