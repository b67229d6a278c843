from __future__ import annotations

from datetime import datetime

import pytest

from orchestrator.approvals.dates import format_age, parse_moment
from orchestrator.errors import OrchestratorError

NOON = datetime(2026, 11, 21, 12).timestamp()
"""A Saturday."""


def at(*parts: int) -> float:
    return datetime(*parts).timestamp()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("3d", NOON - 3 * 86400),
        ("90 s", NOON - 90),
        ("30min", NOON - 1800),
        ("2026-11-20", at(2026, 11, 20)),
        ("2026-11-20T18:30", at(2026, 11, 20, 18, 30)),
        ("2026-11-20T18:30:00+00:00", 1795199400.0),
    ],
)
def test_a_moment_in_the_past_is_read(text: str, moment: float) -> None:
    assert parse_moment(text, NOON) == pytest.approx(moment)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOON + 7200),
        ("2026-11-27", at(2026, 11, 28)),
        ("2026-11-27T18:00", at(2026, 11, 27, 18)),
        ("friday", at(2026, 11, 28)),
        ("Saturday", at(2026, 11, 22)),
    ],
)
def test_until_a_day_means_until_its_end(text: str, moment: float) -> None:
    assert parse_moment(text, NOON, ahead=True, whole_day=True) == moment


@pytest.mark.parametrize("text", ["", "soon", "31.12.2026", "2026-13-01", "-1d", "9999999d", "1y"])
def test_what_is_no_moment_is_told(text: str) -> None:
    with pytest.raises(OrchestratorError, match="no moment"):
        parse_moment(text, NOON)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "now"),
        (0.4, "now"),
        (12, "12 seconds ago"),
        (100, "2 minutes ago"),
        (3 * 3600, "3 hours ago"),
        (10 * 86400, "10 days ago"),
    ],
)
def test_how_long_ago_is_told_in_words(seconds: float, told: str) -> None:
    assert format_age(NOON - seconds, NOON) == told
