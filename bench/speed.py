"""Each goal of speed beside its figure and its peer, in one run.

    python -m venv FASTMCP && FASTMCP/bin/pip install 'fastmcp>=4'
    python -m bench.speed --fastmcp FASTMCP/bin/python [--only gateway start …] [--json FILE]

It runs the other benches with few rounds, a section after the other, about 15 minutes in all; use
those for more. Needs Docker and the WASM component (`toolwright setup`), and for `compile` npm. A
goal is an upper bound unless the line says "at least". Goals are absolute, and machines differ: the
first line says how fast this one is.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import call, commands, compute, drift, engines, find, large, scale, start
from bench.compile import OURS, THEIRS, Run, measured, synthetic
from bench.directory import compile_sample, fetch_package, read_sample
from bench.growth import measure_proof
from bench.search import DATA, questions
from forge.compiler.compile import compile_document
from forge.readers.document import load_document
from orchestrator.processes.garbage import collect_rarely
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.wasm.component import build_component
from sandbox.engines.wasm.engine import WasmRunner

CALLS, BIG_CALLS, ROUNDS = 1000, 60, 15
BIG: Sequence[tuple[str, Mapping[str, int], float | None]] = (
    ("100 kB of rows", {"rows": 850}, None),
    ("1 MB of rows", {"rows": 8500}, 1.3),
    ("a text of 1 MB", {"times": 10_000}, 1.3),
)
"""Large answers, and how many times the direct call's they may take."""
SPARE_ROUNDS = 60
"""Of first answers: the 95th percentile of fewer than twenty is the slowest one."""
AT_ONCE = (1, 8, 64)
OPERATIONS = 1000
OPERATION_MEGABYTES = 0.00177
"""Of an operation in a synthetic document."""
READ_BY_BOTH = 20
"""Of the descriptions of the directory, spread evenly."""
COUNTED = 5_000_000


@dataclass(frozen=True)
class Goal:
    """A figure with its bound, both in `unit`; None where none was set. `peer` is what the same
    took of what it is compared with, named in `beside`.
    """

    section: str
    what: str
    unit: str
    bound: float | None
    figure: float
    peer: float | None = None
    beside: str = ""
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        met = self.figure >= self.bound if self.at_least else self.figure <= self.bound
        return "met" if met else "not met"


def measure_gateway(fastmcp: str) -> Iterator[Goal]:
    """What `call_read` adds to a session, and FastMCP's proxy before the same tool."""
    goal = partial(Goal, "gateway", beside="FastMCP's proxy")
    proxy = [fastmcp, "-c", call.FASTMCP_PROXY, call.FASTMCP_ECHO]
    small = call.Load(CALLS, AT_ONCE, {"text": "x" * 100, "times": 1})
    rows = zip(
        asyncio.run(call.measure_direct(small)),
        call.measure_gateway(small),
        call.measure_other("proxy", proxy, small.arguments, small),
        strict=True,
    )
    for direct, ours, theirs in rows:
        at, added = f", {direct.concurrent} at once", theirs.cpu_us - direct.cpu_us
        bound = min(350.0, added / 4) if direct.concurrent == 1 else added / 4
        yield goal(f"CPU added to a call{at}", "us", bound, ours.cpu_us - direct.cpu_us, added)
        yield goal(f"CPU of storing it, beside{at}", "us", None, ours.beside_us)
        yield goal(f"a call, median{at}", "ms", None, ours.median_ms, theirs.median_ms)
        p99 = {1: 2.0, 64: 2 * theirs.median_ms}.get(direct.concurrent)
        yield goal(f"a call, p99{at}", "ms", p99, ours.p99_ms, theirs.p99_ms)
    for what, arguments, most in BIG:
        big = call.Load(BIG_CALLS, (1,), {"text": "x" * 100, **arguments})
        (direct,) = asyncio.run(call.measure_direct(big))
        (ours,) = call.measure_gateway(big)
        (theirs,) = call.measure_other("proxy", proxy, big.arguments, big)
        ratio, other = ours.cpu_us / direct.cpu_us, theirs.cpu_us / direct.cpu_us
        yield goal(f"CPU of {what}, times the direct call's", "x", most, ratio, other)
        yield goal(f"storing {what}, beside", "ms", None, ours.beside_us / 1000)
        slow, slower = ours.median_ms / direct.median_ms, theirs.median_ms / direct.median_ms
        yield goal(f"{what} by the clock, times the direct call's", "x", most, slow, slower)


def measure_start(fastmcp: str) -> Iterator[Goal]:
    """From starting `serve` to its answers, FastMCP's proxy beside it."""
    proxy = [fastmcp, "-c", call.FASTMCP_PROXY, call.FASTMCP_ECHO]
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "TOOLWRIGHT_HOME": home}
        start.register_servers(environment, 1)
        serve = start.measure_medians(start.SERVE, environment, ROUNDS // 3)
        run = start.measure_medians(start.RUN, environment, ROUNDS // 3, start.ECHO)
        peer = start.measure_medians(proxy, environment, 3, start.ECHO)
    ours, theirs = serve["initialize"], peer["initialize"]
    goal = partial(Goal, "start", beside="FastMCP's proxy")
    yield goal("`initialize` answered", "ms", 350, ours.wall_ms, theirs.wall_ms)
    yield goal("CPU until then", "ms", 300, ours.cpu_ms, theirs.cpu_ms)
    yield goal("memory then", "MB", 60, ours.memory_mb, theirs.memory_mb)
    ours, theirs = serve["first call"], peer["first call"]
    yield goal("a call asked at once answered", "ms", None, ours.wall_ms, theirs.wall_ms)
    yield goal("memory then", "MB", None, ours.memory_mb, theirs.memory_mb)
    ours, theirs = run["initialize"], peer["initialize"]
    yield goal("`run NAME`: `initialize` answered", "ms", None, ours.wall_ms, theirs.wall_ms)
    yield goal("memory then", "MB", None, ours.memory_mb, theirs.memory_mb)


def measure_commands(_: str) -> Iterator[Goal]:
    """Commands answered by the resident process, the same by themselves beside them."""
    goal = partial(Goal, "commands", beside="without the resident process")
    with commands.prepared_home("wasm") as (alone, on, resident):
        for words in commands.COMMANDS:
            costs = commands.measure_both(words, alone, on, resident, ROUNDS // 3)
            ours, theirs = costs[commands.RESIDENT].wall, costs[commands.ALONE].wall
            bound = 400.0 if words[0] == "call" else 250.0
            yield goal(f"`toolwright {words[0]}`", "ms", bound, ours, theirs)


def measure_engines(_: str) -> Iterator[Goal]:
    """First answers and calls of both engines."""
    docker = partial(engines.open_docker, connect_engine())
    wasm = partial(WasmRunner, build_component(engines.CACHE, _be_silent))

    def take(measured: Any) -> tuple[float, float]:
        """Median and 95th percentile in milliseconds."""
        ordered = sorted(asyncio.run(measured))
        return 1e3 * statistics.median(ordered), 1e3 * ordered[len(ordered) * 95 // 100]

    cold, _p95 = take(engines.cold(engines.open_docker, ROUNDS // 3))
    miss, _p95 = take(engines.first_answers(docker, ROUNDS, 0))
    pooled, slow = take(engines.first_answers(docker, SPARE_ROUNDS, 1))
    goal = partial(Goal, "Docker")
    yield goal("first answer from a spare, median", "ms", 4, pooled, cold, "cold")
    yield goal("first answer from a spare, 95th percentile", "ms", 10, slow)
    yield goal("first answer without a spare", "ms", 100, miss, cold, "cold")
    held = float(asyncio.run(engines.megabytes(docker, 40)))
    spare = asyncio.run(engines.spare_megabytes(40))
    yield goal("memory of a spare", "MB", 8, spare, held, "live server")
    goal = partial(Goal, "WASM", beside="Docker")
    first, _p95 = take(engines.first_answers(wasm, SPARE_ROUNDS, 1))
    yield goal("first answer from the pool, median", "ms", 1.5, first, pooled)
    for tool, bound in (("fetch", None), ("pure", 2.0)):
        told = {"fetch": "a call with a request", "pure": "pure calls back to back"}[tool]
        ours, theirs = (take(engines.calls(way, ROUNDS, tool))[0] for way in (wasm, docker))
        yield goal(told, "ms", bound, ours, theirs)


def measure_compute(_: str) -> Iterator[Goal]:
    """Tools that only compute, on WASM and on Docker's CPython."""
    for name, places in asyncio.run(compute.measure(3)).items():
        told = f"{name.replace('_', ' ')}, WASM"
        yield Goal("compute", told, "s", None, places["wasm"], places["docker"], "Docker")


def measure_compiling(fastmcp: str) -> Iterator[Goal]:
    """All descriptions of the directory compiled, and those that FastMCP reads beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        tarball = fetch_package(Path(scratch))
        totals = compile_sample(tarball, 0)
        speed = totals.megabytes / totals.seconds
        path, size, taken = Path(scratch) / "spec.json", 0.0, [0.0, 0.0]
        for _identity, content in read_sample(tarball, READ_BY_BOTH):
            path.write_bytes(content)
            runs = measured(sys.executable, OURS, path, 1), measured(fastmcp, THEIRS, path, 1)
            milliseconds = [run.ms for run in runs if isinstance(run, Run)]
            if len(milliseconds) == len(runs):
                size += len(content) / 1e6
                taken = [sofar + each for sofar, each in zip(taken, milliseconds, strict=True)]
    goal = partial(Goal, "compile", at_least=True)
    yield goal("descriptions of the directory, at least", "MB/s", 10, speed)
    ours, theirs = (1000 * size / each for each in taken)
    yield goal("those that both read, files written", "MB/s", None, ours, theirs, "FastMCP")


def measure_proving(_: str) -> Iterator[Goal]:
    """A thousand operations through the static and the mock stage."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "spec.json"
        place.write_text(json.dumps(synthetic(OPERATIONS * OPERATION_MEGABYTES)))
        made = compile_document(load_document(place), base_url="http://127.0.0.1:9/v1")
    count, began = len(made.bundle.tools), time.perf_counter()
    cpu = measure_proof(made.bundle)
    wall = time.perf_counter() - began
    yield Goal("prove", f"{count} operations, by the clock", "s", 30, wall)
    yield Goal("prove", f"{count} operations, CPU", "s", None, cpu)


def measure_drift(_: str) -> Iterator[Goal]:
    """Looks at a thousand descriptions."""
    first, second, _changed = drift.measure(1000)
    yield Goal("drift", "1,000 descriptions looked at, with ETags", "s", 60, second, first, "first")


def measure_search(_: str) -> Iterator[Goal]:
    """A hundred thousand tools, and a thousand beside them."""
    asked = [each.q for each in questions(DATA, 200 // len(scale.POOLS), ("full",))]
    few, _seconds = scale.measure_loading(scale.draw_documents(DATA, 1_000), True)
    many, seconds = scale.measure_loading(scale.draw_documents(DATA, 100_000), True)
    most, least = (statistics.median(scale.measure_searches(each, asked)) for each in (many, few))
    goal = partial(Goal, "search")
    yield goal("a search of 100,000 tools, median CPU", "ms", 3, most, least, "1,000 tools")
    yield goal("100,000 tools loaded, CPU", "s", 0.5, seconds)
    (slow, *finds), (quick, *few_finds) = (
        find.measure(DATA, tools, asked) for tools in (100_000, 1_000)
    )
    yield goal("the first `find` of a `serve`, CPU", "s", None, slow, quick, "1,000 tools")
    for told, ours, theirs in zip(("first", "again"), finds, few_finds, strict=True):
        times = ours.median, theirs.median
        yield goal(f"a whole `find`, asked {told}, median", "ms", 3, *times, "1,000 tools")


def measure_large(_: str) -> Iterator[Goal]:
    """A large answer given by reference, and whole beside it."""
    by_reference, whole = large.measure(5, "large"), large.measure(5, "")
    goal = partial(Goal, "large", beside="whole")
    yield goal("answer of 5 MB by reference", "MB", 0.1, by_reference.answer, whole.answer)
    ours, theirs = (each.most - each.before for each in (by_reference, whole))
    yield goal("memory that it takes meanwhile", "MB", None, ours, theirs)


SECTIONS: dict[str, Callable[[str], Iterator[Goal]]] = {
    "gateway": measure_gateway,
    "start": measure_start,
    "commands": measure_commands,
    "engines": measure_engines,
    "compute": measure_compute,
    "compile": measure_compiling,
    "prove": measure_proving,
    "drift": measure_drift,
    "search": measure_search,
    "large": measure_large,
}


def show(goal: Goal) -> None:
    bound = "" if goal.bound is None else f"{goal.bound:.4g}"
    peer = "" if goal.peer is None else f"{goal.peer:.4g} ({goal.beside})"
    print(
        f"{goal.section:9} {goal.what:48} {goal.figure:9.4g} {goal.unit:5}{bound:>9}  "
        f"{goal.verdict:8} {peer}",
        flush=True,
    )


def count_slowly() -> float:
    """The seconds that this machine's Python takes to count to COUNTED."""
    began, counted = time.process_time(), 0
    for number in range(COUNTED):
        counted += number
    return time.process_time() - began


def _be_silent(_: str) -> None:
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fastmcp", required=True, help="the interpreter of FastMCP's environment")
    parser.add_argument("--only", nargs="*", default=[], choices=tuple(SECTIONS))
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args(arguments)
    collect_rarely()  # As in the processes that it measures.
    print(f"load {os.getloadavg()[0]:.1f}; counts to {COUNTED:,} in {count_slowly():.2f} s")
    print(f"{'':58} {'figure':>9} {'':5}{'goal':>9}  {'':8} peer")
    goals = []
    for name, measure in SECTIONS.items():
        for goal in measure(given.fastmcp) if not given.only or name in given.only else ():
            show(goal)
            goals.append(goal)
    if given.json:
        given.json.write_text(json.dumps([asdict(goal) for goal in goals], indent=1))


if __name__ == "__main__":
    main()
