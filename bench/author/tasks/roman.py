"""Roman numerals."""

from __future__ import annotations

import re

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `to_roman(number)` that gives {"numeral": "XIV"} for a whole number from 1 to 3999 and
refuses any other, and a tool `from_roman(numeral)` that gives {"number": 14}. from_roman takes
upper and lower case, and refuses what is not the one standard way to write a number (IIII, IC,
VX and the empty text are refused)."""
_STEPS = (
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
)


def to_roman(number: int) -> dict[str, str]:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 3999:
        raise Refused
    return {"numeral": _written(number)}


def _written(number: int) -> str:
    text = ""
    for value, letters in _STEPS:
        text += letters * (number // value)
        number %= value
    return text


def from_roman(numeral: str) -> dict[str, int]:
    text = numeral.upper()
    if not re.fullmatch(r"[IVXLCDM]{1,15}", text):
        raise Refused
    known = {_written(number): number for number in range(1, 4000)}
    if text not in known:
        raise Refused
    return {"number": known[text]}


TASK = Task(
    "roman",
    _TEXT,
    checks(
        {"to_roman": to_roman, "from_roman": from_roman},
        [
            *(
                ("to_roman", {"number": n})
                for n in (1, 4, 9, 14, 40, 90, 400, 444, 900, 1994, 2026)
            ),
            *(("to_roman", {"number": n}) for n in (3888, 3999, 0, -1, 4000)),
            *(("from_roman", {"numeral": t}) for t in ("I", "xiv", "MCMXCIV", "MMXXVI", "CDXLIV")),
            *(("from_roman", {"numeral": t}) for t in ("mmmcmxcix", "IIII", "IC", "VX", "", "A")),
            *(("from_roman", {"numeral": t}) for t in ("MMMM", "IXI", "XIV ", "LL", "iXc")),
        ],
    ),
)
