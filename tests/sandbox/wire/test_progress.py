"""What code in a sandbox says of its progress."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sandbox.session.recording import CallLog
from sandbox.wire.notifications import MAX_MESSAGE, MAX_TOLD, ProgressNotice, read_progress


@pytest.mark.parametrize("done", [None, "1", True, math.nan, math.inf, 1e300, 10**400, [1]])
def test_what_is_no_number_is_no_progress(done: Any) -> None:
    assert read_progress({"progress": done}) is None


def test_a_message_is_cleaned_and_cut_and_a_total_that_is_none_left_out() -> None:
    said = {"progress": 1, "total": "all", "message": "\x1b[31m" + "x" * 5000}
    assert read_progress(said) == ProgressNotice(1, None, "x" * MAX_MESSAGE)
    assert read_progress({"progress": 1, "total": 2, "message": 3}) == ProgressNotice(1, 2, "")


def test_only_what_goes_forward_is_passed_on_and_not_without_end() -> None:
    heard: list[float] = []
    tape = CallLog(heard=lambda progress: heard.append(progress.done))
    for done in (1, 1, 0, 2, "3", 2.5):
        tape.report_progress({"progress": done})
    assert heard == [1, 2, 2.5]
    for done in range(3, 3 * MAX_TOLD):
        tape.report_progress({"progress": done})
    assert len(heard) == MAX_TOLD
