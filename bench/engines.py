"""The two engines side by side: start, calls, memory; and what setting up the WASM engine costs.

    python -m bench.engines [--rounds 30] [--live 1000] [--build]

Both get the same bundle and an upstream in memory. `cold` begins with the engine itself (a
connection to Docker; the cached component, mapped), `from cache` with an engine that is ready and
has nothing made ahead, `pooled` with a spare: of a server that was open before, or, each time
another, of one that never was. Times are medians in ms with the 95th percentile. Memory is what the
machine has less (MemAvailable), divided by the servers. `--build` builds the component once more,
in a scratch directory. An engine that cannot run is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from orchestrator.settings import load_engine_settings
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.engines.docker.engine import (
    Client,
    ContainerLabels,
    DockerRunner,
    connect_engine,
    list_containers,
)
from sandbox.engines.docker.image import find_base_image
from sandbox.engines.wasm.component import build_component, load_component
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.errors import EngineUnavailable
from sandbox.session.interface import Runner
from sandbox.wire.exchange import Caps, WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy

CACHE = load_engine_settings().cache
MB = 1024 * 1024
SETTLE_SECONDS, START_SECONDS = 0.8, 4.0
SOURCE = """from toolwright import http, tool


@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key})


@tool
def echo(text):
    return {"text": text}


@tool
def pure(text):
    return {"text": text}
"""
OBJECT: dict[str, Any] = {"type": "object"}
ANSWER = WireResponse(200, (("content-type", "application/json"),), b'{"id": 1, "name": "one"}')


def _tool(name: str, *requests: RequestPattern) -> ToolDefinition:
    return ToolDefinition(name, "A sample.", OBJECT, OBJECT, "read", requests=requests)


ITEMS = RequestPattern("GET", "https://bench.invalid/items/{key}")
BUNDLE = Bundle(
    name="bench",
    version=1,
    title="Bench",
    base_url="https://bench.invalid",
    source_code=SOURCE,
    tools=(_tool("fetch", ITEMS), _tool("echo", ITEMS), _tool("pure")),
    provenance=Provenance("bench", "0" * 64),
    permissions=("network:bench.invalid",),
)
CALLS = {"fetch": {"key": "a"}, "echo": {"text": "x" * 100}, "pure": {"text": "x" * 100}}
Open = Callable[..., AbstractAsyncContextManager[Runner]]
Times = list[float]
"""Seconds, in the order in which they were taken."""
Row = Callable[[Open, int], Awaitable[Times | str]]


class Memory:
    """An upstream without a network."""

    async def send(self, request: WireRequest) -> WireResponse:
        return ANSWER


def broker() -> Broker:
    return Broker(build_read_policy(BUNDLE), Memory(), caps=Caps(exchanges=10**9))


def figures(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{statistics.median(ordered) * 1e3:.2f} ({high * 1e3:.2f})"


async def first_answers(opened: Open, rounds: int, spares: int, is_new: bool = False) -> Times:
    times = []
    async with opened(spares=spares) as runner:
        for number in range(rounds):
            await asyncio.sleep(SETTLE_SECONDS if spares else 0)
            source = f"{SOURCE}\n\nROUND = {number}\n" if is_new else SOURCE
            bundle = replace(BUNDLE, source_code=source)
            started = time.perf_counter()
            async with runner.open(bundle, broker()) as session:
                await session.call("fetch", CALLS["fetch"])
                times.append(time.perf_counter() - started)
    return times


async def cold(opened: Open, rounds: int) -> Times:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        async with opened() as runner, runner.open(BUNDLE, broker()) as session:
            await session.call("fetch", CALLS["fetch"])
            times.append(time.perf_counter() - started)
    return times


async def calls(opened: Open, rounds: int, tool: str) -> Times:
    times = []
    async with opened() as runner, runner.open(BUNDLE, broker()) as session:
        for _ in range(rounds * 20):
            started = time.perf_counter()
            await session.call(tool, CALLS[tool])
            times.append(time.perf_counter() - started)
    return times[len(times) // 10 :]


async def megabytes(opened: Open, servers: int) -> str:
    async with opened() as runner, AsyncExitStack() as stack:
        warm = await stack.enter_async_context(runner.open(BUNDLE, broker()))
        await warm.call("fetch", CALLS["fetch"])
        before = psutil.virtual_memory().available
        for _ in range(servers):
            session = await stack.enter_async_context(runner.open(BUNDLE, broker()))
            await session.call("fetch", CALLS["fetch"])
        return f"{(before - psutil.virtual_memory().available) / servers / MB:.1f}"


async def spare_megabytes(servers: int) -> float:
    """What a container that waits for its server holds, of so many."""
    with closing(connect_engine()) as client:
        async with open_docker(client, spares=1):
            await asyncio.sleep(START_SECONDS)
            before = psutil.virtual_memory().available
            async with open_docker(client, spares=servers):
                while len(list_containers(client, instance="bench")) <= servers:
                    await asyncio.sleep(SETTLE_SECONDS)
                # The last ones are started then, and have loaded nothing yet.
                await asyncio.sleep(START_SECONDS)
                return (before - psutil.virtual_memory().available) / servers / MB


ROWS: tuple[tuple[str, Row], ...] = (
    ("first answer, cold", cold),
    ("first answer, from cache", partial(first_answers, spares=0)),
    ("first answer, pooled", partial(first_answers, spares=1)),
    ("first answer, pooled, new server", partial(first_answers, spares=1, is_new=True)),
    ("call without a request", partial(calls, tool="echo")),
    ("call with a brokered request", partial(calls, tool="fetch")),
    ("pure call, back to back", partial(calls, tool="pure")),
    ("MB per live server", megabytes),
)


def beside(engines: dict[str, tuple[Open, Open]], rounds: int) -> None:
    """A table of the engines, each as what opens it from nothing and what opens it when ready."""
    print(f"{'load ' + str(os.getloadavg()[0])[:4]:34}" + "".join(f"{n:>22}" for n in engines))
    for title, row in ROWS:
        ways = [way[0 if row is cold else 1] for way in engines.values()]
        cells = [asyncio.run(_tell(row(opened, rounds))) for opened in ways]
        print(f"{title:34}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


async def _tell(cell: Awaitable[Times | str]) -> str:
    told = await cell
    return told if isinstance(told, str) else figures(told)


async def many(live: int) -> None:
    """Have as many servers live at once, close them, and do it again: what stays is a leak."""
    process = psutil.Process()
    async with WasmRunner(load_component(CACHE)) as runner:
        for turn in (1, 2, 3):
            before = psutil.virtual_memory().available
            started = time.perf_counter()
            async with AsyncExitStack() as stack:
                for _ in range(live):
                    session = await stack.enter_async_context(runner.open(BUNDLE, broker()))
                    await session.call("fetch", CALLS["fetch"])
                taken = (before - psutil.virtual_memory().available) / MB
                opened = time.perf_counter() - started
                outcome = await session.call("fetch", CALLS["fetch"])
                assert outcome.ok
            left = process.memory_info().rss / MB
            print(
                f"{live} live, turn {turn}: {opened:.1f} s, {taken:.0f} MB, "
                f"{taken / live:.1f} MB each; process after closing {left:.0f} MB",
                flush=True,
            )


def set_up() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        marks: list[tuple[str, float]] = []
        build_component(Path(scratch), lambda step: marks.append((step, time.perf_counter())))
        marks.append(("", time.perf_counter()))
        (size,) = (path.stat().st_size for path in Path(scratch).iterdir())
    for (step, started), (_, ended) in itertools.pairwise(marks):
        print(f"{step:34} {ended - started:.1f} s")
    print(f"{'in the cache':34} {size / MB:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--live", type=int, default=1000)
    parser.add_argument("--build", action="store_true")
    args = parser.parse_args()
    engines: dict[str, tuple[Open, Open]] = {}
    try:
        engines["docker"] = (open_docker, partial(open_docker, connect_engine()))
    except EngineUnavailable as reason:
        print(f"docker: left out ({reason})")
    loaded = build_component(CACHE, print)
    engines["wasm"] = (open_wasm, partial(WasmRunner, loaded))
    beside(engines, args.rounds)
    asyncio.run(many(args.live))
    if args.build:
        set_up()


def open_docker(client: Client | None = None, **options: Any) -> DockerRunner:
    client = client or connect_engine()
    image = find_base_image(client)
    assert image is not None, "run `toolwright setup` first"
    return DockerRunner(client, image.reference, ContainerLabels("bench", "bench"), **options)


def open_wasm() -> WasmRunner:
    return WasmRunner(load_component(CACHE))


if __name__ == "__main__":
    main()
