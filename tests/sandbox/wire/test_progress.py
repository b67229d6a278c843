"""What code in a sandbox says of its progress."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sandbox.progress import MAX_MESSAGE, MAX_TOLD, Progress, read_progress
from sandbox.recording import Tape


@pytest.mark.parametrize("done", [None, "1", True, math.nan, math.inf, 1e300, 10**400, [1]])
def test_what_is_no_number_is_no_progress(done: Any) -> None:
    assert read_progress({"progress": done}) is None


def test_a_message_is_cleaned_and_cut_and_a_total_that_is_none_left_out() -> None:
    said = {"progress": 1, "total": "all", "message": "\x1b[31m" + "x" * 5000}
    assert read_progress(said) == Progress(1, None, "x" * MAX_MESSAGE)
    assert read_progress({"progress": 1, "total": 2, "message": 3}) == Progress(1, 2, "")


def test_only_what_goes_forward_is_passed_on_and_not_without_end() -> None:
    heard: list[float] = []
    tape = Tape(heard=lambda progress: heard.append(progress.done))
    for done in (1, 1, 0, 2, "3", 2.5):
        tape.tell({"progress": done})
    assert heard == [1, 2, 2.5]
    for done in range(3, 3 * MAX_TOLD):
        tape.tell({"progress": done})
    assert len(heard) == MAX_TOLD
