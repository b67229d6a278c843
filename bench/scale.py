"""Speed of a search by words in a large registry, in one process and without the database.

    python -m bench.scale [--data DIRECTORY] [--tools 100000] [--tasks 200] [--slow]

The tools are those of the public pools (see `bench.search`), as often as needed. Prints the time
to load the index and, of a whole search for a task of the pools, the median and the 95th
percentile, all as CPU time of the one thread that works; `--slow` goes without numpy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from bench.pools import Pool
from bench.search import DATA, questions
from registry.search.documents import SearchDocument, pack_documents
from registry.search.index import weigh_task
from registry.search.postings import Postings

POOLS = ("bfcl", "bfcl_live", "metatool", "stb")
SERVER = 20
"""Tools of one server."""


def draw_documents(data: Path, count: int) -> list[SearchDocument]:
    """So many tools of the pools, as often as needed, in servers of SERVER tools."""
    pools = [Pool(data, name, None, None) for name in POOLS]
    tools = cycle(each for pool in pools for each in pool.list_documents())
    return [
        each._replace(id=id, entry=f"server{id // SERVER}")
        for id, each in enumerate(islice(tools, count), 1)
    ]


def measure_loading(documents: Sequence[SearchDocument], numpy: bool) -> tuple[Postings, float]:
    """An index of these tools, and the seconds of CPU that it took."""
    postings, servers = Postings(numpy), pack_documents(documents)
    started = time.thread_time()
    postings.extend(servers)
    return postings, time.thread_time() - started


def measure_searches(postings: Postings, tasks: Sequence[str]) -> list[float]:
    """Milliseconds of CPU of a search for each task, the least first."""
    weigh_task(tasks[0], postings, None)
    times = []
    for task in tasks:
        started = time.thread_time()
        weigh_task(task, postings, None)
        times.append(1000 * (time.thread_time() - started))
    return sorted(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tools", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--slow", action="store_true")
    args = parser.parse_args()
    documents = draw_documents(args.data, args.tools)
    postings, seconds = measure_loading(documents, not args.slow)
    print(f"{len(postings)} tools loaded in {seconds:.2f} s")
    asked = [each.q for each in questions(args.data, args.tasks // len(POOLS), ("full",))]
    times = measure_searches(postings, asked)
    slow = times[len(times) * 95 // 100]
    print(f"a search: p50 {statistics.median(times):.2f} ms, p95 {slow:.2f} ms")
    anew = (each._replace(id=args.tools + n) for n, each in enumerate(documents[:SERVER]))
    again = pack_documents(anew)
    started = time.thread_time()
    postings.discard("server7")
    postings.extend(again)
    print(f"one server anew: {1000 * (time.thread_time() - started):.1f} ms")


if __name__ == "__main__":
    main()
