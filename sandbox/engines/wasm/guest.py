"""One instance of the component: a server's whole world."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import Executor

from wasmtime import Store, WasmtimeError

from sandbox.recording import LOADING, Inputs
from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_fiber import Run, instantiate
from sandbox.wasm_host import Host, Record, Surroundings
from sandbox.wasm_ticker import Ticker

MAX_REASON = 300
MEMORY_FACTOR = 2
"""Linear memory is fragmented and never handed back: for the same answer it takes about twice the
memory of a container."""
MAX_TABLE_ELEMENTS = 100_000
INLINE_SECONDS = 0.003
"""A call that computes for longer goes on in another thread than the event loop's."""
CPU_BURST_SECONDS = 0.1
MAX_PAUSE_SECONDS = 0.05


class GuestTrapped(Exception):
    """The instance stopped in the middle and is of no more use; the message says why."""


class Guest:
    """An instance that has run nothing but the component's own code so far.

    Made by `GuestFactory`. It runs one call at a time, and after a call that did not return nothing
    but `close` may follow.
    """

    def __init__(self, factory: GuestFactory, limits: Limits) -> None:
        self.used = False
        self.key = next(factory.keys)
        self.surroundings: Surroundings | None = None
        self.record = Record(LOADING)
        self.asked: str | None = None
        self.answer: str | None = None
        self.told: str | None = None
        self.line: str | None = None
        self._factory, self._cpus = factory, limits.cpus
        self._cut = threading.Event()
        self._run: Run | None = None
        self._store = Store(factory.loaded.engine)
        memory = MEMORY_FACTOR * limits.memory_mb * 1024 * 1024
        self._store.set_limits(memory, MAX_TABLE_ELEMENTS)
        try:
            factory.host.enter(self)
            instance = instantiate(factory.host.linker, self._store, factory.loaded.component)
            run = instance.get_func(self._store, "run")
            self._run = Run(self._store._context(), run)
            while not self._advance(self._run):
                pass
        except WasmtimeError as error:
            self.close()
            raise GuestTrapped(_reason(error)) from error

    async def call(self, line: str, inputs: Inputs, surroundings: Surroundings) -> str:
        """Hand over a line; the answer.

        Raises GuestTrapped and what `surroundings.exchange` raises. Cancelled, it is cut.
        """
        assert self._run is not None
        self.surroundings, self.record = surroundings, Record(inputs)
        self.line, self.told = line, None
        try:
            await self._advanced(self._run)
            while self.told is None:
                assert self.asked is not None
                asked, self.asked = self.asked, None
                self.answer = await surroundings.exchange(asked)
                await self._advanced(self._run)
        except WasmtimeError as error:
            self._end()
            raise GuestTrapped(_reason(error)) from error
        except BaseException:
            self._end()
            raise
        self.surroundings = None
        return self.told

    def close(self) -> None:
        """Give its memory back. Idempotent; not while it runs."""
        self._end()
        self._store.close()

    def _end(self) -> None:
        """Stop it wherever it is."""
        if self._run:
            self._run.close()
            self._run = None
        self._factory.host.forget(self.key)
        self.surroundings = None

    async def _advanced(self, run: Run) -> None:
        """Go on until it asks the host for something or has answered."""
        started = time.perf_counter()
        while not self._advance(run):
            if time.perf_counter() - started > INLINE_SECONDS:
                await self._in_thread(run)
                return

    async def _in_thread(self, run: Run) -> None:
        """The same in a thread, which has stopped when this returns or raises."""
        running = asyncio.wrap_future(self._factory.threads.submit(self._computed, run))
        self._factory.computing += 1
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self._cut.set()
            await asyncio.wait([running])
            raise
        finally:
            self._factory.computing -= 1

    def _computed(self, run: Run) -> None:
        """In a thread: go on, with pauses while ahead of the share of a CPU."""
        wall, cpu = time.monotonic(), time.thread_time()
        while not self._cut.is_set() and not self._advance(run):
            spent = time.thread_time() - cpu - CPU_BURST_SECONDS
            pause = spent / self._cpus - (time.monotonic() - wall)
            if pause > 0:
                self._cut.wait(min(pause, MAX_PAUSE_SECONDS))

    def _advance(self, run: Run) -> bool:
        """Run until it waits for the host (True) or an epoch ends. Raises WasmtimeError."""
        self._factory.ticker.need()
        self._factory.host.enter(self)
        if run.poll():
            run.check()
            raise WasmtimeError("the instance ended by itself")
        return self.asked is not None or self.told is not None


class GuestFactory:
    """Makes guests of one component; `threads` are for what computes long."""

    def __init__(self, loaded: LoadedComponent, ticker: Ticker, threads: Executor) -> None:
        self.loaded, self.ticker, self.threads = loaded, ticker, threads
        self.host = Host(loaded)
        self.keys = itertools.count(1)
        self.computing = 0
        """How many calls are in a thread."""

    def make(self, limits: Limits) -> Guest:
        """A fresh guest whose interpreter is awake. In any thread. Raises GuestTrapped."""
        return Guest(self, limits)

    async def made(self, limits: Limits) -> Guest:
        """The same without holding up the event loop."""
        return await asyncio.wrap_future(self.threads.submit(self.make, limits))


def _reason(error: WasmtimeError) -> str:
    """The cause that ends wasmtime's account of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:MAX_REASON] if lines else "unknown"
