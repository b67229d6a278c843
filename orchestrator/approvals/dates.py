"""Parsing of dates, times and durations as people type them, and relative times for display."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

from humanize import naturaltime

from orchestrator.errors import OrchestratorError

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPAN = re.compile(r"(\d{1,6})\s*(s|min|h|d|w)\Z")


def parse_moment(text: str, now: float, *, ahead: bool = False, whole_day: bool = False) -> float:
    """Epoch seconds of `2026-11-27`, `2026-11-27T18:00`, `friday`, or `3d`, `2h`, `30min`.

    A span is counted back from now, or forward where it is `ahead`; a weekday is the next one. A
    date means its beginning, or its end where the `whole_day` is meant; without a zone it is local
    time. Raises OrchestratorError.
    """
    given = text.strip().lower()
    span = _SPAN.match(given)
    if span:
        seconds = int(span[1]) * UNITS[span[2]]
        return now + seconds if ahead else now - seconds
    try:
        today = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
        if given in DAYS:
            moment = today + timedelta(days=(DAYS.index(given) - today.weekday()) % 7)
        else:
            moment = datetime.fromisoformat(text.strip())
        only_day = given in DAYS or len(given) == len("2026-11-27")
        if whole_day and only_day:
            moment += timedelta(days=1)
        return moment.timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise OrchestratorError(
            f"{text!r} is no moment. Write 2026-11-27, 2026-11-27T18:00, friday, 3d or 2h."
        ) from error


def format_age(moment: float, now: float | None = None) -> str:
    """A moment for people: `12 seconds ago`, and `now` also for one that is still to come."""
    return naturaltime(max(0.0, (time.time() if now is None else now) - moment))
