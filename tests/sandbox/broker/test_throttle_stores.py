"""A pace that one server learned holds for all processes of a home."""

from __future__ import annotations

import asyncio
import fcntl
import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sandbox.clock import VirtualClock
from sandbox.errors import TurnTooLate
from sandbox.pace import Pace
from sandbox.policy import Origin
from sandbox.sharedturns import MAX_FILES, SharedTurns
from sandbox.throttle import Throttle

API = Origin("https", "api.test", 443)
OTHER = Origin("https", "other.test", 443)
PACE = Pace("api.test", 4)
WALL = 1_800_000_000.0


def another(directory: Path) -> SharedTurns:
    """What another process of the home has."""
    return SharedTurns(directory / "turns")


def taken(turns: SharedTurns, wall: float = WALL, patience: float = 50.0) -> float:
    return round(turns.take("sample api", 0.25, wall, 0.0, patience), 6)


def test_each_process_takes_a_turn_of_its_own(tmp_path: Path) -> None:
    one, other = another(tmp_path), another(tmp_path)
    assert [taken(each) for each in (one, other, one, other)] == [0.0, 0.25, 0.5, 0.75]
    assert taken(one, WALL + 0.9) == 0.1
    assert taken(other, WALL + 60) == 0.0


def test_another_server_or_origin_has_turns_of_its_own(tmp_path: Path) -> None:
    turns = another(tmp_path)
    assert taken(turns) == 0.0
    assert turns.take("other api", 0.25, WALL, 0.0, 50.0) == 0.0


@given(
    moments=some.lists(some.tuples(some.integers(0, 2), some.floats(0, 3)), min_size=1, max_size=20)
)
def test_no_two_turns_are_closer_than_the_pace(
    moments: list[tuple[int, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("turns")
    processes = [another(directory) for _ in range(3)]
    wall, leaving = WALL, []
    for process, passed in moments:
        wall += passed
        leaving.append(wall + taken(processes[process], wall))
    assert all(later - former >= 0.2499 for former, later in pairwise(leaving))


def test_a_turn_too_far_away_is_left_to_others(tmp_path: Path) -> None:
    one, other = another(tmp_path), another(tmp_path)
    assert taken(one) == 0.0
    assert taken(other, patience=0.1) == 0.25
    assert taken(other) == 0.25


@pytest.mark.parametrize("until", [WALL + 1000, WALL + 1e9, 4e9])
def test_a_time_that_nobody_can_have_taken_holds_nobody(tmp_path: Path, until: float) -> None:
    turns = another(tmp_path)
    taken(turns)
    (file,) = (tmp_path / "turns").iterdir()
    os.utime(file, (0, until))
    assert taken(turns) == 0.0


def test_a_process_that_stops_with_the_lock_holds_up_no_other(tmp_path: Path) -> None:
    turns = another(tmp_path)
    taken(turns)
    (file,) = (tmp_path / "turns").iterdir()
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert taken(turns) == 0.25


def test_a_directory_that_cannot_be_had_leaves_each_process_its_own_pace(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("no directory")
    assert taken(another(tmp_path)) == 0.0
    assert another(tmp_path).take("a", 0.25, WALL, 0.75, 50.0) == 0.75


def test_turns_that_are_over_are_forgotten(tmp_path: Path) -> None:
    turns = another(tmp_path)
    for number in range(MAX_FILES + 5):
        turns.take(f"server {number}", 0.25, WALL + number, 0.0, 50.0)
    assert len([*(tmp_path / "turns").iterdir()]) < MAX_FILES


def test_two_processes_ask_an_api_at_the_pace_of_one(tmp_path: Path) -> None:
    async def left() -> list[float]:
        clock = VirtualClock()
        processes = [Throttle(turns=another(tmp_path)) for _ in range(2)]
        times = []
        for number in range(5):
            turns = processes[number % 2].turns
            await turns.wait("sample", API, PACE, clock, 50.0)
            times.append(round(clock.now(), 3))
        await turns.wait("sample", OTHER, PACE, clock, 50.0)
        late = processes[1].turns.wait("sample", API, PACE, VirtualClock(), 0.5)
        with pytest.raises(TurnTooLate):
            await late
        return times

    assert asyncio.run(left()) == [0.0, 0.25, 0.5, 0.75, 1.0]
