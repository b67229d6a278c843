"""The kill switch against real processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from orchestrator.freeze import Killed, is_alive, kill
from orchestrator.settings import Settings
from registry.records import Process, new_id
from registry.store import Store

Start = Callable[..., tuple[subprocess.Popen[bytes], Process]]


@pytest.fixture
def start(store: Store) -> Iterator[Start]:
    """Starts a process that does nothing, and registers it."""
    children: list[subprocess.Popen[bytes]] = []

    def started(kind: str = "serve", born: float = 0.0) -> tuple[subprocess.Popen[bytes], Process]:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        children.append(child)
        now = time.time()
        start_time = psutil.Process(child.pid).create_time() + born
        process = Process(new_id(), child.pid, start_time, kind, now, now)
        store.register_process(process)
        return child, process

    yield started
    for child in children:
        child.kill()
        child.communicate()


@contextmanager
def acknowledging(settings: Settings, process: Process) -> Iterator[None]:
    """Acknowledge for a process as its pulse would."""
    done = threading.Event()

    def watch() -> None:
        with Store.open(settings.database_url, process.id) as store:
            while not done.wait(0.005):
                epoch = store.freeze_state().epoch
                store.acknowledge(process.id, epoch, time.time())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def no_sandboxes() -> int:
    return 0


def stop(
    store: Store,
    reason: str = "",
    by: str = "test",
    kill_sandboxes: Callable[[], int] = no_sandboxes,
) -> Killed:
    reserve = store.path.with_name("reserve")
    return kill(store, reserve, by, reason, kill_sandboxes, time.time)


def test_who_acknowledges_lives_and_who_is_silent_is_killed(
    settings: Settings, store: Store, start: Start
) -> None:
    (good, good_row), (deaf, _) = start(), start("run")
    with acknowledging(settings, good_row):
        killed = stop(store, "why not")
    assert (killed.processes, killed.acknowledged, killed.sigkilled) == (2, 1, 1)
    assert deaf.wait(5) == -9
    assert good.poll() is None
    state = store.freeze_state()
    assert (state.frozen, state.by, state.reason) == (True, "test", "why not")


def test_a_process_that_only_shows_is_neither_awaited_nor_killed(
    store: Store, start: Start
) -> None:
    control, _ = start("control")
    killed = stop(store, by="test")
    assert (killed.processes, killed.sigkilled) == (0, 0)
    assert control.poll() is None


def test_another_process_that_got_the_pid_of_a_dead_one_is_left_alone(
    store: Store, start: Start
) -> None:
    innocent, row = start(born=-3600)
    assert not is_alive(row)
    killed = stop(store, by="test")
    assert (killed.processes, killed.sigkilled) == (0, 0)
    assert innocent.poll() is None


def test_one_that_died_is_not_counted(store: Store, start: Start) -> None:
    child, row = start()
    child.kill()
    child.wait()
    assert not is_alive(row)
    assert stop(store, by="test").processes == 0


def test_sandboxes_are_killed_until_none_is_left(store: Store) -> None:
    left = iter([3, 1, 0, 7])
    killed = stop(store, kill_sandboxes=lambda: next(left))
    assert (killed.containers, killed.left) == (3, 0)
    assert next(left) == 7


def test_sandboxes_are_killed_after_the_freeze_and_not_before(store: Store) -> None:
    seen = []

    def kill_sandboxes() -> int:
        seen.append(store.freeze_state().frozen)
        return 0

    stop(store, kill_sandboxes=kill_sandboxes)
    assert seen == [True]


def test_frozen_again_is_a_new_epoch(store: Store) -> None:
    first = stop(store, by="a")
    second = stop(store, by="b")
    assert second.epoch == first.epoch + 1
