"""The kill switch against real processes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.processes.kill import (
    KilledSandboxes,
    KillReport,
    freeze_everything,
    kill_until_gone,
)
from orchestrator.processes.liveness import is_alive, read_start_time
from orchestrator.settings import Settings, load_settings
from registry.models import Process, generate_id
from registry.store import Store
from sandbox.clock import Clock, SystemClock
from sandbox.errors import EngineAbsent, EngineUnavailable
from tests.orchestrator.processes.busyengine import run_engine

SYSTEM = SystemClock()
Start = Callable[..., tuple[subprocess.Popen[bytes], Process]]


@pytest.fixture
def start(store: Store) -> Iterator[Start]:
    """Starts a process that does nothing, and registers it."""
    children: list[subprocess.Popen[bytes]] = []

    def started(kind: str = "serve", born: float = 0.0) -> tuple[subprocess.Popen[bytes], Process]:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        children.append(child)
        now = time.time()
        start_time = read_start_time(child.pid) + born
        process = Process(generate_id(), child.pid, start_time, kind, now, now)
        store.processes.register(process)
        return child, process

    yield started
    for child in children:
        child.kill()
        child.communicate()


class HandClock(SystemClock):
    """Shows the time that it was set to."""

    moment = 0.0

    def now(self) -> float:
        return self.moment


@contextmanager
def acknowledging(settings: Settings, process: Process, clock: HandClock) -> Iterator[None]:
    """Acknowledge for a process as its pulse would, and let a minute pass only after that."""
    done = threading.Event()

    def watch() -> None:
        with Store.open(settings.database_url, process.id) as store:
            while not done.wait(0.005):
                state = store.processes.get_freeze()
                store.processes.acknowledge_freeze(process.id, state.epoch, time.time())
                clock.moment += 60.0 * state.frozen

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
    clock: Clock = SYSTEM,
) -> KillReport:
    reserve = store.path.with_name("reserve")
    return freeze_everything(store.processes, reserve, by, reason, kill_sandboxes, clock)


def test_who_acknowledges_lives_and_who_is_silent_is_killed(
    settings: Settings, store: Store, start: Start
) -> None:
    (good, good_row), (deaf, _) = start(), start("run")
    clock = HandClock()
    with acknowledging(settings, good_row, clock):
        killed = stop(store, "why not", clock=clock)
    assert (killed.processes, killed.acknowledged, killed.sigkilled) == (2, 1, 1)
    assert deaf.wait(60) == -9
    assert good.poll() is None
    state = store.processes.get_freeze()
    assert (state.frozen, state.by, state.reason) == (True, "test", "why not")


def test_how_long_a_process_may_be_silent_is_a_setting(tmp_path: Path) -> None:
    given = {"TOOLWRIGHT_SILENCE_SECONDS": "3"}
    assert load_settings(given, home=tmp_path).silence_seconds == 3.0
    assert load_settings({}, home=tmp_path).silence_seconds == 0.5


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


class Engine:
    """Answers each round with a number of sandboxes, or an error; a round takes `seconds`."""

    def __init__(self, clock: HandClock, *rounds: int | EngineUnavailable, seconds: float) -> None:
        self._clock, self._rounds, self._seconds = clock, iter(rounds), seconds

    def kill_sandboxes(self) -> int:
        self._clock.moment += self._seconds
        answer = next(self._rounds)
        if isinstance(answer, EngineUnavailable):
            raise answer
        return answer


SILENT, ABSENT = EngineUnavailable("no answer"), EngineAbsent("no such file")


def killed_until_gone(
    *rounds: int | EngineUnavailable, seconds: float = 7.0, patience: float = math.inf
) -> tuple[KilledSandboxes, list[int]]:
    clock, told = HandClock(), list[int]()
    engine = Engine(clock, *rounds, seconds=seconds)
    return kill_until_gone(engine.kill_sandboxes, clock, patience, told.append), told


def test_sandboxes_are_killed_on_however_slow_the_engine_is_and_how_many_are_left_is_told() -> None:
    rounds: tuple[int | EngineUnavailable, ...]
    rounds = (33, 33, 30, SILENT, 30, SILENT, SILENT, 12, *[3] * 50, 0)
    gone, told = killed_until_gone(*rounds)
    assert gone == KilledSandboxes(found=33, left=0, silent=False)
    assert told == [33, 33, 30, 30, 30, 30, 30, 12, *[3] * 50]


def test_an_engine_that_does_not_answer_any_more_is_told_dead_and_nothing_is_taken_for_gone() -> (
    None
):
    gone, _ = killed_until_gone(33, *[SILENT] * 9)
    assert gone == KilledSandboxes(found=33, left=33, silent=True)
    gone, _ = killed_until_gone(*[SILENT] * 9)
    assert gone == KilledSandboxes(found=0, left=0, silent=True)
    gone, _ = killed_until_gone(33, *[ABSENT] * 9)
    assert gone == KilledSandboxes(found=33, left=33, silent=True)


def test_where_there_is_no_engine_there_is_nothing_to_kill() -> None:
    assert killed_until_gone(ABSENT) == (KilledSandboxes(0, 0, silent=False), [])


def test_a_freeze_answers_in_time_how_many_are_left() -> None:
    gone, _ = killed_until_gone(*[33] * 9, patience=20.0)
    assert gone == KilledSandboxes(found=33, left=33, silent=False)


def test_the_command_goes_on_until_a_busy_engine_has_removed_all(tmp_path: Path) -> None:
    with run_engine(tmp_path / "docker.sock", sandboxes=33, listings=40) as engine:
        environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": str(tmp_path / "home"),
            "DOCKER_HOST": f"unix://{tmp_path}/docker.sock",
        }
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", "kill", "--json"],
            env=environment,
            capture_output=True,
            check=False,
        )
    killed = json.loads(done.stdout)
    assert (done.returncode, killed["containers"], killed["left"]) == (0, 33, 0)
    assert b"33 sandboxes left" in done.stderr
    assert sum("/containers/json" in asked for asked in engine.asked) == 41
    assert not any(asked.startswith("POST") for asked in engine.asked)


def test_sandboxes_are_killed_after_the_freeze_and_not_before(store: Store) -> None:
    seen = []

    def kill_sandboxes() -> int:
        seen.append(store.processes.get_freeze().frozen)
        return 0

    stop(store, kill_sandboxes=kill_sandboxes)
    assert seen == [True]


def test_frozen_again_is_a_new_epoch(store: Store) -> None:
    first = stop(store, by="a")
    second = stop(store, by="b")
    assert second.epoch == first.epoch + 1
