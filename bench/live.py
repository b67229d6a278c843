"""Many live servers in one `toolwright serve`: their first answers, random calls, what stays.

    python -m bench.live [--servers 500] [--seconds 300] [--concurrent 8] [--first 20]
        [--engine docker|wasm]

First answers are those of servers that nobody called before, with a pause before each in which a
spare is made ready: called at once, and called after `find` named the tool. Then every server is
called once, and random ones after it for so many seconds, some calls at a time. Memory is what the
machine has less (MemAvailable) divided by the servers, and what `serve` holds for itself; open
files are those of `serve`. Calls are fair where the medians of the servers lie close together.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil

from bench.call import BUNDLE, Peer
from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.engines.docker.engine import connect_engine, list_containers

MB = 1024 * 1024
THINKING_SECONDS = 0.8
"""Between what a client's model is told and its next call, at the least."""


class Client(Peer):
    """A client of `serve` that calls many servers."""

    def call(self, name: str) -> float:
        """The seconds of one call."""
        ((_, seconds),) = self.call_each([name], 1)
        return seconds

    def call_each(self, names: Iterable[str], concurrent: int) -> Iterator[tuple[str, float]]:
        """Call each server in turn, so many at a time; its name with the seconds it took."""
        begun: dict[int, tuple[str, float]] = {}
        for name in names:
            while len(begun) >= concurrent:
                yield self._end(begun)
            started = time.perf_counter()
            asked = {"tool": f"{name}.echo", "arguments": {"text": "x" * 100}}
            begun[self._ask("tools/call", {"name": "call_read", "arguments": asked})] = (
                name,
                started,
            )
        while begun:
            yield self._end(begun)

    def find(self, name: str) -> None:
        asked = {"name": "find", "arguments": {"task": f"echo a text of {name}"}}
        first = self.request("tools/call", asked)["structuredContent"]["candidates"][0]
        assert first["tool"] == f"{name}.echo", first["tool"]

    def _end(self, begun: dict[int, tuple[str, float]]) -> tuple[str, float]:
        answered, result, came = self._receive()
        assert not result.get("isError"), result
        name, started = begun.pop(answered)
        return name, came - started

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._process.pid)


def register_servers(home: Path, database_url: str, names: Iterable[str]) -> None:
    with Store.open(database_url) as store:
        bundles = Bundles(home, store.servers)
        for name in names:
            tool = replace(BUNDLE.tools[0], description=f"Echo a text of {name}.")
            bundle = replace(BUNDLE, name=name, title=name, tools=(tool,))
            bundles.publish_bundle(bundle, build_entry(bundle, time.time()), (), None)


def list_first_answers(client: Client, names: Iterable[str], found: bool) -> list[float]:
    times = []
    for name in names:
        if found:
            client.find(name)
        time.sleep(THINKING_SECONDS)
        times.append(client.call(name))
    return times


def draw_servers(names: list[str], seconds: float) -> Iterator[str]:
    chosen, end = random.Random(7), time.monotonic() + seconds
    while time.monotonic() < end:
        yield chosen.choice(names)


def show(title: str, times: Iterable[float]) -> None:
    ordered = sorted(times)
    median, p95, p99 = (ordered[int(len(ordered) * share)] * 1e3 for share in (0.5, 0.95, 0.99))
    print(
        f"{title:44}{median:9.2f} ms median{p95:9.2f} p95{p99:9.2f} p99{ordered[-1] * 1e3:9.2f} "
        f"slowest of {len(ordered)}",
        flush=True,
    )


def show_fairness(times: Iterable[list[float]]) -> None:
    medians = sorted(map(statistics.median, times))
    low, high = (medians[int(len(medians) * share)] for share in (0.05, 0.95))
    show("the median of each server", medians)
    print(f"{'the 95th percentile of them over the 5th':44}{high / low:9.2f}", flush=True)


def show_memory(title: str, client: Client, free: int, servers: int) -> None:
    taken = free - psutil.virtual_memory().available
    own, files = read_own_memory(client.process.pid), client.process.num_fds()
    print(f"{title:44}{taken / servers / MB:9.1f} MB a server; serve {own:.0f} MB", end=", ")
    print(f"{files} open files", flush=True)


def read_own_memory(process: int) -> float:
    """Megabytes that a process shares with no file: the pages of a WASM component, which all of its
    instances map, would count once for each.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    said = dict(line.split(":", 1) for line in lines)
    return int(said["RssAnon"].split()[0]) / 1024


def measure(client: Client, names: list[str], args: argparse.Namespace) -> None:
    cold, told, rest = names[: args.first], names[args.first : 2 * args.first], names
    client.call(names[-1])
    show("first answer, from a spare", list_first_answers(client, cold, found=False))
    show("first answer, after `find` named it", list_first_answers(client, told, found=True))
    free = psutil.virtual_memory().available
    show("all of them opened, one after the other", [s for _, s in client.call_each(rest, 1)])
    show_memory("then", client, free, len(rest))
    before = client.cpu()
    times = defaultdict(list)
    for name, seconds in client.call_each(draw_servers(names, args.seconds), args.concurrent):
        times[name].append(seconds)
    count = sum(map(len, times.values()))
    show(f"random calls, {args.concurrent} at a time", [s for each in times.values() for s in each])
    print(f"{'CPU of a call':44}{(client.cpu() - before) / count * 1e6:9.0f} us")
    show_fairness(times.values())
    show_memory("at the end", client, free, len(rest))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--concurrent", type=int, default=8)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--engine", choices=("docker", "wasm"), default="docker")
    args = parser.parse_args()
    names = [f"shop{number:05}" for number in range(args.servers)]
    print(f"{args.servers} servers on {args.engine}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": scratch,
            "TOOLWRIGHT_ENGINE": args.engine,
            "PYTHONPATH": os.getcwd(),
        }
        settings = load_settings(environment)
        register_servers(Path(scratch), settings.database_url, names)
        command = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
        client = Client(command, environment)
        measure(client, names, args)
        client.close()
        if args.engine == "docker":
            left = list_containers(connect_engine(), instance=settings.instance)
            print(f"containers left: {len(left)}")


if __name__ == "__main__":
    main()
