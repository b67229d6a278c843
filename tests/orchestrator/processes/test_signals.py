"""Who follows the database hears of every change."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing

from structlog.testing import capture_logs

from orchestrator.processes.signals import Signals
from registry.models import Process
from registry.store import Store
from sandbox.killswitch import KillSwitch

SECONDS = 600.0
"""Only against hanging."""


def follow(store: Store, changes: int, seconds: float) -> int:
    """How often a follower is woken that is busy whenever one of so many changes is noticed, until
    it has seen all of them or so many seconds have passed.
    """

    store.processes.register(Process("p1", 1, 1.0, "serve", 1.0, 1.0))

    async def run() -> int:
        signals = Signals(store, KillSwitch(), "p1", lambda: None, lambda freeze: freeze)
        with signals.watch_signals():
            turns = 0
            async for _ in signals.follow_changes(seconds):
                turns += 1
                if turns > changes:
                    break
                store.audit.add_note("test", "a change", {}, time.time())
                # The follower is still at work on the state before.
                await signals.wait_for_change()
            return turns

    return asyncio.run(run())


def test_a_change_that_comes_while_its_follower_is_busy_is_not_missed(store: Store) -> None:
    assert follow(store, changes=3, seconds=60.0) == 4


def test_who_follows_for_no_time_looks_once(store: Store) -> None:
    assert follow(store, changes=3, seconds=0.0) == 1


def test_who_could_not_acknowledge_a_freeze_hears_that_it_was_lifted(store: Store) -> None:
    store.processes.register(Process("p1", 1, 1.0, "serve", 1.0, 1.0))

    async def run() -> tuple[int, bool, bool]:
        kill_switch = KillSwitch()
        signals = Signals(store, kill_switch, "p1", lambda: None, lambda freeze: freeze)
        with signals.watch_signals():
            # Nothing of it can be stored any more; that it is frozen can be read.
            store.processes.remove("p1")
            async with asyncio.timeout(SECONDS):
                store.processes.freeze(time.time(), "test")
                while not kill_switch.engaged:
                    await signals.wait_for_change()
                was_engaged = kill_switch.engaged
                store.processes.register(Process("p1", 1, 1.0, "serve", 1.0, 1.0))
                store.processes.unfreeze(time.time(), "test", lambda body: "signed")
                while kill_switch.engaged:
                    await signals.wait_for_change()
            (process,) = store.processes.find()
            return process.acknowledged_epoch, was_engaged, kill_switch.engaged

    assert asyncio.run(run()) == (1, True, False)


def test_who_could_not_read_what_changed_hears_of_the_next_freeze(store: Store) -> None:
    store.processes.register(Process("p1", 1, 1.0, "serve", 1.0, 1.0))

    async def run(shell: sqlite3.Connection) -> bool:
        kill_switch = KillSwitch()
        signals = Signals(store, kill_switch, "p1", lambda: None, lambda freeze: freeze)
        with capture_logs() as said, signals.watch_signals():
            shell.execute("ALTER TABLE freeze RENAME TO moved")
            async with asyncio.timeout(SECONDS):
                while not said:
                    await asyncio.sleep(0)
                shell.execute("ALTER TABLE moved RENAME TO freeze")
                store.processes.freeze(time.time(), "test")
                while not kill_switch.engaged:
                    await signals.wait_for_change()
        return [each["event"] for each in said] == ["what changed cannot be read yet"]

    with closing(sqlite3.connect(store.path, isolation_level=None, timeout=60)) as shell:
        assert asyncio.run(run(shell))
