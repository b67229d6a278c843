from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sandbox.clock import VirtualClock
from sandbox.errors import RateLimited
from sandbox.exchange import WireRequest
from sandbox.pauses import MAX_ORIGINS, STALE_SECONDS, Pauses
from sandbox.policy import Origin
from sandbox.throttle import MAX_PAUSE, Throttle
from tests.sandbox.scripted import Told, answer, broker

API = Origin("https", "api.test", 443)
OTHER = Origin("https", "other.test", 443)
WALL = 1_800_000_000.0


def another(directory: Path) -> Pauses:
    """What another process of the home reads."""
    return Pauses(directory / "pauses", MAX_PAUSE)


def test_what_one_process_was_told_holds_the_others(tmp_path: Path) -> None:
    one = another(tmp_path)
    one.pause(API, WALL + 30, WALL)
    assert one.until(API, WALL) == pytest.approx(WALL + 30, abs=0.001)
    assert another(tmp_path).until(API, WALL) == pytest.approx(WALL + 30, abs=0.001)
    assert another(tmp_path).until(OTHER, WALL) == 0.0


def test_a_pause_ends_by_itself_and_is_never_shortened(tmp_path: Path) -> None:
    pauses = another(tmp_path)
    pauses.pause(API, WALL + 30, WALL)
    pauses.pause(API, WALL + 5, WALL)
    assert pauses.until(API, WALL + 29) > WALL + 29
    assert pauses.until(API, WALL + 31) == 0.0


def test_what_is_known_is_not_looked_up_again_for_a_moment(tmp_path: Path) -> None:
    moment = [5.0]
    pauses = Pauses(tmp_path / "pauses", MAX_PAUSE, ticks=lambda: moment[0])
    assert pauses.until(API, WALL) == 0.0
    another(tmp_path).pause(API, WALL + 30, WALL)
    assert pauses.until(API, WALL) == 0.0
    moment[0] += STALE_SECONDS * 2
    assert pauses.until(API, WALL) > WALL


@pytest.mark.parametrize("until", [WALL + 10 * MAX_PAUSE, 4e9])
def test_a_time_set_by_hand_holds_no_longer_than_an_upstream_could(
    tmp_path: Path, until: float
) -> None:
    pauses = another(tmp_path)
    pauses.pause(API, WALL + 1, WALL)
    (file,) = (tmp_path / "pauses").iterdir()
    os.utime(file, (0, until))
    assert another(tmp_path).until(API, WALL) == WALL + MAX_PAUSE


def test_a_directory_that_cannot_be_used_holds_nobody(tmp_path: Path) -> None:
    (tmp_path / "pauses").write_text("a file")
    pauses = another(tmp_path)
    pauses.pause(API, WALL + 30, WALL)
    assert pauses.until(API, WALL) == 0.0


def test_the_files_are_bounded_and_those_that_end_first_go(tmp_path: Path) -> None:
    pauses = another(tmp_path)
    for number in range(MAX_ORIGINS + 5):
        pauses.pause(Origin("https", f"h{number}.test", 443), WALL + 60 + number, WALL)
    assert len(list((tmp_path / "pauses").iterdir())) == MAX_ORIGINS
    fresh = another(tmp_path)
    assert fresh.until(Origin("https", "h0.test", 443), WALL) == 0.0
    assert fresh.until(Origin("https", f"h{MAX_ORIGINS + 4}.test", 443), WALL) > WALL


def test_two_throttles_of_a_home_wait_for_the_same_upstream(tmp_path: Path) -> None:
    first, second = (Throttle(shared=another(tmp_path)) for _ in range(2))
    first.pause(API, VirtualClock(), 20.0)
    with pytest.raises(RateLimited):
        asyncio.run(second.admit(API, VirtualClock(), patience=5.0))
    clock = VirtualClock(start=700.0, epoch=1_700_000_000.0 - 700)
    asyncio.run(second.admit(API, clock))
    assert clock.now() == pytest.approx(720.0, abs=0.01)
    asyncio.run(second.admit(OTHER, VirtualClock(), patience=0.0))
    asyncio.run(Throttle().admit(API, VirtualClock(), patience=0.0))


def test_an_answer_that_says_wait_holds_the_calls_of_another_process(tmp_path: Path) -> None:
    upstream = Told([answer(429, retry_after="300")])
    held = [
        asyncio.run(
            broker(upstream, throttle=Throttle(shared=another(tmp_path))).perform(
                WireRequest("GET", "https://api.test/x")
            )
        )
        for _ in range(2)
    ]
    assert [exchange.attempts for exchange in held] == [1, 0]
    assert held[1].refusal == "rate_limited"
    assert len(upstream.requests) == 1
