"""The kill switch: freeze, see every process stop, kill what does not, count what is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from registry.errors import DatabaseUnusable
from registry.records import Process
from registry.store import Store

SILENCE_SECONDS = 0.5
POLL_SECONDS = 0.005
RESERVE_BYTES = 1024 * 1024
CONTAINER_SECONDS = 10.0
PASSIVE = frozenset({"control", "command", "starting"})
"""Kinds of process that never call or forge and so have nothing to stop."""


@dataclass(frozen=True)
class Killed:
    """What a kill found and did. `left` sandboxes still run: 0 unless the engine fails."""

    epoch: int
    processes: int
    acknowledged: int
    sigkilled: int
    containers: int
    left: int
    milliseconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def keep_reserve(path: Path) -> None:
    """Keep some disk that a freeze can have when there is no other."""
    with suppress(OSError):
        if not path.exists():
            path.write_bytes(bytes(RESERVE_BYTES))


def kill(
    store: Store,
    reserve: Path,
    by: str,
    reason: str,
    kill_sandboxes: Callable[[], int],
    clock: Callable[[], float],
) -> Killed:
    """Freeze and return when nothing runs any more.

    `kill_sandboxes` kills all of this installation's and returns how many it found. A process that
    does not acknowledge within 500 ms is killed by SIGKILL. On a full disk the file `reserve` makes
    room; where the freeze cannot be stored even so, everything is killed and DatabaseUnusable is
    raised: what is started afterwards is not frozen.
    """
    started = time.monotonic()
    try:
        epoch = _stored(store, reserve, by, reason, clock)
    except DatabaseUnusable:
        for process in _active(store):
            _sigkill(process)
        kill_sandboxes()
        raise
    asked = {process.id for process in _active(store)}
    silent = _awaited(store, epoch)
    asked |= {process.id for process in silent}
    sigkilled = sum(_sigkill(process) for process in silent)
    found = kill_sandboxes()
    left = found
    while left and time.monotonic() - started < CONTAINER_SECONDS:
        left = kill_sandboxes()
    return Killed(
        epoch=epoch,
        processes=len(asked),
        acknowledged=len(asked) - len(silent),
        sigkilled=sigkilled,
        containers=found,
        left=left,
        milliseconds=round((time.monotonic() - started) * 1000, 1),
    )


def _stored(store: Store, reserve: Path, by: str, reason: str, clock: Callable[[], float]) -> int:
    try:
        return store.freeze(clock(), by, reason)
    except DatabaseUnusable:
        reserve.unlink(missing_ok=True)
        return store.freeze(clock(), by, reason)


def is_alive(process: Process) -> bool:
    """Whether that very process still runs; its start time tells it from a reused pid.

    One that its parent has not waited for yet is dead all the same.
    """
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.start_time) < 1.0
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _awaited(store: Store, epoch: int) -> list[Process]:
    """The live processes that stay silent for half a second."""
    end = time.monotonic() + SILENCE_SECONDS
    while True:
        silent = [process for process in _active(store) if process.acknowledged_epoch < epoch]
        if not silent or time.monotonic() > end:
            return silent
        time.sleep(POLL_SECONDS)


def _active(store: Store) -> list[Process]:
    """The live processes that have something to stop."""
    return [p for p in store.processes() if p.kind not in PASSIVE and is_alive(p)]


def _sigkill(process: Process) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)
        return True
    return False
