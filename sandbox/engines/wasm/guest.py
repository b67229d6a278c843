"""Instances of the component: execution, CPU share, and the epoch ticker."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import Executor

from wasmtime import Engine, Store, WasmtimeError

from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.fiber import ComponentCall, instantiate_component
from sandbox.engines.wasm.host import DeterministicInputs, HostServices, ImportHost
from sandbox.session.interface import Limits
from sandbox.session.recording import LOADING, CallInputs

TICK_SECONDS = 0.01


class Ticker:
    """A thread that ends an epoch every TICK_SECONDS while calls run, and else sleeps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._needs = 0
        self._awake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run_ticks, name="wasm ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._awake.set()
        self._thread.join()

    def request_ticks(self) -> None:
        """Have epochs end until a whole one passes without this call. In any thread."""
        self._needs += 1
        if not self._awake.is_set():
            self._awake.set()

    def _run_ticks(self) -> None:
        while not self._over.is_set():
            self._awake.wait()
            seen = self._needs
            self._over.wait(TICK_SECONDS)
            self._engine.increment_epoch()
            if self._needs == seen:
                self._awake.clear()
                # Whoever came between the question and the answer found it awake.
                if self._needs != seen or self._over.is_set():
                    self._awake.set()


MAX_REASON = 300
MEMORY_FACTOR = 2
"""Linear memory is fragmented and never returned, so a call takes about twice a container's."""
MAX_TABLE_ELEMENTS = 100_000
INLINE_SECONDS = 0.003
"""A call that computes for longer continues in a thread, so that the event loop is free."""
CPU_BURST_SECONDS = 0.1
MAX_PAUSE_SECONDS = 0.05


class GuestTrapped(Exception):
    """The instance was stopped and cannot be used any more. The message gives the reason."""


class Guest:
    """An instance of the component, at first with no code but the component's own.

    Created by `GuestFactory`. It runs one call at a time; after a call that raised, only `close`
    may follow.
    """

    def __init__(self, factory: GuestFactory, limits: Limits) -> None:
        self.used = False
        self.key = next(factory.keys)
        self.surroundings: HostServices | None = None
        self.record = DeterministicInputs(LOADING)
        self.asked: str | None = None
        self.answer: str | None = None
        self.told: str | None = None
        self.line: str | None = None
        self._factory, self._cpus = factory, limits.cpus
        self._cut = threading.Event()
        self._run: ComponentCall | None = None
        self._store = Store(factory.loaded.engine)
        memory = MEMORY_FACTOR * limits.memory_mb * 1024 * 1024
        self._store.set_limits(memory, MAX_TABLE_ELEMENTS)
        try:
            factory.host.enter_instance(self)
            instance = instantiate_component(
                factory.host.linker, self._store, factory.loaded.component
            )
            run = instance.get_func(self._store, "run")
            self._run = ComponentCall(self._store._context(), run)
            while not self._advance_once(self._run):
                pass
        except WasmtimeError as error:
            self.close()
            raise GuestTrapped(_extract_reason(error)) from error

    async def answer_line(self, line: str, inputs: CallInputs, surroundings: HostServices) -> str:
        """Pass a JSON-RPC line to the instance and return its answer.

        Raises GuestTrapped and what `surroundings.exchange` raises. Cancelling stops the instance.
        """
        assert self._run is not None
        self.surroundings, self.record = surroundings, DeterministicInputs(inputs)
        self.line, self.told = line, None
        try:
            await self._advance_until_waiting(self._run)
            while self.told is None:
                assert self.asked is not None
                asked, self.asked = self.asked, None
                self.answer = await surroundings.exchange_request(asked)
                await self._advance_until_waiting(self._run)
        except WasmtimeError as error:
            self._end_run()
            raise GuestTrapped(_extract_reason(error)) from error
        except BaseException:
            self._end_run()
            raise
        self.surroundings = None
        return self.told

    def close(self) -> None:
        """Free its memory. Idempotent; not while it runs."""
        self._end_run()
        self._store.close()

    def _end_run(self) -> None:
        """Stop the instance wherever it is."""
        if self._run:
            self._run.close()
            self._run = None
        self._factory.host.forget_instance(self.key)
        self.surroundings = None

    async def _advance_until_waiting(self, run: ComponentCall) -> None:
        """Run until it asks the host for something or has answered."""
        started = time.perf_counter()
        while not self._advance_once(run):
            if time.perf_counter() - started > INLINE_SECONDS:
                await self._advance_in_thread(run)
                return

    async def _advance_in_thread(self, run: ComponentCall) -> None:
        """Run in a thread, which has stopped when this returns or raises."""
        running = asyncio.wrap_future(self._factory.threads.submit(self._advance_throttled, run))
        self._factory.computing += 1
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self._cut.set()
            await asyncio.wait([running])
            raise
        finally:
            self._factory.computing -= 1

    def _advance_throttled(self, run: ComponentCall) -> None:
        """Run in a thread, with pauses that hold it to its share of a CPU after a first burst."""
        wall, cpu = time.monotonic(), time.thread_time()
        while not self._cut.is_set() and not self._advance_once(run):
            spent = time.thread_time() - cpu - CPU_BURST_SECONDS
            pause = spent / self._cpus - (time.monotonic() - wall)
            if pause > 0:
                self._cut.wait(min(pause, MAX_PAUSE_SECONDS))

    def _advance_once(self, run: ComponentCall) -> bool:
        """Run until it waits for the host (True) or an epoch ends. Raises WasmtimeError."""
        self._factory.ticker.request_ticks()
        self._factory.host.enter_instance(self)
        if run.poll():
            run.raise_trap()
            raise WasmtimeError("the instance ended by itself")
        return self.asked is not None or self.told is not None


class GuestFactory:
    """Creates guests of one component; `threads` run the calls that compute long."""

    def __init__(self, loaded: LoadedComponent, ticker: Ticker, threads: Executor) -> None:
        self.loaded, self.ticker, self.threads = loaded, ticker, threads
        self.host = ImportHost(loaded)
        self.keys = itertools.count(1)
        self.computing = 0
        """The number of calls that run in a thread."""

    def make_guest(self, limits: Limits) -> Guest:
        """Create a guest with its interpreter started. In any thread. Raises GuestTrapped."""
        return Guest(self, limits)

    async def make_guest_async(self, limits: Limits) -> Guest:
        """Create a guest in a thread. Raises GuestTrapped."""
        return await asyncio.wrap_future(self.threads.submit(self.make_guest, limits))


def _extract_reason(error: WasmtimeError) -> str:
    """The last line of wasmtime's message, which holds the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:MAX_REASON] if lines else "unknown"
