"""The kill switch: store the freeze, wait for every process to stop, kill those that do not."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.processes.liveness import is_alive
from registry.errors import DatabaseUnusable
from registry.models import Process
from registry.processes import ProcessTable
from sandbox.clock import Clock
from sandbox.errors import EngineAbsent, EngineUnavailable

SILENCE_SECONDS = 0.5
POLL_SECONDS = 0.005
RESERVE_BYTES = 1024 * 1024
CONTAINER_SECONDS = 20.0
"""How long a freeze kills sandboxes before it answers that some are left."""
DEAD_SECONDS = 30.0
"""An engine that has not answered for so long, asked again and again, is taken to be dead."""
ROUND_SECONDS = 0.1
PASSIVE = frozenset({"control", "command", "starting"})
"""Kinds of process that never call or forge and so have nothing to stop."""


@dataclass(frozen=True)
class KillReport:
    """Counts of a freeze. `left` sandboxes were listed last and may still run: 0 unless the engine
    fails. `engine_silent` tells that it did not answer, so that nobody knows what runs.
    """

    epoch: int
    processes: int
    acknowledged: int
    sigkilled: int
    containers: int
    left: int
    milliseconds: float
    engine_silent: bool = False

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
    tell: Callable[[int], None] = lambda left: None,
) -> KillReport:
    """Freeze and return when nothing runs any more, or sandboxes are left after CONTAINER_SECONDS.

    `kill_sandboxes` and `tell` are those of `kill_until_gone`. A process that
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
        kill_until_gone(kill_sandboxes, clock, CONTAINER_SECONDS, tell)
        raise
    asked = {process.id for process in _find_active(processes)}
    silent = _wait_for_silent(processes, epoch, clock, silence_seconds)
    asked |= {process.id for process in silent}
    sigkilled = sum(_kill_process(process) for process in silent)
    gone = kill_until_gone(kill_sandboxes, clock, CONTAINER_SECONDS, tell)
    return KillReport(
        epoch=epoch,
        processes=len(asked),
        acknowledged=len(asked) - len(silent),
        sigkilled=sigkilled,
        containers=gone.found,
        left=gone.left,
        milliseconds=round((clock.now() - started) * 1000, 1),
        engine_silent=gone.silent,
    )


@dataclass(frozen=True)
class KilledSandboxes:
    """`found` were there at first, `left` when last listed; `silent` if the engine is dead."""

    found: int
    left: int
    silent: bool


def kill_until_gone(
    kill_sandboxes: Callable[[], int],
    clock: Clock,
    seconds: float = math.inf,
    tell: Callable[[int], None] = lambda left: None,
) -> KilledSandboxes:
    """Kill all sandboxes, again and again until none is listed, the engine is dead or so many
    seconds have passed. A dead engine was asked for DEAD_SECONDS and has not answered once.

    `kill_sandboxes` tries once and returns how many were listed before that; it raises
    EngineUnavailable if the engine does not answer, EngineAbsent if there is none. `tell` hears how
    many are left after each round.
    """
    end, found, left = clock.now() + seconds, 0, 0
    answered = clock.now()
    while True:
        silent = False
        try:
            left = kill_sandboxes()
            found, answered = max(found, left), clock.now()
        except EngineAbsent:
            # Nothing was started by an engine that is not there, unless it was there a moment ago.
            if not found:
                return KilledSandboxes(0, 0, silent)
            silent = True
        except EngineUnavailable:
            silent = True
        over = clock.now() > end or clock.now() - answered > DEAD_SECONDS
        if over or not (left or silent):
            return KilledSandboxes(found, left, silent)
        tell(left)
        time.sleep(ROUND_SECONDS)


def _store_freeze(processes: ProcessTable, reserve: Path, by: str, reason: str, now: float) -> int:
    try:
        return processes.freeze(now, by, reason)
    except DatabaseUnusable:
        reserve.unlink(missing_ok=True)
        return processes.freeze(now, by, reason)


def _wait_for_silent(
    processes: ProcessTable, epoch: int, clock: Clock, seconds: float
) -> list[Process]:
    """The live processes that stay silent for so long."""
    end = clock.now() + seconds
    while True:
        # Looked at first: who acknowledged until then is seen below.
        over = clock.now() > end
        silent = [
            process for process in _find_active(processes) if process.acknowledged_epoch < epoch
        ]
        if not silent or over:
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
