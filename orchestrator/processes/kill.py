"""The kill switch: store the freeze, wait for every process to stop, kill those that do not."""

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
from registry.models import Process
from registry.processes import ProcessTable
from sandbox.clock import Clock

SILENCE_SECONDS = 0.5
POLL_SECONDS = 0.005
RESERVE_BYTES = 1024 * 1024
CONTAINER_SECONDS = 10.0
PASSIVE = frozenset({"control", "command", "starting"})
"""Kinds of process that never call or forge and so have nothing to stop."""


@dataclass(frozen=True)
class KillReport:
    """Counts of a freeze. `left` sandboxes still run: 0 unless the engine fails."""

    epoch: int
    processes: int
    acknowledged: int
    sigkilled: int
    containers: int
    left: int
    milliseconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def keep_reserve(path: Path) -> None:
    """Reserve 1 MiB of disk, which a freeze can free where the disk is full."""
    with suppress(OSError):
        if not path.exists():
            path.write_bytes(bytes(RESERVE_BYTES))


def freeze_everything(
    processes: ProcessTable,
    reserve: Path,
    by: str,
    reason: str,
    kill_sandboxes: Callable[[], int],
    clock: Clock,
    silence_seconds: float = SILENCE_SECONDS,
) -> KillReport:
    """Freeze and return when nothing runs any more.

    `kill_sandboxes` kills all of this installation's and returns how many it found. A process that
    does not acknowledge within `silence_seconds` is killed by SIGKILL. On a full disk the file
    `reserve` makes room; where the freeze cannot be stored even so, everything is killed and
    DatabaseUnusable is raised: what is started afterwards is not frozen.
    """
    started = clock.now()
    try:
        epoch = _store_freeze(processes, reserve, by, reason, clock.get_wall_time())
    except DatabaseUnusable:
        for process in _find_active(processes):
            _kill_process(process)
        kill_sandboxes()
        raise
    asked = {process.id for process in _find_active(processes)}
    silent = _wait_for_silent(processes, epoch, clock, silence_seconds)
    asked |= {process.id for process in silent}
    sigkilled = sum(_kill_process(process) for process in silent)
    found = kill_sandboxes()
    left = found
    # From here on, as waiting for the silent ones may have taken longer than that.
    end = clock.now() + CONTAINER_SECONDS
    while left and clock.now() < end:
        left = kill_sandboxes()
    return KillReport(
        epoch=epoch,
        processes=len(asked),
        acknowledged=len(asked) - len(silent),
        sigkilled=sigkilled,
        containers=found,
        left=left,
        milliseconds=round((clock.now() - started) * 1000, 1),
    )


def _store_freeze(processes: ProcessTable, reserve: Path, by: str, reason: str, now: float) -> int:
    try:
        return processes.freeze(now, by, reason)
    except DatabaseUnusable:
        reserve.unlink(missing_ok=True)
        return processes.freeze(now, by, reason)


def is_alive(process: Process) -> bool:
    """Whether the process still runs; its start time distinguishes it from a reused pid.

    A zombie counts as dead.
    """
    try:
        found = psutil.Process(process.pid)
        same = abs(found.create_time() - process.start_time) < 1.0
        return same and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _wait_for_silent(
    processes: ProcessTable, epoch: int, clock: Clock, seconds: float
) -> list[Process]:
    """The live processes that stay silent for so long."""
    end = clock.now() + seconds
    while True:
        silent = [
            process for process in _find_active(processes) if process.acknowledged_epoch < epoch
        ]
        if not silent or clock.now() > end:
            return silent
        time.sleep(POLL_SECONDS)


def _find_active(processes: ProcessTable) -> list[Process]:
    """The live processes that have something to stop."""
    return [p for p in processes.find() if p.kind not in PASSIVE and is_alive(p)]


def _kill_process(process: Process) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)
        return True
    return False
