"""Freed memory goes back to the machine, also what threads freed.

Each test looks at a process of its own, which has glibc's allocator with its usual settings. What
is counted is anonymous memory: file pages become one process's own when another one ends.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
GLIBC = platform.libc_ver()[0] == "glibc"
PIECES, PIECE = 1_500, 100_000
"""What a thread works on: 150 MB in pieces small enough to come from an arena."""
WORK = f"""
import json, re, threading
from pathlib import Path
from orchestrator.processes.memory import return_freed_memory

kept = []

def measure():
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"^Anonymous:\\s+(\\d+) kB$", rollup, re.MULTILINE)[1]) // 1024

def work():
    # Written to: memory that only was asked for is nobody's yet.
    pieces = [b"x" * {PIECE} for _ in range({PIECES})]
    # The last piece stays, so that the allocator cannot give back those before it by itself.
    kept.append(pieces.pop())

before = measure()
for target in (work, lambda: threading.Thread(target=work)):
    thread = target()
    if thread is not None:
        thread.start()
        thread.join()
held = measure() - before
told = return_freed_memory()
print(json.dumps(dict(held=held, told=told, left=measure() - before)))
"""
ARENAS = """
import ctypes, json, sys, threading
from orchestrator.processes.memory import limit_arenas

told = limit_arenas() if sys.argv[1] == "limited" else None
THREADS = 6
allocated, counted = threading.Barrier(THREADS + 1), threading.Event()

def work():
    piece = bytes(100_000)
    allocated.wait()
    counted.wait()
    del piece

for _ in range(THREADS):
    threading.Thread(target=work).start()
allocated.wait()
library = ctypes.CDLL(None)
print(json.dumps(told), flush=True)
if hasattr(library, "malloc_info"):
    library.fdopen.restype = ctypes.c_void_p
    output = ctypes.c_void_p(library.fdopen(1, b"w"))
    library.malloc_info(0, output)
    library.fflush(output)
counted.set()
"""


def run(source: str, *words: str) -> str:
    """What a program prints that inherits nothing which would change the allocator."""
    done = subprocess.run(
        [sys.executable, "-c", source, *words],
        env={"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


def count_arenas(word: str) -> tuple[Any, int]:
    """What `limit_arenas` said, and in how many arenas six threads allocate then."""
    told, _, information = run(ARENAS, word).partition("\n")
    return json.loads(told), information.count("<heap nr=")


def test_what_was_worked_on_and_freed_is_given_back() -> None:
    found = json.loads(run(WORK))
    assert found["told"] is GLIBC
    megabytes = 2 * PIECES * PIECE // 2**20
    # Without glibc's arenas there is nothing to give back.
    assert found["held"] > 0.9 * megabytes or not GLIBC, found
    assert found["left"] < 0.1 * megabytes or not GLIBC, found


def test_threads_share_two_arenas_once_that_was_asked_for() -> None:
    told, arenas = count_arenas("limited")
    assert told is GLIBC
    assert arenas == (2 if GLIBC else 0)


def test_otherwise_each_thread_has_an_arena_of_its_own() -> None:
    told, arenas = count_arenas("as it is")
    assert told is None
    assert arenas == (7 if GLIBC else 0)
