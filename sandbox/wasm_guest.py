"""One instance of the component: a server's whole world."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import Executor
from typing import Any

from wasmtime import Store, WasmtimeError

from sandbox.recording import LOADING, Inputs
from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_fiber import StringCall, instantiate
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
        self._factory, self._cpus = factory, limits.cpus
        self._cut = threading.Event()
        self._store = Store(factory.loaded.engine)
        memory = MEMORY_FACTOR * limits.memory_mb * 1024 * 1024
        self._store.set_limits(memory, MAX_TABLE_ELEMENTS)
        try:
            factory.host.enter(self)
            instance = instantiate(factory.host.linker, self._store, factory.loaded.component)
            self._handle: Any = instance.get_func(self._store, "handle")
            self._woken()
        except WasmtimeError as error:
            self.close()
            raise GuestTrapped(_reason(error)) from error

    async def call(
        self, line: str, inputs: Inputs, surroundings: Surroundings, seed: str = ""
    ) -> str:
        """Hand over a line; the answer. `seed` is for Python's `random`.

        Raises GuestTrapped and what `surroundings.exchange` raises. Cancelled, it is cut.
        """
        self.surroundings, self.record = surroundings, Record(inputs)
        call = StringCall(self._store, self._handle, line, seed)
        try:
            while not await self._advanced(call):
                assert self.asked is not None
                asked, self.asked = self.asked, None
                self.answer = await surroundings.exchange(asked)
            return call.result()
        except WasmtimeError as error:
            raise GuestTrapped(_reason(error)) from error
        finally:
            call.close()
            self._factory.host.waiter.forget(self.key)
            self.surroundings = None

    def close(self) -> None:
        """Give its memory back. Idempotent; not while it runs."""
        self._store.close()

    def _woken(self) -> None:
        """Run what every instance runs first."""
        call = StringCall(self._store, self._handle, "", "")
        try:
            while not self._advance(call):
                pass
            call.result()
        finally:
            call.close()

    async def _advanced(self, call: StringCall) -> bool:
        """Go on until the call is over (True) or asks the host for something."""
        started = time.perf_counter()
        while not (over := self._advance(call)) and self.asked is None:
            if time.perf_counter() - started > INLINE_SECONDS:
                return await self._in_thread(call)
        return over

    async def _in_thread(self, call: StringCall) -> bool:
        """The same in a thread, which has stopped when this returns or raises."""
        running = asyncio.wrap_future(self._factory.threads.submit(self._computed, call))
        self._factory.computing += 1
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._cut.set()
            await asyncio.wait([running])
            raise
        finally:
            self._factory.computing -= 1

    def _computed(self, call: StringCall) -> bool:
        """In a thread: go on, with pauses while ahead of the share of a CPU."""
        wall, cpu = time.monotonic(), time.thread_time()
        while not self._cut.is_set():
            if (over := self._advance(call)) or self.asked is not None:
                return over
            spent = time.thread_time() - cpu - CPU_BURST_SECONDS
            pause = spent / self._cpus - (time.monotonic() - wall)
            if pause > 0:
                self._cut.wait(min(pause, MAX_PAUSE_SECONDS))
        return False

    def _advance(self, call: StringCall) -> bool:
        """Run until the call is over (True), an epoch ends or the host is asked for something."""
        self._factory.ticker.need()
        self._factory.host.enter(self)
        return call.poll()


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
