"""A process that the command server forks is as one that was started."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.functional.commands import ForkedProcess, command_server

SECONDS = 120.0
ROOT = Path(__file__).parents[2]
NAME = "tests.functional.test_command_server"
STARTED = [sys.executable, "-c", f"from {NAME} import main; main()"]
LOCALE = {key: word for key, word in os.environ.items() if key.startswith(("LANG", "LC_"))}
ENVIRONMENT = {**LOCALE, "PATH": os.environ["PATH"], "ONLY": "this", "PYTHONPATH": str(ROOT)}
PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}
Process = ForkedProcess | subprocess.Popen[bytes]


def main() -> None:
    """What the processes of these tests do: tell of themselves, and end when they are told to."""
    told = {
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
        "group": os.getpgrp(),
        "threads": (len(os.listdir("/proc/self/task")), threading.active_count()),
        "signals": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "streams": [
            (each.encoding, each.errors, each.line_buffering, each is original)
            for each, original in (
                (sys.stdin, sys.__stdin__),
                (sys.stdout, sys.__stdout__),
                (sys.stderr, sys.__stderr__),
            )
        ],
        "command_line": sorted(name for name in sys.modules if name.startswith("orchestrator.cli")),
    }
    print(json.dumps(told))
    print(random.random(), flush=True)
    sys.stdin.readline()
    print("this is said aside", file=sys.stderr)
    sys.exit(3)


def fork(**options: Any) -> ForkedProcess:
    return command_server().start((), ENVIRONMENT, module=NAME, **{**PIPES, **options})


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(STARTED, env=ENVIRONMENT, **PIPES)


def hear(process: Process) -> tuple[dict[str, Any], float]:
    """What a process tells of itself, and its random number."""
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    return told, float(process.stdout.readline())


def end(process: Process) -> int:
    """Its status after the end of its input."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(SECONDS)


def test_it_differs_in_nothing_from_one_that_was_started_and_shares_nothing_with_another() -> None:
    with fork() as first, fork() as second, start() as started:
        (told, number), (again, other), (wanted, _) = hear(first), hear(second), hear(started)
        assert told == again == wanted
        assert number != other
        assert first.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(0.0)
        assert [end(each) for each in (first, second, started)] == [3, 3, 3]


def test_what_it_says_is_read_to_its_end_and_one_that_takes_too_long_is_killed() -> None:
    with fork(stdin=subprocess.DEVNULL) as process:
        output, errors = process.read_to_end(SECONDS)
    assert (output.count(b"\n"), errors) == (2, b"this is said aside\n")
    with fork() as endless, pytest.raises(subprocess.TimeoutExpired):
        endless.read_to_end(0.1)
    assert endless.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_and_its_streams_and_later_ones_reach_nobody(number: int) -> None:
    with fork() as process:
        hear(process)
        process.send_signal(number)
        assert process.wait(SECONDS) == -number
        assert process.stdout is not None
        assert process.stdout.read() == b""
        process.kill()


def test_an_interrupt_reaches_it_unless_who_started_it_ignores_interrupts() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with fork() as deaf, start() as started:
            assert hear(deaf)[0] == hear(started)[0]
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_has_a_session_of_its_own_where_that_is_asked() -> None:
    with fork(start_new_session=True) as process:
        assert hear(process)[0]["group"] == process.pid


def launch() -> subprocess.Popen[bytes]:
    """A `serve` behind the launcher."""
    words = ("serve", "--http", "--port", "0", "--no-control", "--engine", "wasm")
    return subprocess.Popen(command_server().launch(*words), **PIPES)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_ends_with_its_process_which_ends_with_it(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(tmp_path / "home"))
    with launch() as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"MCP at ")
        process.send_signal(number)
        assert process.stdout.read().count(b"MCP at") == 0
        status = process.wait(SECONDS)
    assert status == (128 + number if number == signal.SIGTERM else -number)
