from __future__ import annotations

from datetime import datetime

import pytest

from orchestrator.errors import OrchestratorError
from orchestrator.moments import parse_moment

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
