"""A whole `find` in a large registry, as an MCP client has it from `toolwright serve`.

    python -m bench.find [--data DIRECTORY] [--tools 100000] [--tasks 200]

The tools are those of the public pools (see `bench.search`), as often as needed, in servers of
SERVER tools that are registered with their files. Prints the CPU of the first `find`, which loads
the index, and of tasks of the pools the median and the 95th percentile by the clock and the CPU of
`serve`: asked for the first time, when the servers found are read, and asked once more. No session
is opened ahead of the call that may follow, and no vectors are made (see `bench.routing`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from bench.call import BUNDLE, Peer
from bench.scale import POOLS, SERVER
from bench.search import DATA, pool_tools, questions, registry_entries
from orchestrator.settings import load_settings
from registry.models import Entry, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle, ToolDefinition

SETTLE_SECONDS = 40.0


@dataclass(frozen=True)
class Finds:
    """Milliseconds of a `find`: median and 95th percentile by the clock, mean CPU of `serve`."""

    median: float
    slow: float
    cpu: float


def draw_bundles(data: Path, count: int) -> Iterator[Bundle]:
    """So many tools of the pools, as often as needed, in servers of SERVER tools."""
    entries = [
        entry
        for name in POOLS
        for entry, _rows in registry_entries(pool_tools(data, name).values())
    ]
    tools = cycle(tool for entry in entries for tool in _convert_tools(entry))
    for number in range(count // SERVER):
        chosen = [
            replace(tool, name=f"{tool.name}_{place}")
            for place, tool in enumerate(islice(tools, SERVER))
        ]
        code = "".join(f"\n\n@tool\ndef {tool.name}():\n    return {{}}\n" for tool in chosen)
        yield replace(
            BUNDLE,
            name=f"server{number}",
            title=f"Server {number}",
            source_code=f"from toolwright import tool\n{code}",
            tools=tuple(chosen),
        )


def _convert_tools(entry: Entry) -> Iterator[ToolDefinition]:
    for tool in entry.tools:
        listed = tool.definition
        name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in tool.name)
        schema = listed.get("inputSchema") or {"type": "object"}
        told = str(listed.get("description", ""))
        yield ToolDefinition(f"t_{name}"[:30].lower(), told, schema, {"type": "object"}, "read")


def measure(data: Path, count: int, tasks: Sequence[str]) -> tuple[float, Finds, Finds]:
    """Seconds of CPU of the first `find`, and what the tasks take at first and once more."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        own = {"TOOLWRIGHT_HOME": scratch, "PYTHONPATH": os.getcwd(), "TOOLWRIGHT_ENGINE": "wasm"}
        spared = {"TOOLWRIGHT_SPARES": "0", "TOOLWRIGHT_SEMANTIC": "off"}
        environment = {**os.environ, **own, **spared}
        settings = load_settings(environment)
        with Store.open(settings.database_url) as store:
            bundles = Bundles(Path(scratch), store.servers)
            for bundle in draw_bundles(data, count):
                bundles.publish_bundle(bundle, build_entry(bundle, time.time()), (), None)
        peer = Peer([sys.executable, "-m", "orchestrator", "serve", "--no-control"], environment)
        peer.request("tools/call", {"name": "status", "arguments": {}})
        before = peer.cpu()
        _find(peer, tasks[0])
        loading = peer.cpu() - before
        # Until it has loaded ahead what the first task takes. That it looks after so many servers
        # is a share of any second.
        time.sleep(SETTLE_SECONDS)
        first, again = _ask(peer, tasks), _ask(peer, tasks)
        peer.close()
    return loading, first, again


def _ask(peer: Peer, tasks: Sequence[str]) -> Finds:
    before, times = peer.cpu(), []
    for task in tasks:
        started = time.perf_counter()
        _find(peer, task)
        times.append(1000 * (time.perf_counter() - started))
    cpu = 1000 * (peer.cpu() - before) / len(tasks)
    return Finds(statistics.median(times), sorted(times)[len(times) * 95 // 100], cpu)


def _find(peer: Peer, task: str) -> None:
    result = peer.request("tools/call", {"name": "find", "arguments": {"task": task}})
    assert not result.get("isError"), result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tools", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=200)
    args = parser.parse_args()
    tasks = [each.q for each in questions(args.data, args.tasks // len(POOLS), ("full",))]
    loading, *found = measure(args.data, args.tools, tasks)
    print(f"the first of {args.tools} tools: {loading:.2f} s of CPU")
    for told, each in zip(("asked first", "asked again"), found, strict=True):
        print(f"{told}: p50 {each.median:.2f} ms, p95 {each.slow:.2f}, {each.cpu:.2f} of CPU")


if __name__ == "__main__":
    main()
