"""Working days between two dates."""

from __future__ import annotations

from datetime import date, timedelta

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `business_days(start, end, holidays)` that counts the days from `start` to `end`, both
included, that are neither a Saturday, a Sunday nor among `holidays`, and gives {"days":
number}. Dates are texts like 2026-03-01; `holidays` is a list of such texts and may be left
out. If `end` lies before `start` the count is 0. What is no real date (2026-02-30, 26-1-1) is
refused, also among the holidays. A holiday named twice or on a weekend counts once or not at
all. More than 20000 days between the dates are refused."""


def _day(text: str) -> date:
    try:
        parsed = date.fromisoformat(text)
    except ValueError as error:
        raise Refused from error
    if parsed.isoformat() != text:
        raise Refused
    return parsed


def business_days(start: str, end: str, holidays: tuple[str, ...] = ()) -> dict[str, int]:
    first, last, free = _day(start), _day(end), set(map(_day, holidays))
    if (last - first).days > 20_000:
        raise Refused
    days = (first + timedelta(days=at) for at in range((last - first).days + 1))
    return {"days": sum(day.weekday() < 5 and day not in free for day in days)}


def _call(start: str, end: str, *holidays: str) -> tuple[str, dict[str, object]]:
    more = {"holidays": list(holidays)} if holidays else {}
    return "business_days", {"start": start, "end": end, **more}


TASK = Task(
    "business_days",
    _TEXT,
    checks(
        {"business_days": business_days},
        [
            _call("2026-03-02", "2026-03-06"),
            _call("2026-03-02", "2026-03-08"),
            _call("2026-03-07", "2026-03-08"),
            _call("2026-03-06", "2026-03-06"),
            _call("2026-03-07", "2026-03-07"),
            _call("2026-03-08", "2026-03-01"),
            _call("2024-02-26", "2024-03-01"),
            _call("2026-01-01", "2026-12-31"),
            _call("2026-12-24", "2027-01-04", "2026-12-25", "2027-01-01"),
            _call("2026-12-24", "2027-01-04", "2026-12-25", "2026-12-25", "2026-12-26"),
            _call("2026-12-24", "2027-01-04", "2025-12-25"),
            _call("2026-02-30", "2026-03-01"),
            _call("2026-02-01", "2026-13-01"),
            _call("26-1-1", "2026-03-01"),
            _call("", "2026-03-01"),
            _call("2026-03-01", "2026-03-02", "nonsense"),
            _call("20260301", "2026-03-02"),
            _call("2000-01-01", "2054-10-04"),
            _call("1900-01-01", "2026-01-01"),
            _call("2023-02-28", "2023-03-01", "2023-03-01"),
            _call("2000-02-28", "2000-03-01"),
            _call("1999-12-31", "2000-01-03"),
            _call("2026-03-02T00:00:00", "2026-03-06"),
        ],
    ),
)
