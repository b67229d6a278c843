"""Freed memory goes back to the machine, also what threads freed."""

from __future__ import annotations

import subprocess
import sys

HOLD = """
import psutil, sys, threading
from orchestrator.processes.memory import limit_arenas, return_freed_memory

possible = limit_arenas()
own = lambda: psutil.Process().memory_full_info().uss / 2**20

def work():
    # Small enough to come from an arena; what is kept pins the blocks before it.
    parts = [bytes(100_000) for _ in range(1_500)]
    kept.append(bytes(100_000))

kept, before = [], own()
for _ in range(4):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
assert return_freed_memory() is possible
print(round(own() - before) if possible else 0)
"""


def test_what_threads_worked_on_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLD], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 20
