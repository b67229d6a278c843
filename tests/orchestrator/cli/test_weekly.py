"""The base image is built again a week after it was last, and not at once in a new home."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.weekly import STAMP, WEEK, is_rebuild_due, write_stamp

NOW = 1_000_000_000.0


def test_a_new_home_waits_a_week(tmp_path: Path) -> None:
    assert not is_rebuild_due(tmp_path, NOW)
    assert not is_rebuild_due(tmp_path, NOW + WEEK - 1)
    assert is_rebuild_due(tmp_path, NOW + WEEK)


def test_a_rebuilding_begins_the_week_anew(tmp_path: Path) -> None:
    write_stamp(tmp_path, NOW)
    assert is_rebuild_due(tmp_path, NOW + WEEK)
    write_stamp(tmp_path, NOW + WEEK)
    assert not is_rebuild_due(tmp_path, NOW + WEEK + 1)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rebuilt": "soon"}', "null"])
def test_a_damaged_stamp_is_written_anew(content: str, tmp_path: Path) -> None:
    (tmp_path / STAMP).write_text(content)
    assert not is_rebuild_due(tmp_path, NOW)
    assert is_rebuild_due(tmp_path, NOW + WEEK)
