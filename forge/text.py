"""Sanitize text from documents before it is shown to a person or a model; say how many."""

from __future__ import annotations

import itertools
import re
import unicodedata
from functools import lru_cache
from typing import Any

from sandbox.injection import SIGNS, SignSearch
from sandbox.sanitize import unescape_html

# Each alternative stops at the next of its opening signs, so that no text takes quadratic time.
_TAG = re.compile(r"<(?:/?[A-Za-z][^<>]{0,200}>|!--.*?(?:-->|\Z))", re.DOTALL)
_CLOSED = re.compile(r"</\s?([A-Za-z][A-Za-z0-9_-]{0,30})")
_PLACEHOLDER = re.compile(r"<([A-Za-z][A-Za-z0-9_-]{0,30}(?: [A-Za-z0-9_-]{1,30}){0,3})>")
_HTML = frozenset(
    "a abbr address article aside audio b base big blockquote body br button canvas caption center "
    "cite code col colgroup dd del details dfn div dl dt em embed fieldset figcaption figure font "
    "footer form frame h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label "
    "legend li link main map mark meta nav noscript object ol option p param picture pre q s samp "
    "script section select small source span strike strong style sub summary sup svg table tbody "
    "td template textarea tfoot th thead time title tr track tt u ul var video wbr".split()
)
_LINK = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
MIN_SENTENCE = 10
"""Characters before the sign that ends a first sentence."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Variation selectors, fillers and blanks are invisible but not in a hidden category.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


_ADDRESSED = re.compile(
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
_WORDS = ("instruction", "rules", "prompt", "guideline", "the user")
_TO_A_MODEL = SignSearch((((_WORDS,), _ADDRESSED), *SIGNS))
"""What sentences say that speak to a model, as poisoned tools have them: more than refuses a
server, since only the sentence is left out.
"""
_SENTENCES = re.compile(r"[^.!?]+[.!?]*\s*|[.!?]+\s*")
_HISSING = ("ch", "s", "sh", "x")
REMEMBERED = 4_096
"""How many lines are remembered: descriptions say the same of a parameter in each operation."""
LEFT_OUT = "[left out: addressed to a model]"


def inflect(number: int, noun: str) -> str:
    """`tool` of one, `tools` of more: for nouns whose plural ends in s or, as of `box`, in es."""
    return noun if number == 1 else f"{noun}{'es' if noun.endswith(_HISSING) else 's'}"


def render_count(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number:,} {inflect(number, noun)}"


def sanitize_line(text: Any, limit: int) -> str:
    """Return the text as one line of visible characters, at most `limit`: no controls, no
    bidirectional or zero-width characters, no tag characters. A value that is neither a string nor
    a number gives "".
    """
    if not isinstance(text, str):
        if text is None or not isinstance(text, int | float) or isinstance(text, bool):
            return ""
        text = str(text)
    # Cut first, so that the time is bounded; much of a text may be markup or invisible.
    line = text[: limit * 8 + 2000]
    if not line.isascii():
        line = _INVISIBLE.sub("", line)
        # Nothing printable is in a hidden category, and most texts are printable but for spaces.
        if not "".join(line.split()).isprintable():
            line = "".join(c for c in line if c.isspace() or unicodedata.category(c) not in _HIDDEN)
    # Of all spaces only the blank is printable, and most texts have single ones.
    if "  " in line or not line.isprintable():
        line = " ".join(line.split())
        if not line.isprintable():
            line = "".join(c for c in line if c.isprintable())
    else:
        line = line.strip(" ")
    return line if len(line) <= limit else shorten_text(line, limit)


def sanitize_prose(text: Any, limit: int) -> str:
    """Return the sanitized line of a text without HTML tags, entities, the targets of Markdown
    links, and sentences that address a model. A placeholder is no tag: of `Token <key>` is left
    `Token {key}`.
    """
    if not isinstance(text, str):
        return sanitize_line(text, limit)
    line = text[: limit * 8 + 2000]
    if "<" in line:
        closed = frozenset(name.lower() for name in _CLOSED.findall(line))
        line = _PLACEHOLDER.sub(lambda found: _keep_placeholder(found, closed), line)
        line = _TAG.sub(" ", line)
    if "](" in line:
        line = _LINK.sub(r"\1", line)
    if "&" in line:
        line = unescape_html(line)
    return redact_instructions(sanitize_line(line, limit))


def _keep_placeholder(found: re.Match[str], closed: frozenset[str]) -> str:
    """The placeholder in braces; what is a tag, of HTML or by its end, stays as it is."""
    name = found[1].partition(" ")[0].lower()
    return found[0] if name in _HTML or name in closed else f"{{{found[1]}}}"


@lru_cache(REMEMBERED)
def redact_instructions(line: str) -> str:
    """Replace sentences that instruct a model instead of describing an API by a note.

    The patterns catch only what is known; clients have to treat descriptions as data all the same.
    """
    if not _TO_A_MODEL.find_phrase(line):
        return line
    parts = (
        f"{LEFT_OUT} " if _TO_A_MODEL.find_phrase(sentence) else sentence
        for sentence in _SENTENCES.findall(line)
    )
    return "".join(part for part, _ in itertools.groupby(parts)).strip()


def shorten_text(text: str, limit: int) -> str:
    """Return the text, or its beginning up to a word's end and an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    return (head[: head.rfind(" ")] if " " in head[limit // 2 :] else head).rstrip() + "…"


def extract_first_sentence(text: str, limit: int) -> str:
    """Return the first sentence of a sanitized text, at most `limit` characters of it."""
    found = _SENTENCE_END.search(text, MIN_SENTENCE)
    return shorten_text(text[: found.end()] if found else text, limit)
