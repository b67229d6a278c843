"""The time that the rooms of the control page take in a registry with many calls.

    python -m bench.rooms [--calls 100000] [--servers 20] [--rounds 5] [--home DIRECTORY]

Fills a new home with servers, their calls, approvals and jobs (with --home: once, and the same one
again), then makes every room's parts as the page gets them. Prints, for each room, the median of
the rounds in milliseconds of processor time and by the clock, the slowest part, and the size.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.control.page import (
    RoomReaders,
    list_parts,
    open_readers,
    open_renderer,
    render_panels,
)
from orchestrator.control.rooms.place import ROOMS, Place
from orchestrator.settings import Settings, load_settings
from registry.models import CallFailure, Entry, Invocation, Job, RegisteredTool
from registry.store import Store

BATCH = 500
TOOLS = 10
LISTED = '{"name": "%s", "description": "Reads %s.", "inputSchema": {"type": "object"}}'
RESULT = {"content": [{"type": "text", "text": "example.org " * 40}]}
EXCHANGES = ({"request": {"method": "GET", "url": "https://api.example/zones"}, "status": 200},)
CALLED = {
    "state": "called",
    "call": "c1",
    "trust": "",
    "rule": "",
    "cause": "",
    "failure": None,
    "result": RESULT,
}
FILTERS: tuple[tuple[str, Place], ...] = (
    ("calls, failed", Place("calls", filters={"outcome": "failed"})),
    ("calls, writes (none)", Place("calls", filters={"outcome": "writes"})),
    ("calls of one server", Place("calls", filters={"server": "server7"})),
    ("calls of one tool", Place("calls", filters={"server": "server7", "tool": "read_3"})),
    ("calls, text", Place("calls", filters={"text": "zone 77 of"})),
    ("calls, text (none)", Place("calls", filters={"text": "nowhere to be found"})),
    ("calls, page 1500", Place("calls", filters={"page": "1500"})),
    ("audit, text", Place("audit", filters={"text": "zone 77 of"})),
    ("audit, text (none)", Place("audit", filters={"text": "nowhere to be found"})),
    ("one server", Place("servers", "server7")),
    ("one tool", Place("servers", "server7", {"tool": "read_3"})),
    ("a tool never called", Place("servers", "server7", {"tool": "idle"})),
    ("one call", Place("calls", f"{77:016x}")),
)


@dataclass(frozen=True)
class RoomFigures:
    """Of one room: seconds of the processor and of the clock, the slowest part, letters of HTML."""

    cpu: float
    wall: float
    slowest: str
    letters: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--home", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        settings = load_settings({"TOOLWRIGHT_HOME": str(args.home or f"{directory}/home")})
        with Store.open(settings.database_url, "bench") as store:
            if not store.servers.find_summaries():
                started = time.process_time()
                fill_store(store, args.calls, args.servers, time.time())
                print(f"{args.calls} calls stored in {time.process_time() - started:.1f} s")
            print(f"{'room':24}{'cpu ms':>8}{'wall ms':>9}{'kB':>7}  slowest part")
            for name, place in (*((room, Place(room)) for room in ROOMS), *FILTERS):
                told = measure_room(settings, store, place, args.rounds)
                print(
                    f"{name:24}{1000 * told.cpu:8.1f}{1000 * told.wall:9.1f}"
                    f"{told.letters / 1000:7.0f}  {told.slowest}"
                )


def measure_room(settings: Settings, store: Store, place: Place, rounds: int) -> RoomFigures:
    readers, renderer = open_readers(settings, store), open_renderer(place)
    html = render_panels(store, place, settings, readers, renderer)
    problems = [name for name, text in html.items() if "cannot be shown" in text]
    assert not problems, problems
    times = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        render_panels(store, place, settings, readers, renderer)
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    parts = (
        (measure_part(settings, store, place, name, readers), name) for name in list_parts(place)
    )
    slowest = max(parts)
    return RoomFigures(
        statistics.median(cpu for cpu, _ in times),
        statistics.median(wall for _, wall in times),
        f"{slowest[1]} {1000 * slowest[0]:.1f}",
        sum(map(len, html.values())),
    )


def measure_part(
    settings: Settings, store: Store, place: Place, name: str, readers: RoomReaders
) -> float:
    """Seconds of the processor for one part."""
    started = time.process_time()
    render_panels(store, place, settings, readers, wanted=(name,))
    return time.process_time() - started


def fill_store(store: Store, calls: int, servers: int, now: float) -> None:
    """Servers with ten tools each and calls of them in turns, one in fifty failed."""
    names = [f"server{number}" for number in range(servers)]
    for name in names:
        tools = tuple(
            RegisteredTool(tool, "read", False, LISTED % (tool, tool))
            for tool in (*(f"read_{number}" for number in range(TOOLS)), "idle")
        )
        entry = Entry(
            name, 1, name, name, "An API", "active", now, "compiler", "", (), "", tools=tools
        )
        store.servers.publish(entry, (), now=now)
    made = _make_calls(names, calls, now)
    while batch := [call for _, call in zip(range(BATCH), made, strict=False)]:
        store.calls.record_many(batch, now)
    for number in range(500):
        job = Job(f"{number:016x}", "do", {"task": f"zone {number}"}, now - number, now - number)
        store.jobs.create(job)
        claimed = store.jobs.claim(job.id, "p", now)
        if claimed is not None:
            store.jobs.finish(job.id, claimed.attempt, "done", CALLED, now)


def _make_calls(names: list[str], count: int, now: float) -> Iterator[Invocation]:
    for number in range(count):
        failure = (
            CallFailure("upstream", "the API answered 503", 503) if number % 50 == 49 else None
        )
        yield Invocation(
            f"{number:016x}",
            names[number % len(names)],
            1,
            f"read_{number // len(names) % TOOLS}",
            "read",
            now - (count - number) * 5,
            {"zone": f"zone {number} of many"},
            task=f"zone {number % 100} of many",
            result=RESULT,
            failure=failure,
            latency_ms=12.0,
            exchanges=EXCHANGES,
        )


if __name__ == "__main__":
    main()
