"""The cost of each thing at once, ten and a hundred times the size, in one table.

    python -m bench.growth [--data DIRECTORY] [--only ROW…]

Figures are CPU: of this process for what runs in it, of `toolwright serve` for what it answers. A
row names what grows, from what size; the last column is the size at which the third figure is, and
`per 10x` the greater of the two steps: 10 is linear, 1 does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.call import Peer
from bench.compile import synthetic
from bench.live import Client, register_servers
from bench.rooms import fill_store, measure_room
from bench.runners import opened_runner
from bench.scale import POOLS, draw_documents, measure_loading, measure_searches
from bench.search import DATA, questions
from forge.compiler.compile import compile_document
from forge.readers.document import load_document
from orchestrator.control.rooms.place import Place
from orchestrator.processes.garbage import collect_rarely
from orchestrator.settings import load_settings
from registry.store import Store
from sandbox.bundle.model import Bundle, render_files
from sandbox.stages.prove import prove_bundle

SIZES = (1, 10, 100)
MEGABYTES = 0.0353
"""Of the synthetic document with twenty operations."""
WARM = 200
TASKS = 100


@dataclass(frozen=True)
class Row:
    """A figure at the three sizes; `unit` is its unit, `grows` what there is more of."""

    name: str
    grows: str
    unit: str
    figures: tuple[float, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="*", default=[], choices=tuple(MEASURES))
    args = parser.parse_args()
    collect_rarely()  # As in the processes that it measures.
    print(f"{'':40}{'':26}{'1x':>10}{'10x':>10}{'100x':>10}{'per 10x':>9}")
    for name, measure in MEASURES.items():
        if not args.only or name in args.only:
            for row in measure(args.data):
                show(row)


def show(row: Row) -> None:
    first, second, third = row.figures
    step = max(second / first, third / second)
    told = "".join(f"{figure:10.2f}" for figure in row.figures)
    print(f"{row.name + ', ' + row.unit:40}{row.grows:26}{told}{step:9.1f}", flush=True)


def measure_forge(_: Path) -> Iterator[Row]:
    compiled, proved = [], []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) / "spec.json"
            place.write_text(json.dumps(synthetic(MEGABYTES * size)))
            started = time.process_time()
            made = compile_document(load_document(place), base_url="http://127.0.0.1:9/v1")
            render_files(made.bundle)
            compiled.append(1000 * (time.process_time() - started))
        proved.append(measure_proof(made.bundle))
    yield Row("compiling", "operations, from 20", "ms", tuple(compiled))
    yield Row("static and mock stage", "operations, from 20", "s", tuple(proved))


def measure_proof(bundle: Bundle) -> float:
    """Seconds of CPU of this process and of the servers it starts."""

    async def prove() -> None:
        async with opened_runner("none") as runner:
            assert (await prove_bundle(bundle, runner)).passed

    with count_cpu() as taken:
        asyncio.run(prove())
    return taken[0]


@contextmanager
def count_cpu() -> Iterator[list[float]]:
    """The CPU seconds of the block, those of child processes that ended in it included."""
    taken: list[float] = []
    before = sum(read_times())
    yield taken
    taken.append(sum(read_times()) - before)


def read_times() -> tuple[float, ...]:
    return tuple(os.times())[:4]


def measure_search(data: Path) -> Iterator[Row]:
    asked = [each.q for each in questions(data, TASKS // len(POOLS), ("full",))]
    loaded, searched = [], []
    for size in SIZES:
        postings, seconds = measure_loading(draw_documents(data, 1_000 * size), numpy=True)
        loaded.append(seconds)
        searched.append(statistics.median(measure_searches(postings, asked)))
    yield Row("loading the search", "tools, from 1,000", "s", tuple(loaded))
    yield Row("a search by words", "tools, from 1,000", "ms", tuple(searched))


def measure_serve(_: Path) -> Iterator[Row]:
    started, found, called, memory = [], [], [], []
    for size in SIZES:
        names = [f"shop{number:05}" for number in range(100 * size)]
        with open_home() as (home, environment):
            settings = load_settings(environment)
            register_servers(home, settings.database_url, names)
            client = Client(
                [sys.executable, "-m", "orchestrator", "serve", "--no-control"], environment
            )
            client.request("tools/call", {"name": "status", "arguments": {}})
            started.append(client.cpu())
            memory.append(client.process.memory_info().rss / 1024 / 1024)
            client.find(names[3])
            found.append(count_peer(client, partial(client.find, names[5]), 20))
            client.call(names[7])
            called.append(count_peer(client, partial(client.call, names[7]), WARM))
            client.close()
    yield Row("`serve`, start to first answer", "servers, from 100", "s", tuple(started))
    yield Row("`serve`, memory after it", "servers, from 100", "MB", tuple(memory))
    yield Row("`find`", "servers, from 100", "ms", tuple(found))
    yield Row("a warm `call_read`", "servers, from 100", "ms", tuple(called))


def count_peer(peer: Peer, work: Callable[[], object], times: int) -> float:
    """Milliseconds of the peer's CPU for the work, once."""
    before = peer.cpu()
    for _ in range(times):
        work()
    return 1000 * (peer.cpu() - before) / times


@contextmanager
def open_home() -> Iterator[tuple[Path, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as scratch:
        yield (
            Path(scratch),
            {
                **os.environ,
                "TOOLWRIGHT_HOME": scratch,
                "TOOLWRIGHT_ENGINE": "wasm",
                "PYTHONPATH": os.getcwd(),
            },
        )


def measure_records(_: Path) -> Iterator[Row]:
    rooms: dict[str, list[float]] = {"calls": [], "home": []}
    verified, stored = [], []
    for size in SIZES:
        with open_home() as (_home, environment):
            settings = load_settings(environment)
            with Store.open(settings.database_url, "bench") as store:
                started = time.process_time()
                fill_store(store, 1_000 * size, 20, time.time())
                stored.append(1e6 * (time.process_time() - started) / (1_000 * size))
                for room, times in rooms.items():
                    times.append(1000 * measure_room(settings, store, Place(room), 3).cpu)
                started = time.process_time()
                assert store.audit.verify_chains() is None
                verified.append(time.process_time() - started)
    yield Row("recording a call", "calls, from 1,000", "us", tuple(stored))
    for room, times in rooms.items():
        yield Row(f"the page, {room}", "calls, from 1,000", "ms", tuple(times))
    yield Row("verifying the audit", "calls, from 1,000", "s", tuple(verified))


MEASURES: dict[str, Callable[[Path], Iterator[Row]]] = {
    "forge": measure_forge,
    "search": measure_search,
    "serve": measure_serve,
    "records": measure_records,
}


if __name__ == "__main__":
    main()
