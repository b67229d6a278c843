"""The cost of an instance of the WASM engine, step by step, and of pure calls that need one each.

    python -m bench.instances [--rounds 200] [--pause 0.05]

Steps are in milliseconds of CPU with their page faults; the least is what is left when nothing
disturbs them. `of that, instantiated` is wasmtime's own part of a creation, measured by itself. A
pure call takes what stands from `created from image` to `freed`; the steps before are taken once a
session. Calls are in milliseconds by the clock: back to back, and with a pause before each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from wasmtime import Store

from bench.engines import BUNDLE, CACHE, CALLS, broker, figures
from sandbox.engines.wasm.component import LoadedComponent, build_component
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.engines.wasm.fiber import instantiate_component
from sandbox.engines.wasm.guest import GuestFactory, Ticker
from sandbox.engines.wasm.pool import Lines, LoadingServices, send_opening_lines
from sandbox.engines.wasm.session import GuestPipe
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits
from sandbox.session.pipe import PipeSession
from sandbox.session.recording import LOADING, create_live_inputs

WARM_UP = 5


class Steps:
    """CPU and page faults of named steps, in their order."""

    def __init__(self) -> None:
        self._taken: dict[str, list[tuple[float, int]]] = defaultdict(list)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        faults, used = _count_faults(), time.process_time()
        yield
        self._taken[name].append((time.process_time() - used, _count_faults() - faults))

    def show(self) -> None:
        for name, taken in self._taken.items():
            seconds, faults = zip(*taken[WARM_UP:], strict=True)
            least, median = min(seconds) * 1e3, statistics.median(seconds) * 1e3
            print(f"{name:28}{least:8.2f}{median:8.2f}{statistics.median(faults):8.0f} faults")


def _count_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class RecordingPipe(GuestPipe):
    """A pipe that keeps the lines that its session writes."""

    def __init__(self, runner: WasmRunner) -> None:
        super().__init__(runner.pool, BUNDLE, runner.pool.limits, create_live_inputs)
        self.written: list[str] = []

    def write(self, data: bytes) -> None:
        self.written.append(data.decode())
        super().write(data)


async def record_lines(loaded: LoadedComponent) -> tuple[Lines, str]:
    """The opening lines of a session, and that of a pure call, as the host writes them."""
    async with WasmRunner(loaded) as runner:
        pipe = RecordingPipe(runner)
        session = pipe.session = PipeSession(BUNDLE, broker(), pipe.limits, pipe)
        async with session.run_session(KillSwitch()):
            await session.call("pure", CALLS["pure"])
        await pipe.wait_ended()
    load, initialize, *_, call = pipe.written
    return (load, initialize), call


async def measure_steps(loaded: LoadedComponent, lines: Lines, call: str, rounds: int) -> Steps:
    steps, ticker = Steps(), Ticker(loaded.engine)
    ticker.start()
    with ThreadPoolExecutor(1) as threads:
        factory = GuestFactory(loaded, ticker, threads)
        for _ in range(rounds + WARM_UP):
            with steps.measure("created"):
                guest = factory.make_guest(Limits())
            with steps.measure("bundle loaded"):
                await send_opening_lines(guest, lines, print)
            with steps.measure("image taken, guest freed"):
                image = await guest.take_image()
            with steps.measure("created from image"):
                guest = factory.make_guest(Limits(), image)
            with steps.measure("call"):
                await guest.answer_line(call, LOADING, LoadingServices(print))
            with steps.measure("freed"):
                guest.close()
            store = Store(loaded.engine)
            with steps.measure("of that, instantiated"):
                if loaded.memories and loaded.image:
                    loaded.memories.begin_with(loaded.image)
                instantiate_component(factory.host.linker, store, loaded.component)
    ticker.stop()
    return steps


async def list_calls(loaded: LoadedComponent, rounds: int, pause: float) -> list[float]:
    times = []
    async with WasmRunner(loaded) as runner, runner.open(BUNDLE, broker()) as session:
        for _ in range(rounds + WARM_UP):
            await asyncio.sleep(pause)
            started = time.perf_counter()
            await session.call("pure", CALLS["pure"])
            times.append(time.perf_counter() - started)
    return times[WARM_UP:]


def show_calls(loaded: LoadedComponent, rounds: int, pause: float) -> None:
    used = time.process_time()
    times = asyncio.run(list_calls(loaded, rounds, pause))
    used = (time.process_time() - used) / rounds * 1e3
    name = f"calls with {pause:g} s before each" if pause else "calls back to back"
    mean = statistics.mean(times) * 1e3
    print(f"{name:36}{figures(times)} ms, {mean:.2f} as mean, {used:.2f} of CPU", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.05)
    args = parser.parse_args()
    loaded = build_component(CACHE, print)
    lines, call = asyncio.run(record_lines(loaded))
    print(f"load {os.getloadavg()[0]:.1f}\n{'':28}{'least':>8}{'median':>8}")
    asyncio.run(measure_steps(loaded, lines, call, args.rounds)).show()
    for pause in (0.0, args.pause):
        show_calls(loaded, args.rounds, pause)


if __name__ == "__main__":
    main()
