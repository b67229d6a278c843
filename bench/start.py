"""The time from starting `toolwright serve` to its first answers, as a client waits for them, and
from starting `toolwright run NAME`.

    python -m bench.start [--rounds 5] [--servers 10000] [--peer 'COMMAND ...']

`initialize` and `tools/list` are answered before everything is loaded (by `run` from its second
start on), the first `tools/call` (of `serve` a `status`) after it. With `--servers` so many are
registered (about 10 ms of CPU each, before the first start), and the last line is what the process
then uses in a second without a call, over the minute after half a minute. `--peer` is another
server's command on stdio, started in the same run. Figures are medians; CPU is user and system of
that process until the answer.
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
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import psutil

from bench.call import BUNDLE
from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "0"},
}


STATUS: Mapping[str, Any] = {"name": "status", "arguments": {}}
ECHO: Mapping[str, Any] = {"name": "echo", "arguments": {"text": "a"}}
ANSWERS = ("initialize", "tools/list", "first call")
SERVE = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
RUN = [sys.executable, "-m", "orchestrator", "run", "echo0", "--no-control"]
SETTLE_SECONDS, REST_SECONDS = 30.0, 60.0


@dataclass(frozen=True)
class Moment:
    """How things stand when an answer has come."""

    wall_ms: float
    cpu_ms: float
    memory_mb: float


def measure_start(
    command: list[str],
    environment: dict[str, str],
    call: Mapping[str, Any] = STATUS,
    rests: list[float] | None = None,
) -> list[Moment]:
    """The moments of the answers to `initialize`, `tools/list` and the first call. `rests` gets
    the milliseconds of CPU of a second at rest.
    """
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

    def ask(identity: int, method: str, params: Mapping[str, Any]) -> None:
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
    ask(3, "tools/call", call)
    if rests is not None:
        time.sleep(SETTLE_SECONDS)
        before = sum(watched.cpu_times()[:2])
        time.sleep(REST_SECONDS)
        rests.append((sum(watched.cpu_times()[:2]) - before) / REST_SECONDS * 1e3)
    inbound.close()
    process.wait()
    return moments


def measure_medians(
    command: list[str],
    environment: dict[str, str],
    rounds: int,
    call: Mapping[str, Any] = STATUS,
) -> dict[str, Moment]:
    """The medians of so many starts after a first one, by what was answered."""
    measure_start(command, environment, call)
    starts = [measure_start(command, environment, call) for _ in range(rounds)]
    return {
        answer: Moment(
            *(
                statistics.median(getattr(moment, each.name) for moment in moments)
                for each in fields(Moment)
            )
        )
        for answer, *moments in zip(ANSWERS, *starts, strict=True)
    }


def register_servers(environment: dict[str, str], count: int) -> None:
    settings = load_settings(environment)
    with Store.open(settings.database_url) as store:
        shelf = Bundles(settings.home, store.servers)
        for number in range(count):
            made = replace(BUNDLE, name=f"echo{number}", title=f"Echo {number}")
            shelf.publish_bundle(made, build_entry(made, time.time()), (), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", type=int, default=0, help="that are registered")
    parser.add_argument("--peer", help="command of another server")
    args = parser.parse_args()
    commands = {"toolwright serve": (SERVE, STATUS), "toolwright run": (RUN, ECHO)}
    if args.peer:
        commands["peer"] = shlex.split(args.peer), STATUS
    print(f"{'':20}{'answer':14}{'wall ms':>9}{'CPU ms':>9}{'MB':>7}")
    for name, (command, call) in commands.items():
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "TOOLWRIGHT_HOME": home}
            register_servers(environment, max(args.servers, 1))
            found = measure_medians(command, environment, args.rounds, call)
            for answer, moment in found.items():
                wall, used, memory = moment.wall_ms, moment.cpu_ms, moment.memory_mb
                print(f"{name:20}{answer:14}{wall:9.0f}{used:9.0f}{memory:7.0f}")
            rests: list[float] = []
            if args.servers and command is SERVE:
                measure_start(command, environment, rests=rests)
                print(f"{name:20}{'a second of rest':23}{rests[0]:9.1f}")


if __name__ == "__main__":
    main()
