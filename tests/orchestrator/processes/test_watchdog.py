"""What holds up the event loop is counted, stored and shown."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from orchestrator.control.metrics import StoreCollector
from orchestrator.processes.watchdog import STALL_SECONDS, LoopWatchdog, TurnTimer, WatchedLoop
from registry.models import Process
from registry.store import Store


def hold_up(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_work_in_the_event_loop_is_seen(store: Store) -> None:
    store.processes.register(Process("p1", 1, 1.0, "serve", 1.0, 1.0))

    async def run() -> None:
        watchdog = LoopWatchdog(
            lambda stalls, longest: store.processes.record_stalls("p1", stalls, longest)
        )
        hold_up(2 * STALL_SECONDS)
        await asyncio.sleep(0)
        await watchdog.report()

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(run())
    (kept,) = store.processes.find()
    assert kept.stalls >= 1
    assert kept.longest_stall >= STALL_SECONDS
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    told = generate_latest(registry).decode()
    assert f'toolwright_loop_stalls_total{{kind="serve",process="p1"}} {kept.stalls}.0' in told
    assert 'toolwright_loop_longest_stall_seconds{kind="serve",process="p1"}' in told


@pytest.mark.parametrize(("late", "stalls"), [(-0.1, 0), (0.0, 0), (0.049, 0), (0.05, 1), (3.0, 1)])
def test_only_a_long_turn_counts(late: float, stalls: int) -> None:
    with TurnTimer() as turns:
        turns.note_turn(late)
    assert turns.stalls == stalls
    assert turns.longest_seconds == (late if stalls else 0.0)


def test_a_wait_for_events_is_no_stall() -> None:
    def is_counted() -> bool:
        with TurnTimer() as turns:
            turns.select(STALL_SECONDS + 0.01)
        return turns.stalls > 0

    # A loaded machine may end some of the waits late.
    assert not all(is_counted() for _ in range(40))
