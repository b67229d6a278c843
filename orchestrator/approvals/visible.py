"""Text as a person reads it who decides: every character that shows nothing, moves others, or
looks like a blank without being one is written out.

What is invisible is a property of Unicode, not a list of known tricks: Default_Ignorable_Code_Point
(https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point) and the general categories of
controls, formats, separators and code points without a character.
"""

from __future__ import annotations

import re
import unicodedata

# DerivedCoreProperties.txt of Unicode 16. The property reserves these ranges as a whole, code
# points that have no character yet included.
_IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK = frozenset("\u2800\U0001d159\U00016fe4")
"""Symbols whose glyph is empty by their definition: the braille pattern without dots, the null
notehead, the Khitan filler."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE_LIKE = "\\u{"


def escape_invisible(text: str, keep: str = "\n\t") -> str:
    r"""The text with what cannot be seen written as `\u{…}`, but for the characters in `keep`.

    A mark (an accent, a stroke, a ring) is written out too where it stands on no letter. A text
    that itself holds `\u{` has that backslash written out, so that it is not taken for ours.
    """
    if text.isascii() and _ESCAPE_LIKE not in text and _CONTROL.search(text) is None:
        return text
    text = text.replace(_ESCAPE_LIKE, "\\u{5c}u{")
    letters = set(text) - set(keep)
    marks = "".join(letter for letter in letters if unicodedata.category(letter).startswith("M"))
    if marks:
        text = _escape_loose_marks(text, re.escape(marks))
    return text.translate({ord(each): _write_out(each) for each in letters if is_invisible(each)})


def escape_line(text: str) -> str:
    """The same for a text that has to stay in its line: line ends and tabs are written out."""
    return escape_invisible(text, keep="")


def is_invisible(letter: str) -> bool:
    """Whether a character shows nothing by itself or moves others; an ordinary blank does not."""
    if letter == " ":
        return False
    if unicodedata.category(letter) in _INVISIBLE or letter in _BLANK:
        return True
    return any(first <= ord(letter) <= last for first, last in _IGNORABLE)


def _escape_loose_marks(text: str, marks: str) -> str:
    def write_run(run: re.Match[str]) -> str:
        before = text[run.start() - 1 : run.start()]
        on_letter = bool(before) and unicodedata.category(before).startswith("L")
        if on_letter and not is_invisible(before) and len(run[0]) <= _MOST_MARKS:
            return run[0]
        return "".join(map(_write_out, run[0]))

    return re.sub(f"[{marks}]+", write_run, text)


_MOST_MARKS = 4
"""On one letter. Hebrew and Vietnamese take up to three; heaps of them cover the lines around."""


def _write_out(letter: str) -> str:
    return f"\\u{{{ord(letter):x}}}"
