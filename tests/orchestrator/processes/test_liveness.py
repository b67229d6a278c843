"""Which of the processes that are registered still run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.processes.liveness import is_alive, read_start_time, register_process
from registry.store import Store


def test_who_registers_is_alive_and_no_other_process_of_its_number(store: Store) -> None:
    register_process(store.processes, "p1", "serve")
    (own,) = store.processes.find()
    assert is_alive(own)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    for other in (own.start_time - tick, own.start_time + tick, time.time()):
        assert not is_alive(replace(own, start_time=other))


def test_when_a_process_began_does_not_depend_on_the_clock() -> None:
    """As psutil tells it, it is another one once somebody has set the clock (proc(5), btime)."""
    told = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    began = read_start_time(os.getpid()) % 10**8
    assert began == pytest.approx(int(told) / os.sysconf("SC_CLK_TCK"), abs=0.001)


def test_a_process_that_has_ended_began_never() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as ended:
        assert ended.stdout is not None
        ended.stdout.read()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessLookupError):
            read_start_time(ended.pid)
    with pytest.raises(ProcessLookupError):
        read_start_time(ended.pid)
