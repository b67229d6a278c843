"""Sanitizing of text before a model or a terminal is shown it.

Removed are control characters and the escape sequences they begin (ECMA-48), bidirectional and
other invisible format characters, tag characters, private-use and unassigned code points, and runs
of variation selectors, which can carry text that no one reads.

Everything takes linear time. Long texts are looked at by RE2, which lets other threads run, and
changed in slices of some milliseconds.
"""

from __future__ import annotations

import html
import operator
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain, filterfalse, groupby
from typing import Any

import re2  # type: ignore[import-untyped]

from sandbox.linear_patterns import Searcher, compile_linear

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_VISIBLE_CONTROLS = frozenset("\n\t")
_CONTROL_BYTES = bytes({*range(32), 0x7F} - {*b"\n\t"})
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Rendered as nothing, though their Unicode category is a letter's or a mark's."""
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARKS = re.compile(f"[\u200c\u200d{_SELECTORS}]")
"""Joiners and variation selectors."""
_MEANINGLESS = tuple(
    re.compile(pattern)
    for pattern in (
        # After nothing, a blank or ASCII, but for a selector after a digit or sign of a keycap.
        rf"(?<![^\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x7f\s])[\u200c\u200d{_SELECTORS}]+",
        r"(?<=[0-9#*])[\u200c\u200d]+",
        # After a joiner, and a selector after another.
        rf"(?<=[\u200c\u200d])[\u200c\u200d{_SELECTORS}]+",
        rf"(?<=[{_SELECTORS}])[{_SELECTORS}]+",
    )
)
_BULK = re.compile("[\ud800-\uf8ff\U00040000-\U000e00ff\U000e01f0-\U0010ffff]+")
"""Most of the characters that are private, unassigned or tags."""
_STARTS = re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")
_SLICE = 32 * 1024
"""Characters that are changed at once: a few milliseconds in which no other thread runs."""
_ASCII_MARKS = r"\\[bfru]"
"""JSON escapes the control characters, but for U+007F (RFC 8259, section 7)."""
_ESCAPED_MARK = re.compile(_ASCII_MARKS.encode())
_FEW_ESCAPES = 32
"""Escapes of a JSON text that are looked at one by one before a pattern does it."""
_LONG = 4096
_LONG_REFERENCE = re.compile(r"&#[0-9]{20,};?")
_UNSEEN_CLASS = (
    r"[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\n\t]"
    r"|[\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180d}\x{180f}\x{2800}\x{3164}\x{ffa0}"
    r"\x{fe00}-\x{fe0f}\x{e0100}-\x{e01ef}]"
)
"""What `_is_visible` denies, for RE2, but for what RE2 alone knows as assigned."""
_ASSIGNABLE = (range(0x80, 0xD800), range(0xE000, 0x40000), range(0xE0000, 0xE1000))
"""Code points that may be characters with a meaning."""


def clean_text(text: str) -> str:
    """The text without invisible characters; the same object if it holds none.

    A joiner (some scripts and emoji need it) is kept between two other characters, a variation
    selector after one; every kind of line end becomes a line feed.
    """
    if is_plain(text):
        return text
    parts: list[str] = []
    before = ""
    for part in _cut_parts(text):
        cleaned = _clean_part(part, before)
        before = cleaned[-1:] or before
        parts.append(cleaned)
    return "".join(parts)


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


def is_plain(text: str) -> bool:
    """Whether a text holds nothing that cleaning would change."""
    if text.isascii():
        return len(text.encode().translate(None, _CONTROL_BYTES)) == len(text)
    if len(text) < _LONG:
        return all(letter in _VISIBLE_CONTROLS or _is_visible(letter) for letter in set(text))
    try:
        return compile_linear(_build_unseen_class()).search(text.encode()) is None
    except UnicodeEncodeError:
        return False


def strip_unprintable(text: str) -> str:
    """Text without control, invisible and direction-changing characters, wherever they stand. Line
    feeds stay.
    """
    return "".join(
        letter
        for letter in text
        if letter == "\n" or unicodedata.category(letter) not in _INVISIBLE
    )


def is_plain_json(written: bytes) -> bool:
    """Whether no string of a JSON text holds what cleaning would change. Of some that do not, it
    says that they may.
    """
    return _compile_hiding(written.isascii()).search(written) is None


def is_clean_json(written: bytes) -> bool:
    """Whether `clean_json` would change nothing of a value that `exactjson` wrote so, in less time
    than that takes. Of some values it says no all the same.
    """
    if not written.isascii():
        return is_plain_json(written)
    # Looking for single bytes takes a hundredth of a pattern's time.
    if b"\x7f" in written:
        return False
    if len(written) <= _SLICE:
        # Without escaped backslashes, each one left begins an escape.
        return _ESCAPED_MARK.search(written.replace(rb"\\", b"")) is None
    at = written.find(b"\\")
    for _ in range(_FEW_ESCAPES):
        if at < 0:
            return True
        if written[at + 1] in b"bfru":
            return False
        at = written.find(b"\\", at + 2)
    return compile_linear(_ASCII_MARKS).search(written) is None


def find_readings(content: bytes) -> tuple[bytes, ...]:
    """The content as one reads it who does not see what is invisible: without such characters, as
    themselves or escaped, and without escape sequences; () if it holds neither.

    Stricter than cleaning: nothing that may be between the letters of a word is kept.
    """
    if _compile_hiding(content.isascii()).search(content) is None:
        return ()
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    spelled = text
    if "\\" in text or "&" in text or "%" in text:
        spelled = "".join(
            _ESCAPED.sub("", _ESCAPED_ESCAPE.sub("\x1b", part)) for part in _cut_escapes(text)
        )
    readings = [drop_unseen(spelled)]
    if _STARTS.search(spelled):
        # What the cleaned text shows, and what is shown where escapes are undone first.
        bare = "".join(map(_drop_escapes, _cut_parts(spelled)))
        readings += [drop_unseen(clean_text(text)), drop_unseen(bare)]
    return tuple(reading.encode("utf-8", "surrogatepass") for reading in dict.fromkeys(readings))


def drop_unseen(text: str) -> str:
    """The text without any character that is not seen."""
    if is_plain(text):
        return text
    bare = "".join(map(_drop_invisible, _cut_parts(text)))
    return _MARKS.sub("", bare)


@cache
def _compile_hiding(is_ascii: bool) -> Searcher:
    """A pattern of characters that are not seen, as themselves or escaped."""
    unseen = _UNSEEN_CLASS if is_ascii else _build_unseen_class()
    return compile_linear(f"{unseen}|(?i:{_ESCAPED_PATTERN})")


@cache
def _build_unseen_class() -> str:
    """All that `_is_visible` denies, for RE2. Its tables may be of a later Unicode than Python's: a
    character that cleaning takes away and a search does not know would hide a secret around it.
    """
    unprintable = "".join(filterfalse(str.isprintable, map(chr, chain(*_ASSIGNABLE))))
    left = re2.sub(f"(?:{_UNSEEN_CLASS})+", "", unprintable)
    later = "".join(rf"\x{{{ord(letter):x}}}" for letter in left if not _is_visible(letter))
    return f"{_UNSEEN_CLASS}|[{later}]" if later else _UNSEEN_CLASS


def unescape_html(text: str) -> str:
    """The text with its character references (`&amp;`, `&#65;`) undone."""
    return html.unescape(replace_long_references(text))


def replace_long_references(text: str) -> str:
    """The text with U+FFFD in the place of numbers that no character has, as browsers show them.
    Python raises ValueError for one of some thousand digits.
    """
    return _LONG_REFERENCE.sub("\ufffd", text)


def _clean_part(part: str, before: str) -> str:
    """A slice cleaned; `before` is the character that was kept last."""
    bare = _drop_escapes(part).replace("\r\n", "\n").replace("\r", "\n")
    bare = before + _drop_invisible(bare)
    if _MARKS.search(bare):
        for meaningless in _MEANINGLESS:
            bare = meaningless.sub("", bare)
    return bare[len(before) :]


def _drop_escapes(part: str) -> str:
    if _STARTS.search(part) is None:
        return part
    if len(part) > _LONG and part.count("\x1b") * 3 > len(part):
        # Nobody writes so. To tell what each of them begins would take long.
        return part.replace("\x1b", "")
    return _ESCAPES.sub("", part)


def _drop_invisible(part: str) -> str:
    """The slice without what is not seen, but for joiners and selectors."""
    part = _compile_invisible(0, 0x10000).sub("", part)
    if len(part.encode("utf-16-le", "surrogatepass")) == 2 * len(part):
        return part
    part = _BULK.sub("", part)
    return _compile_invisible(0x10000, 0x40000).sub("", part)


@cache
def _compile_invisible(start: int, end: int) -> re.Pattern[str]:
    """A pattern of runs of the invisible code points from `start` up to `end`. Python's patterns
    take those of the first plane together, and of the others one range after the other.
    """
    codes = [
        code
        for code in range(start, end)
        if not (_is_visible(letter := chr(code)) or letter in "\n\t" or _MARKS.match(letter))
    ]
    ranges = [
        (run[0][1], run[-1][1])
        for _, group in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])
        if (run := list(group))
    ]
    return re.compile(f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in ranges)}]+")


def _cut_parts(text: str) -> Iterator[str]:
    """Slices of a text, where possible cut before an escape sequence."""
    start = 0
    while len(text) - start > 2 * _SLICE:
        end = text.find("\x1b", start + _SLICE, start + 2 * _SLICE)
        end = end if end > 0 else start + 2 * _SLICE
        end += text[end - 1] == "\r"
        yield text[start:end]
        start = end
    yield text[start:]


def _cut_escapes(text: str) -> Iterator[str]:
    """Slices of a text that cut no escaped character."""
    start = 0
    while len(text) - start > _SLICE:
        end = start + _SLICE
        begun = max(text.rfind(mark, end - _MAX_ESCAPE, end) for mark in "\\&%")
        end = begun if begun > 0 else end
        yield text[start:end]
        start = end
    yield text[start:]


@lru_cache(maxsize=4096)
def _is_visible(letter: str) -> bool:
    if letter in _FILLERS or _is_selector(letter):
        return False
    return unicodedata.category(letter) not in _INVISIBLE


def _is_selector(letter: str) -> bool:
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"


_UNITS = (
    *("00(?:0[0-8bcdef]|1[0-9a-f]|7f|[89][0-9a-f]|ad)", "034f", "061c", "115f", "1160"),
    *("17b[45]", "180[b-f]", "200[b-f]", "202[89a-e]", "206[0-9a-f]", "2800", "3164"),
    *("fe0[0-9a-f]", "feff", "ffa0", "fff[0-9ab]"),
)
_PAIRS = r"\\udb4[0-3]\\u[dD][cdefCDEF][0-9a-fA-F]{2}"
_PERCENT = (
    *("0[0-8bcdef]", "1[0-9a-f]", "7f", "c2%(?:[89][0-9a-f]|ad)", "cd%8f", "d8%9c"),
    *("e1%85%(?:9f|a0)", "e1%9e%b[45]", "e1%a0%8[b-f]", "e2%80%(?:8[b-f]|a[89a-e])"),
    *("e2%81%[a6][0-9a-f]", "e2%a0%80", "e3%85%a4", "ef%b8%8[0-9a-f]", "ef%bb%bf", "ef%be%a0"),
    "f3%a0%[89ab][0-9a-f]%[89ab][0-9a-f]",
)
_NUMBERS = "|".join(
    str(code)
    for code in (
        *(*range(9), 11, 12, 13, *range(14, 32), *range(127, 160), 173, 847, 1564, 4447, 4448),
        *(*range(6155, 6160), *range(8203, 8208), *range(8232, 8239), *range(8288, 8304)),
        *(10240, 12644, *range(65024, 65040), 65279, 65440),
    )
)
_ESCAPED_PATTERN = (
    r"\\+(?:u(?:" + "|".join(_UNITS) + r")|x(?:0[0-8bcdef]|1[0-9a-f]|7f)|[bfrav])"
    "|" + _PAIRS + "|%(?:25)?(?:" + "|".join(_PERCENT) + ")"
    "|&#0*(?:" + _NUMBERS + ");|&#x0*(?:" + "|".join(_UNITS).replace("00(", "(") + ");"
    "|&(?:shy|zwnj|zwj|lrm|rlm|zerowidthspace|nobreak);"
)
"""Invisible characters as JSON, C, HTML and URLs spell them."""
_ESCAPED = re.compile(_ESCAPED_PATTERN, re.IGNORECASE | re.ASCII)
_ESCAPED_ESCAPE = re.compile(r"\\+(?:u001b|x1b|033|e)|&#0*27;|&#x0*1b;|%1b", re.IGNORECASE)
_MAX_ESCAPE = 32
