"""ISO 8601 durations of fixed length."""

from __future__ import annotations

import re

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `parse_duration(text)` that reads an ISO 8601 duration without years and months, such as
P1DT2H30M5S, PT0.5S or P2W, and gives {"seconds": number}. The designators come in the order D,
H, M, S, each at most once, and at least one is there; a T stands before H, M and S and only
there. Weeks stand alone. Only seconds may have a fraction, with a point. Everything else is
refused (P1Y, PT, P1H, PT1.5M, lower case). And a tool `format_duration(seconds)` for whole
seconds from 0 to 10000000000 that gives {"text": ...}: days, hours, minutes and seconds,
leaving out what is zero, and PT0S for 0."""
_FORM = re.compile(r"P(?:(\d+)D)?(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)


def parse_duration(text: str) -> dict[str, float]:
    weeks = re.fullmatch(r"P(\d+)W", text, re.ASCII)
    if weeks:
        return {"seconds": int(weeks[1]) * 604_800}
    found = _FORM.fullmatch(text)
    if not found or text.endswith(("T", "P")):
        raise Refused
    day, _, hour, minute, second = found.groups()
    whole = int(day or 0) * 86_400 + int(hour or 0) * 3600 + int(minute or 0) * 60
    return {"seconds": whole + float(second or 0)}


def format_duration(seconds: int) -> dict[str, str]:
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds <= 10**10:
        raise Refused
    days, rest = divmod(seconds, 86_400)
    parts = ((rest // 3600, "H"), (rest % 3600 // 60, "M"), (rest % 60, "S"))
    clock = "".join(f"{count}{letter}" for count, letter in parts if count)
    text = "P" + (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return {"text": "PT0S" if text == "P" else text}


TASK = Task(
    "durations",
    _TEXT,
    checks(
        {"parse_duration": parse_duration, "format_duration": format_duration},
        [
            *(
                ("parse_duration", {"text": text})
                for text in (
                    "P1DT2H30M5S",
                    "PT0.5S",
                    "P2W",
                    "PT36H",
                    "P10D",
                    "PT1M",
                    "PT0S",
                    "PT1H5.25S",
                    "P1Y",
                    "P1M",
                    "PT",
                    "P",
                    "P1H",
                    "PT1.5M",
                    "pt1s",
                    "P1W2D",
                    "PT5S1M",
                    "P1DT",
                    "PT1M1M",
                    "-PT1S",
                    "",
                    "PT5",
                    "PT1,5S",
                )
            ),
            *(
                ("format_duration", {"seconds": seconds})
                for seconds in (0, 1, 60, 3600, 86_400, 90_061, 604_805, 86_460, 10**10, -1)
            ),
        ],
    ),
)
