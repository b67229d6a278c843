"""The soak in short, and the rules by which it judges."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.soak import soak
from bench.soaking.verdict import FD_SLACK, Ending, Figures, Sample, Writes, verdict

ROWS = {"audit": 5, "trust": 2, "entries": 6, "jobs": 0}
WRITES = Writes({1: "done", 2: "unknown", 3: "failed", 4: "unknown", 5: "pending"}, {1: 1, 2: 1})
WELL = Ending("")


def sample(minute: float, fds: int = 40, own_mb: float = 120.0, pid: int = 7) -> Sample:
    return Sample(
        minute,
        "still",
        {"serve-b": Figures(pid, fds, own_mb, 9)},
        {**ROWS, "audit": int(100 * minute)},
        calls=int(100 * minute),
        kill="POST /kill",
        kill_ms=800.0,
    )


def series(**last: float) -> list[Sample]:
    """Six minutes in which nothing happens but in the last three."""
    figures = {"fds": 40, "own_mb": 120.0, **last}
    late = [sample(m, int(figures["fds"]), figures["own_mb"]) for m in (4.0, 5.0, 6.0)]
    return [*(sample(m) for m in (1.0, 2.0, 3.0)), *late]


def test_a_soak_in_which_nothing_leaks_holds() -> None:
    assert verdict(series(), WRITES, WELL) == ()


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (series(fds=40 + FD_SLACK + 1), "open files"),
        (series(own_mb=160.0), "grew from 120 to 160 MB of its own"),
        ([*series(), replace(sample(7), containers=1)], "1 containers were left after the kill"),
        ([*series(), replace(sample(7), foreign=2)], "2 containers of a dead process"),
        ([*series(), replace(sample(7), left=1)], "mounts or network namespaces"),
        ([*series(), replace(sample(7), kill_ms=31_000.0)], "took 31000 ms"),
        ([*series(), replace(sample(7), kill_left=4)], "gave up on 4 containers"),
        ([*series(), replace(sample(7), temp=3)], "3 temporary files"),
        ([*series(), replace(sample(7), rows={**ROWS, "entries": 7})], "entries: 7 rows"),
        ([replace(sample(7), calls=0)], "no call was answered"),
        ([], "no call was answered"),
        (
            [replace(sample(m), phase="busy", reads=7) for m in (1.0, 5.0)],
            "came to nothing: 7 reads at first, 7 at last",
        ),
    ],
)
def test_what_was_not_given_back_is_told(samples: list[Sample], told: str) -> None:
    wrong = verdict(samples, WRITES, WELL)
    assert any(told in reason for reason in wrong), wrong


def test_a_process_that_was_started_again_is_not_measured_by_the_one_before() -> None:
    samples = [sample(m) for m in (1.0, 2.0)] + [sample(m, 90, 300.0, pid=8) for m in (3.0, 4.0)]
    assert verdict(samples, WRITES, WELL) == ()


def test_containers_of_a_busy_moment_are_no_leak() -> None:
    busy = replace(sample(7), phase="busy", containers=30, reads=50)
    assert verdict([busy, *series()], WRITES, WELL) == ()


@pytest.mark.parametrize(
    ("states", "arrived", "told"),
    [
        ({1: "done"}, {1: 2}, "arrived 2 times"),
        ({1: "done"}, {}, "never arrived"),
        ({}, {1: 1}, "nobody approved"),
        ({1: "failed"}, {1: 1}, "arrived and is failed"),
        ({1: "rejected"}, {1: 1}, "arrived and is rejected"),
        ({1: "pending"}, {1: 1}, "arrived and is pending"),
        ({1: "claimed"}, {}, "left claimed"),
        ({1: "approved"}, {}, "left approved"),
    ],
)
def test_a_write_that_was_lost_or_sent_twice_is_told(
    states: Mapping[int, str], arrived: Mapping[int, int], told: str
) -> None:
    wrong = verdict(series(), Writes(states, arrived), WELL)
    assert any(told in reason for reason in wrong), wrong


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (Ending("the row was edited"), "the audit is broken: the row was edited"),
        (Ending("", survivors=2), "2 processes were left"),
        (Ending("", registered=1), "1 processes are registered"),
        (Ending("", troubles=("files: gone",)), "doctor: files: gone"),
    ],
)
def test_what_is_found_at_the_end_is_told(ending: Ending, told: str) -> None:
    wrong = verdict(series(), WRITES, ending)
    assert any(told in reason for reason in wrong), wrong


def test_six_servers_and_two_kills_leave_nothing(
    any_engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = Namespace(minutes=0.15, servers=6, kills=2, engine=any_engine)
    wrong = asyncio.run(soak(given, tmp_path))
    assert wrong == (), capsys.readouterr().out
