"""Sanitizing of text before a model or a terminal is shown it.

Removed are control characters and the escape sequences they begin (ECMA-48), bidirectional and
other invisible format characters, tag characters, private-use and unassigned code points, and runs
of variation selectors, which can carry text that no one reads.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_VISIBLE_CONTROLS = frozenset("\n\t")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Rendered as nothing, though their Unicode category is a letter's or a mark's."""


def clean_text(text: str) -> str:
    """The text without invisible characters; the same object if it holds none.

    A joiner (some scripts and emoji need it) is kept between two other characters, a variation
    selector after one; every kind of line end becomes a line feed.
    """
    if text.isascii():
        if _CONTROLS.search(text) is None:
            return text
    elif all(letter in _VISIBLE_CONTROLS or _is_visible(letter) for letter in set(text)):
        return text
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    kept: list[str] = []
    for letter in text:
        if letter in _VISIBLE_CONTROLS or _is_visible(letter):
            kept.append(letter)
        elif kept and _is_meaningful_mark(letter, kept[-1]):
            kept.append(letter)
    return "".join(kept)


def clean_json(value: Any) -> Any:
    """A JSON value with every string and key cleaned; the same object if nothing had to be."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        items = {clean_text(str(key)): clean_json(item) for key, item in value.items()}
        same = len(items) == len(value) and all(items.get(k, items) is v for k, v in value.items())
        return value if same else items
    if isinstance(value, list | tuple):
        made = [clean_json(item) for item in value]
        return value if all(map(operator.is_, made, value)) else made
    return value


def _is_visible(letter: str) -> bool:
    if letter in _FILLERS or _is_selector(letter):
        return False
    return unicodedata.category(letter) not in _INVISIBLE


def _is_selector(letter: str) -> bool:
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"


def _is_meaningful_mark(mark: str, before: str) -> bool:
    """Whether a joiner or variation selector has a meaning after the character `before`: not twice
    in a row, and after ASCII only on the digits and signs of keycap emoji.
    """
    if before in _JOINERS or before.isspace():
        return False
    if mark in _JOINERS:
        return not before.isascii()
    plain = not before.isascii() or before in "0123456789#*"
    return _is_selector(mark) and plain and not _is_selector(before)
