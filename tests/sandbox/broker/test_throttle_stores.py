"""A pause that one process was asked for, and a pace that one server learned, hold for all
processes of a home.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sandbox.broker.throttle import Throttle
from sandbox.broker.throttle_stores import MAX_FILES, MAX_PAUSE, STALE_SECONDS, FileStore
from sandbox.bundle.ratelimit import Pace
from sandbox.clock import VirtualClock
from sandbox.errors import RateLimited, TurnTooLate
from sandbox.wire.exchange import WireRequest
from sandbox.wire.policy import Origin
from tests.sandbox.scripted import Told, answer, broker

API = Origin("https", "api.test", 443)
OTHER = Origin("https", "other.test", 443)
PACE = Pace("api.test", 4)
WALL = 1_800_000_000.0


def another(home: Path) -> FileStore:
    """What another process of the home has."""
    return FileStore(home)


def at(wall: float) -> VirtualClock:
    return VirtualClock(start=wall - WALL, epoch=WALL)


def pause(store: FileStore, origin: Origin, until: float, wall: float = WALL) -> None:
    store.pause_origin(origin, until - wall, at(wall))


def until(store: FileStore, origin: Origin, wall: float) -> float:
    """When the origin's pause ends; 0 where there is none."""
    left = store.get_pause_left(origin, at(wall))
    return wall + left if left > 0 else 0.0


def taken(
    store: FileStore, wall: float = WALL, patience: float = 50.0, server: str = "sample"
) -> float:
    return round(store.take_turn(server, API, 0.25, patience, at(wall)), 6)


def test_what_one_process_was_told_holds_the_others(tmp_path: Path) -> None:
    one = another(tmp_path)
    pause(one, API, WALL + 30)
    assert until(one, API, WALL) == pytest.approx(WALL + 30, abs=0.001)
    assert until(another(tmp_path), API, WALL) == pytest.approx(WALL + 30, abs=0.001)
    assert until(another(tmp_path), OTHER, WALL) == 0.0


def test_a_pause_ends_by_itself_and_is_never_shortened(tmp_path: Path) -> None:
    one, other = another(tmp_path), another(tmp_path)
    pause(one, API, WALL + 30)
    pause(one, API, WALL + 5)
    pause(other, API, WALL + 5)
    for store in (one, other, another(tmp_path)):
        assert until(store, API, WALL + 29) > WALL + 29
        assert until(store, API, WALL + 31) == 0.0


def test_what_is_known_is_not_looked_up_again_for_a_moment(tmp_path: Path) -> None:
    moment = [5.0]
    store = FileStore(tmp_path, ticks=lambda: moment[0])
    assert until(store, API, WALL) == 0.0
    pause(another(tmp_path), API, WALL + 30)
    assert until(store, API, WALL) == 0.0
    moment[0] += STALE_SECONDS * 2
    assert until(store, API, WALL) > WALL


@pytest.mark.parametrize("end", [WALL + 10 * MAX_PAUSE, 4e9])
def test_a_time_set_by_hand_holds_no_longer_than_an_upstream_could(
    tmp_path: Path, end: float
) -> None:
    pause(another(tmp_path), API, WALL + 1)
    (file,) = (tmp_path / "pauses").iterdir()
    os.utime(file, (0, end))
    assert until(another(tmp_path), API, WALL) == WALL + MAX_PAUSE


def test_a_directory_that_cannot_be_used_holds_no_other_process(tmp_path: Path) -> None:
    (tmp_path / "pauses").write_text("a file")
    store = another(tmp_path)
    pause(store, API, WALL + 30)
    assert until(another(tmp_path), API, WALL) == 0.0
    assert until(store, API, WALL) == WALL + 30


def test_a_pause_holds_that_another_process_begins_at_the_same_moment(tmp_path: Path) -> None:
    first, second = another(tmp_path), another(tmp_path)
    waiting = [first]

    def on_audit(name: str, arguments: tuple[Any, ...]) -> None:
        # As the second is about to create the file that both found missing.
        if name == "open" and str(tmp_path) in str(arguments[0]) and arguments[2] & os.O_CREAT:
            while waiting:
                pause(waiting.pop(), API, WALL + 30)

    sys.addaudithook(on_audit)
    pause(second, API, WALL + 5)
    assert waiting == []
    assert until(another(tmp_path), API, WALL) == pytest.approx(WALL + 30, abs=0.001)
    assert len(list((tmp_path / "pauses").iterdir())) == 1


def test_the_files_are_bounded_and_those_that_end_first_go(tmp_path: Path) -> None:
    store = another(tmp_path)
    for number in range(MAX_FILES + 5):
        pause(store, Origin("https", f"h{number}.test", 443), WALL + 60 + number)
    assert len(list((tmp_path / "pauses").iterdir())) == MAX_FILES
    fresh = another(tmp_path)
    assert until(fresh, Origin("https", "h0.test", 443), WALL) == 0.0
    assert until(fresh, Origin("https", f"h{MAX_FILES + 4}.test", 443), WALL) > WALL


def test_two_throttles_of_a_home_wait_for_the_same_upstream(tmp_path: Path) -> None:
    first, second = (Throttle(store=another(tmp_path)) for _ in range(2))
    first.pause_origin(API, VirtualClock(), 20.0)
    with pytest.raises(RateLimited):
        asyncio.run(second.admit_request(API, VirtualClock(), patience=5.0))
    clock = VirtualClock(start=700.0, epoch=1_700_000_000.0 - 700)
    asyncio.run(second.admit_request(API, clock))
    assert clock.now() == pytest.approx(720.0, abs=0.01)
    asyncio.run(second.admit_request(OTHER, VirtualClock(), patience=0.0))
    asyncio.run(Throttle().admit_request(API, VirtualClock(), patience=0.0))


def test_an_answer_that_says_wait_holds_the_calls_of_another_process(tmp_path: Path) -> None:
    upstream = Told([answer(429, retry_after="300")])
    held = [
        asyncio.run(
            broker(upstream, throttle=Throttle(store=another(tmp_path))).perform(
                WireRequest("GET", "https://api.test/x")
            )
        )
        for _ in range(2)
    ]
    assert [exchange.attempts for exchange in held] == [1, 0]
    assert held[1].refusal == "rate_limited"
    assert len(upstream.requests) == 1


def test_each_process_takes_a_turn_of_its_own(tmp_path: Path) -> None:
    one, other = another(tmp_path), another(tmp_path)
    assert [taken(each) for each in (one, other, one, other)] == [0.0, 0.25, 0.5, 0.75]
    assert taken(one, WALL + 0.9) == 0.1
    assert taken(other, WALL + 60) == 0.0


def test_another_server_or_origin_has_turns_of_its_own(tmp_path: Path) -> None:
    store = another(tmp_path)
    assert taken(store) == 0.0
    assert taken(store, server="other") == 0.0
    assert store.take_turn("sample", OTHER, 0.25, 50.0, at(WALL)) == 0.0


@given(
    moments=some.lists(some.tuples(some.integers(0, 2), some.floats(0, 3)), min_size=1, max_size=20)
)
def test_no_two_turns_are_closer_than_the_pace(
    moments: list[tuple[int, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    processes = [another(home) for _ in range(3)]
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


@pytest.mark.parametrize("end", [WALL + 1000, WALL + 1e9, 4e9])
def test_a_time_that_nobody_can_have_taken_holds_nobody(tmp_path: Path, end: float) -> None:
    taken(another(tmp_path))
    (file,) = (tmp_path / "turns").iterdir()
    os.utime(file, (0, end))
    assert taken(another(tmp_path)) == 0.0


@pytest.mark.parametrize("kind", ["pauses", "turns"])
def test_a_process_that_stops_with_the_lock_holds_up_no_other(tmp_path: Path, kind: str) -> None:
    taken(another(tmp_path))
    pause(another(tmp_path), API, WALL + 1)
    (file,) = (tmp_path / kind).iterdir()
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert taken(another(tmp_path)) == 0.25
        pause(another(tmp_path), API, WALL + 30)
    assert until(another(tmp_path), API, WALL) == WALL + 30


def test_a_directory_that_cannot_be_had_leaves_each_process_its_own_pace(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("no directory")
    assert taken(another(tmp_path)) == 0.0
    store = another(tmp_path)
    assert [taken(store) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]


def test_turns_that_are_over_are_forgotten(tmp_path: Path) -> None:
    store = another(tmp_path)
    for number in range(MAX_FILES + 5):
        taken(store, WALL + number, server=f"server {number}")
    assert len([*(tmp_path / "turns").iterdir()]) < MAX_FILES


def test_turns_that_are_not_over_are_kept_whatever_their_number(tmp_path: Path) -> None:
    store = another(tmp_path)
    for number in range(MAX_FILES + 5):
        taken(store, server=f"server {number}")
    assert taken(another(tmp_path), server="server 0") == 0.25


def test_two_processes_ask_an_api_at_the_pace_of_one(tmp_path: Path) -> None:
    async def left() -> list[float]:
        clock = VirtualClock()
        processes = [Throttle(store=another(tmp_path)) for _ in range(2)]
        times = []
        for number in range(5):
            await processes[number % 2].wait_turn("sample", API, PACE, clock, 50.0)
            times.append(round(clock.now(), 3))
        await processes[1].wait_turn("sample", OTHER, PACE, clock, 50.0)
        late = processes[1].wait_turn("sample", API, PACE, VirtualClock(), 0.5)
        with pytest.raises(TurnTooLate):
            await late
        return times

    assert asyncio.run(left()) == [0.0, 0.25, 0.5, 0.75, 1.0]
