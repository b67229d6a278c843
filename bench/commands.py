"""The cost of commands by themselves and with the resident process, in turns.

    python -m bench.commands [--rounds 7] [--engine wasm]

A home with the server of examples/harbour, made for this. `alone` has TOOLWRIGHT_RESIDENT=off. Wall
is what a person waits; CPU is user and system of the command's process, and what the resident
process used meanwhile. Figures are medians; the API answers on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

from orchestrator.cli.resident.protocol import SWITCH
from orchestrator.processes.resident import NAME, find_resident, stop_resident
from orchestrator.settings import load_settings
from registry.store import Store

ROOT = Path(__file__).parents[1]
PIN = "commands-4711"
COMMANDS = (
    ("list",),
    ("find", "list the berths"),
    ("show", "harbour"),
    ("call", "harbour.list_berths"),
)
ALONE, RESIDENT = "alone", "resident"
SECONDS = 60.0


@dataclass(frozen=True)
class CommandCost:
    """One command's wall time, its processor time, and that of the resident process, in ms."""

    wall: float
    cpu: float
    resident_cpu: float


def run_command(words: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Run a command that has to succeed."""
    command = [sys.executable, "-m", "orchestrator", *words]
    subprocess.run(command, env=dict(environment), stdout=subprocess.DEVNULL, check=True)


def measure_command(
    words: tuple[str, ...], environment: Mapping[str, str], resident: psutil.Process | None
) -> CommandCost:
    """What a command took; `resident` is the process that answers it, if one does."""
    before, began = _read_cpu(resident), time.perf_counter()
    command = [sys.executable, "-m", "orchestrator", *words]
    with subprocess.Popen(command, env=dict(environment), stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    assert process.returncode == 0, words
    return CommandCost(
        wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3, (_read_cpu(resident) - before) * 1e3
    )


def _read_cpu(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def serve_harbour() -> Iterator[str]:
    """The example API on a free port; its host and port."""
    script = ROOT / "examples" / "harbour" / "api.py"
    words = [sys.executable, str(script), "--port", "0", "--log", os.devnull]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        finally:
            process.terminate()


def start_resident(environment: Mapping[str, str]) -> psutil.Process:
    """Let a command start the resident process; returned once it makes calls."""
    settings = load_settings(environment)
    run_command(("list",), environment)
    end = time.monotonic() + SECONDS
    with Store.open(settings.database_url) as store:
        while not any(each.kind == NAME for each in store.processes.find()):
            assert time.monotonic() < end, "the resident process did not start"
            time.sleep(0.05)
    found = find_resident(settings.home)
    assert found is not None
    return psutil.Process(found)


@contextmanager
def prepared_home(engine: str) -> Iterator[tuple[dict[str, str], dict[str, str], psutil.Process]]:
    """A home with one server whose API answers: the environment without the resident process, that
    with it, and that process.
    """
    with tempfile.TemporaryDirectory() as place, serve_harbour() as host:
        pin = Path(place, "pin")
        pin.write_text(PIN)
        environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": str(Path(place, "home")),
            "TOOLWRIGHT_VAULT_KEY_FILE": str(Path(place, "vault.key")),
            "TOOLWRIGHT_ENGINE": engine,
            "TOOLWRIGHT_SEMANTIC": "off",
        }
        alone, on = {**environment, SWITCH: "off"}, {**environment, SWITCH: "on"}
        run_command(("setup", "--pin-file", str(pin)), alone)
        source = ("--source", f"http://{host}", "--allow", host, "--pin-file", str(pin))
        run_command(("forge", "list the berths", *source), alone)
        try:
            yield alone, on, start_resident(on)
        finally:
            stop_resident(Path(place, "home"))


def measure_both(
    words: tuple[str, ...],
    alone: Mapping[str, str],
    on: Mapping[str, str],
    resident: psutil.Process,
    rounds: int,
) -> dict[str, CommandCost]:
    """The medians of a command by itself and answered by the resident process, in turns."""
    measure_command(words, on, resident)
    costs: dict[str, list[CommandCost]] = {ALONE: [], RESIDENT: []}
    for _ in range(rounds):
        costs[ALONE].append(measure_command(words, alone, None))
        costs[RESIDENT].append(measure_command(words, on, resident))
    return {
        how: CommandCost(
            *(
                statistics.median(getattr(cost, each.name) for cost in measured)
                for each in fields(CommandCost)
            )
        )
        for how, measured in costs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engine", default="wasm", choices=("wasm", "docker"))
    args = parser.parse_args()
    print(f"{'':28}{'wall ms':>9}{'CPU ms':>9}{'resident CPU ms':>17}")
    with prepared_home(args.engine) as (alone, on, resident):
        for words in COMMANDS:
            costs = measure_both(words, alone, on, resident, args.rounds)
            for how, cost in costs.items():
                figures = f"{cost.wall:9.0f}{cost.cpu:9.0f}{cost.resident_cpu:17.0f}"
                print(f"{words[0]:10}{how:18}{figures}")
        print(f"the resident process holds {resident.memory_info().rss / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
