"""What holds up the event loop is counted, stored and shown."""

from __future__ import annotations

import asyncio
import time

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from orchestrator.control.metrics import StoreCollector
from orchestrator.processes.watchdog import STALL_SECONDS, LoopWatchdog
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
        watching = asyncio.create_task(watchdog.watch())
        while not watchdog.stalls:
            await asyncio.sleep(0)
            hold_up(4 * STALL_SECONDS)
        watching.cancel()
        await watchdog.report()

    asyncio.run(run())
    (kept,) = store.processes.find()
    assert kept.stalls >= 1
    assert kept.longest_stall >= STALL_SECONDS
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    told = generate_latest(registry).decode()
    assert f'toolwright_loop_stalls_total{{kind="serve",process="p1"}} {kept.stalls}.0' in told
    assert 'toolwright_loop_longest_stall_seconds{kind="serve",process="p1"}' in told


@pytest.mark.parametrize(("late", "stalls"), [(-0.1, 0), (0.0, 0), (0.049, 0), (0.05, 1), (3.0, 1)])
def test_only_a_late_turn_counts(late: float, stalls: int) -> None:
    watchdog = LoopWatchdog(lambda stalls, longest: None)
    watchdog.note_turn(late)
    assert watchdog.stalls == stalls
    assert watchdog.longest_seconds == (late if stalls else 0.0)
