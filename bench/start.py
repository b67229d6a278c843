"""The time from starting `toolwright serve` to its first answers, as a client waits for them.

    python -m bench.start [--rounds 5] [--peer 'COMMAND ...']

`initialize` and `tools/list` are answered before everything is loaded, the first `tools/call` (a
`status`) after it. `--peer` is another server's command on stdio, started in the same run. Figures
are medians; CPU is user and system of that process until the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import psutil

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}


@dataclass(frozen=True)
class Moment:
    """How things stand when an answer has come."""

    wall_ms: float
    cpu_ms: float
    memory_mb: float


def measure_start(command: list[str], environment: dict[str, str]) -> list[Moment]:
    """The moments of the answers to `initialize`, `tools/list` and the first call."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    inbound, outbound = process.stdin, process.stdout
    assert inbound is not None
    assert outbound is not None
    watched, moments = psutil.Process(process.pid), []

    def ask(identity: int, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        inbound.write(json.dumps(message).encode() + b"\n")
        inbound.flush()
        while json.loads(outbound.readline()).get("id") != identity:
            pass
        times = watched.cpu_times()
        wall = time.perf_counter() - started
        used = (times.user + times.system) * 1e3
        moments.append(Moment(wall * 1e3, used, watched.memory_info().rss / 1e6))

    ask(1, "initialize", HELLO)
    inbound.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    ask(2, "tools/list", {})
    ask(3, "tools/call", {"name": "status", "arguments": {}})
    inbound.close()
    process.wait()
    return moments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", help="command of another server")
    args = parser.parse_args()
    own = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
    commands = {"toolwright serve": own}
    if args.peer:
        commands["peer"] = shlex.split(args.peer)
    print(f"{'':20}{'answer':14}{'wall ms':>9}{'CPU ms':>9}{'MB':>7}")
    for name, command in commands.items():
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "TOOLWRIGHT_HOME": home}
            measure_start(command, environment)
            rounds = [measure_start(command, environment) for _ in range(args.rounds)]
        for answer, *moments in zip(
            ("initialize", "tools/list", "first call"), *rounds, strict=True
        ):
            wall, used, memory = (
                statistics.median(getattr(moment, figure) for moment in moments)
                for figure in ("wall_ms", "cpu_ms", "memory_mb")
            )
            print(f"{name:20}{answer:14}{wall:9.0f}{used:9.0f}{memory:7.0f}")


if __name__ == "__main__":
    main()
