"""A check that a registered process still runs: its pid may be another's by now."""

from __future__ import annotations

import importlib
import os
import time
from functools import cache
from pathlib import Path

from registry.models import Process
from registry.processes import ProcessTable

ENDING = "ending"
"""The kind of a process that takes up nothing any more and may still have something to stop."""
PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"
PER_BOOT = 10**8
"""Seconds that one boot of a machine lasts at most."""
DEAD = frozenset({b"Z", b"X"})
"""States of proc(5) in which a process has ended and is only still listed."""
TOLERANCE = 0.005
"""Half of what the kernel tells apart."""


def register_process(processes: ProcessTable, process: str, kind: str) -> None:
    """Say among the processes of the installation what this one is."""
    now, own = time.time(), os.getpid()
    processes.register(Process(process, own, read_start_time(own), kind, now, now))


def is_alive(process: Process) -> bool:
    """Whether the process still runs; its start time distinguishes it from a reused pid.

    A zombie counts as dead.
    """
    try:
        return abs(read_start_time(process.pid) - process.start_time) <= TOLERANCE
    except ProcessLookupError:
        return False


def read_start_time(pid: int) -> float:
    """When a process began, so that no other one of this pid has the same: seconds since the
    machine was started, after a number of that start. Whoever sets the clock changes nothing of it.

    Where there is no proc(5) it is what psutil tells. Raises ProcessLookupError.
    """
    if not BOOT_ID.exists():
        return _ask_psutil(pid)
    try:
        said = (PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessLookupError(pid) from None
    # After its name, which may have spaces and brackets: state, 18 more, and the start.
    fields = said.rpartition(b")")[2].split()
    if fields[0] in DEAD:
        raise ProcessLookupError(pid)
    return _number_boot() * PER_BOOT + int(fields[19]) / os.sysconf("SC_CLK_TCK")


@cache
def _number_boot() -> int:
    return int(BOOT_ID.read_text()[:4], 16)


def _ask_psutil(pid: int) -> float:
    # Loaded by name: nobody else's machine needs it for this.
    psutil = importlib.import_module("psutil")
    try:
        found = psutil.Process(pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            raise ProcessLookupError(pid)
        return float(found.create_time())
    except psutil.NoSuchProcess:
        raise ProcessLookupError(pid) from None
