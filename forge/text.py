"""Text out of a document, made fit to be shown to a person or a model."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from typing import Any

from sandbox.instructions import instruction

# Each alternative stops at the next of its opening signs, so that no text takes quadratic time.
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|<!--.*?(?:-->|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)")
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"(.{10,}?[.!?])(?:\s|$)")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Variation selectors, fillers and blanks are invisible but not in a hidden category.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


# What sentences say that speak to a model, as poisoned tools have them.
_TO_A_MODEL = re.compile(
    r"""\b(?:
        (?:ignore|disregard|forget|override)\s
            (?:(?:all|any|the|your|every|of|these|those)\s){0,3}
            (?:(?:previous|prior|above|earlier|other|preceding|system)\s)?
            (?:instructions?|rules|prompts?|guidelines)
        | (?:do\snot|don't|never|without)\s(?:tell|mention|inform|notify|reveal|show|ask)\w*
            (?:\s(?:this|it|that|anything))?(?:\sto)?\sthe\suser
        | (?:new|your|hidden|the)\ssystem\sprompt
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCES = re.compile(r"[^.!?]+[.!?]*\s*|[.!?]+\s*")
_SUSPECTS = ("instruction", "rules", "prompt", "guideline", "the user")
LEFT_OUT = "[left out: addressed to a model]"


def visible(text: Any, limit: int) -> str:
    """One line of visible characters, at most `limit`: no controls, no bidi or zero-width signs, no
    tag characters. Anything but a string or number gives "".
    """
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        return ""
    line = str(text)[: limit * 8 + 2000]
    if not line.isascii():
        line = _INVISIBLE.sub("", line)
        line = "".join(c for c in line if c.isspace() or unicodedata.category(c) not in _HIDDEN)
    line = _SPACE.sub(" ", line).strip()
    if not line.isprintable():
        line = "".join(c for c in line if c.isprintable())
    return shorten(line, limit)


def clean(text: Any, limit: int) -> str:
    """`visible` text without HTML tags, entities and the targets of Markdown links."""
    if not isinstance(text, str):
        return visible(text, limit)
    line = text[: limit * 8 + 2000]
    if "<" in line:
        line = _TAG.sub(" ", line)
    if "](" in line:
        line = _LINK.sub(r"\1", line)
    if "&" in line:
        line = html.unescape(line)
    return defused(visible(line, limit))


def defused(line: str) -> str:
    """A line without sentences that tell a model what to do instead of what an API does.

    A net with wide meshes for what is known; that descriptions are data, clients have to know.
    """
    lower = line.lower()
    if not any(word in lower for word in _SUSPECTS) and not instruction(line):
        return line
    parts = (
        f"{LEFT_OUT} " if _TO_A_MODEL.search(sentence) or instruction(sentence) else sentence
        for sentence in _SENTENCES.findall(line)
    )
    return "".join(part for part, _ in itertools.groupby(parts)).strip()


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning up to a word's end and an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    return (head[: head.rfind(" ")] if " " in head[limit // 2 :] else head).rstrip() + "…"


def first_sentence(text: str, limit: int) -> str:
    """The first sentence of a cleaned text."""
    found = _SENTENCE.match(text)
    return shorten(found.group(1) if found else text, limit)
