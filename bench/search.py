"""Quality and speed of the search: does it find the right tool for a task in words, and how fast.

    python -m bench.search [--data DIRECTORY] [--queries 200] [--arms full small]

DIRECTORY has the DEV data of the routing benchmark and its `score.py`, which says what to ask and
prints the measures; by default `shared/bench/retrieval` beside this checkout. At most `--queries`
tasks of each pool and arm are asked, always the same ones; 0 asks all. `--answers FILE` keeps what
`score.py report` reads; `p` of an answer is the first match's score. Milliseconds are those of one
search, this machine's load included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from registry.models import Entry, RegisteredTool
from registry.store import Store

DATA = Path(__file__).resolve().parents[2] / "shared" / "bench" / "retrieval"
DEEP = 10
REQUIRED = ("pool", "id", "arm", "q", "gold")


@dataclass(frozen=True)
class Question:
    """A task of the benchmark. In the registry are `tools`, or all of its pool but `without`."""

    pool: str
    id: str
    arm: str
    q: str
    gold: tuple[int, ...]
    tools: tuple[int, ...] = ()
    without: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Answer:
    """What `score.py report` reads: ids of tools, best first, and P(the first is right)."""

    pool: str
    id: str
    arm: str
    n: int
    ranked: tuple[int, ...]
    p: float


def questions(data: Path, most: int, arms: Collection[str]) -> list[Question]:
    """At most `most` of each pool and arm, spread evenly; of all arms where none is named."""
    command = [sys.executable, str(data / "score.py"), "tasks"]
    asked = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    by_arm: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for row in map(json.loads, asked.splitlines()):
        if arms and row["arm"] not in arms:
            continue
        tools, without = tuple(row.get("tools", ())), frozenset(row.get("without", ()))
        values = {key: row[key] for key in REQUIRED} | {"gold": tuple(row["gold"])}
        question = Question(**values, tools=tools, without=without)
        by_arm[question.pool, question.arm].append(question)
    return [question for group in by_arm.values() for question in _spread(group, most)]


def _spread(group: list[Question], most: int) -> list[Question]:
    count = min(most or len(group), len(group))
    return [group[index * len(group) // count] for index in range(count)]


def pool_tools(data: Path, pool: str) -> dict[int, dict[str, Any]]:
    with (data / "data" / pool / "tools.jsonl").open() as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


@contextmanager
def registry(tools: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Store, dict[Any, int]]]:
    """A registry of these tools, and the id of each by entry and name."""
    ids: dict[Any, int] = {}
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home, "registry.db")) as store:
        for entry, rows in registry_entries(tools):
            store.servers.publish(entry, now=1.0)
            ids |= {(entry.name, row["name"]): row["id"] for row in rows}
        yield store, ids


def registry_entries(
    tools: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Entry, list[Mapping[str, Any]]]]:
    """The servers of these tools, each with the rows of its tools in the same order.

    Tools of one name and server are put into entries of their own.
    """
    servers: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in tools:
        nth = 0
        while row["name"] in servers[row["server"], nth]:
            nth += 1
        servers[row["server"], nth][row["name"]] = row
    # An entry's name is indexed as words: one of digits alone would match numbers in a task.
    for number, ((server, _), rows) in enumerate(servers.items()):
        name = "entry" + "".join(chr(97 + int(digit)) for digit in str(number))
        yield _entry(name, server, rows.values()), list(rows.values())


def _entry(name: str, server: str, rows: Iterable[Mapping[str, Any]]) -> Entry:
    return Entry(
        name=name,
        version=1,
        digest=name,
        title=server,
        description="",
        state="active",
        created=1.0,
        created_by="bench",
        source="",
        permissions=(),
        base_url="https://api.example",
        tools=tuple(map(_tool, rows)),
    )


def _tool(row: Mapping[str, Any]) -> RegisteredTool:
    properties = {name: {"description": told} for name, told in row["params"]}
    schema = {"type": "object", "properties": properties}
    listed = {"name": row["name"], "description": row["desc"], "inputSchema": schema}
    return RegisteredTool(row["name"], "read", False, json.dumps(listed))


def answer(question: Question, store: Store, ids: Mapping[Any, int], size: int) -> Answer:
    """Those left out of the pool are taken out of what is found."""
    found = [
        (ids[match.entry, match.tool], match.score)
        for match in store.search.find_tools(question.q, DEEP + len(question.without))
    ]
    left = [(tool, score) for tool, score in found if tool not in question.without][:DEEP]
    ranked = tuple(tool for tool, _ in left)
    p = left[0][1] if left else 0.0
    return Answer(question.pool, question.id, question.arm, size, ranked, p)


def ask_of_whole(
    tools: Mapping[int, Mapping[str, Any]], asked: Sequence[Question]
) -> tuple[list[Answer], list[float]]:
    """The answers out of the whole pool, and how long each search took, in ms."""
    answers, times = [], []
    with registry(tools.values()) as (store, ids):
        for question in asked:
            started = time.perf_counter()
            answers.append(answer(question, store, ids, len(tools)))
            times.append(1000 * (time.perf_counter() - started))
    return answers, times


def ask_of_few(tools: Mapping[int, Mapping[str, Any]], question: Question) -> Answer:
    with registry(tools[tool] for tool in question.tools) as (store, ids):
        return answer(question, store, ids, len(question.tools))


def ask(data: Path, asked: Iterable[Question]) -> tuple[list[Answer], dict[str, list[float]]]:
    """The answers, and the times of the searches in each whole pool."""
    by_pool: dict[str, list[Question]] = defaultdict(list)
    for question in asked:
        by_pool[question.pool].append(question)
    answers: list[Answer] = []
    times: dict[str, list[float]] = {}
    for pool, group in by_pool.items():
        tools = pool_tools(data, pool)
        whole = [question for question in group if not question.tools]
        if whole:
            found, times[f"{pool} ({len(tools)} tools)"] = ask_of_whole(tools, whole)
            answers += found
        answers += [ask_of_few(tools, question) for question in group if question.tools]
    return answers, times


def single_gold(asked: Iterable[Question], answers: Iterable[Answer]) -> dict[str, float]:
    """Share of the whole pool's tasks with one right tool for which that is the first, per pool."""
    gold = {(q.pool, q.id): q.gold for q in asked if q.arm == "full" and len(q.gold) == 1}
    first: dict[str, list[bool]] = defaultdict(list)
    for told in answers:
        if told.arm == "full" and (told.pool, told.id) in gold:
            first[told.pool].append(told.ranked[:1] == gold[told.pool, told.id])
    return {pool: statistics.mean(right) for pool, right in sorted(first.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--arms", nargs="*", default=())
    parser.add_argument("--answers", type=Path)
    args = parser.parse_args()
    if not (args.data / "score.py").exists():
        parser.error(f"{args.data} has no score.py; name the benchmark with --data")
    asked = questions(args.data, args.queries, args.arms)
    answers, times = ask(args.data, asked)
    with tempfile.TemporaryDirectory() as scratch:
        path = args.answers or Path(scratch, "answers.jsonl")
        path.write_text("".join(json.dumps(asdict(told)) + "\n" for told in answers))
        subprocess.run([sys.executable, args.data / "score.py", "report", path], check=True)
    firsts = single_gold(asked, answers)
    shares = "  ".join(f"{pool} {share:.3f}" for pool, share in firsts.items())
    print(f"R@1 of tasks with one right tool, full: {shares}")
    for pool, taken in times.items():
        middle, slow = statistics.median(taken), sorted(taken)[len(taken) * 95 // 100]
        print(f"{pool}: p50 {middle:.1f} ms, p95 {slow:.1f} ms")


if __name__ == "__main__":
    main()
