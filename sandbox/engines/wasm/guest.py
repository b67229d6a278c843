"""Instances of the component: execution, CPU share, and the epoch ticker."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from wasmtime import Engine, Store, WasmtimeError

from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.fiber import ComponentCall, instantiate_component
from sandbox.engines.wasm.host import REST, DeterministicInputs, HostServices, ImportHost
from sandbox.engines.wasm.memory import LinearMemory, MemoryImage
from sandbox.session.interface import Limits
from sandbox.session.recording import LOADING, CallInputs

TICK_SECONDS = 0.01


class Ticker:
    """A thread that ends an epoch every TICK_SECONDS while calls run, and else sleeps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._needs = 0
        self._polled: set[object] = set()
        self._awake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run_ticks, name="wasm ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._awake.set()
        self._thread.join()

    def begin_poll(self, run: object) -> None:
        """Have epochs end until `end_poll`, and until a whole one passes without a poll. In any
        thread.
        """
        self._polled.add(run)
        self._needs += 1
        if not self._awake.is_set():
            self._awake.set()

    def end_poll(self, run: object) -> None:
        self._polled.discard(run)

    def _run_ticks(self) -> None:
        while not self._over.is_set():
            self._awake.wait()
            seen = self._needs
            self._over.wait(TICK_SECONDS)
            self._engine.increment_epoch()
            # A poll can begin long after it was announced, and sets its deadline only then: while
            # one is under way there has to be a next tick.
            if self._needs == seen and not self._polled:
                self._awake.clear()
                # Whoever came between the question and the answer found it awake.
                if self._needs != seen or self._polled or self._over.is_set():
                    self._awake.set()


MAX_REASON = 300
MEMORY_FACTOR = 2
"""Linear memory is fragmented and never returned, so a call takes about twice a container's."""
MAX_PREFAULT = 4 * 1024 * 1024
MAX_INCLUDED = 1024 * 1024
"""A short call writes to a quarter of that."""
MAX_TABLE_ELEMENTS = 100_000
INLINE_SECONDS = 0.003
"""A call that computes for longer continues in a thread, so that the event loop is free."""
CPU_BURST_SECONDS = 0.1
MAX_PAUSE_SECONDS = 0.05
WAKE_SECONDS = 1.0
"""CPU until an instance waits for its first line, which takes 3 ms. What a server did while it was
loaded may have no end."""
STOP_SECONDS = 10.0
"""An instance ends within a tick of being told to. One that does not is left to its thread, which
frees it if it ever returns."""


class GuestTrapped(Exception):
    """The instance was stopped and cannot be used any more. The message gives the reason."""


class Guest:
    """An instance of the component, at first with no code but the component's own, or with that of
    the server that `image` was taken of.

    Created by `GuestFactory`. It runs one call at a time; after a call that raised, only `close`
    may follow.
    """

    def __init__(
        self, factory: GuestFactory, limits: Limits, image: MemoryImage | None = None
    ) -> None:
        self.used = False
        self.key = next(factory.keys)
        self.surroundings: HostServices | None = None
        self.record = DeterministicInputs(LOADING)
        self.asked: str | None = None
        self.answer: str | None = None
        self.told: str | None = None
        self.line: str | None = None
        self.refused, self.line_bytes = "", limits.line_bytes
        self._factory, self._cpus = factory, limits.cpus
        self._cut = threading.Event()
        self._resting = self._rested = False
        self._run: ComponentCall | None = None
        self._memory: LinearMemory | None = None
        store = Store(factory.loaded.engine)
        memory = MEMORY_FACTOR * limits.memory_mb * 1024 * 1024
        store.set_limits(memory, MAX_TABLE_ELEMENTS)
        try:
            factory.host.enter_instance(self)
            memories, image = factory.loaded.memories, image or factory.loaded.image
            if memories and image:
                memories.begin_with(image)
            instance = instantiate_component(factory.host.linker, store, factory.loaded.component)
            if memories:
                self._memory = memories.get_made()
            run = instance.get_func(store, "run")
            # It holds the factory, and with that the callbacks that free the memory.
            self._run = ComponentCall(store, run, partial(factory.forget_guest, self.key))
            self._wake(self._run)
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
                if self.refused:
                    raise GuestTrapped(self.refused)
                if self.asked is None:
                    raise GuestTrapped("the engine was closed")
                asked, self.asked = self.asked, None
                self.answer = await surroundings.exchange_request(asked)
                await self._advance_until_waiting(self._run)
        except WasmtimeError as error:
            self.close()
            raise GuestTrapped(_extract_reason(error)) from error
        except BaseException:
            self.close()
            raise
        self.surroundings = None
        return self.told

    async def take_image(self) -> MemoryImage:
        """End it between two lines; returns what others can begin with, to go on from there.

        Raises GuestTrapped, also where there are no images.
        """
        assert self._run is not None
        self.record, self.line, self.told = DeterministicInputs(LOADING), REST, None
        self._resting = True
        try:
            await self._advance_until_waiting(self._run)
            if self._memory is None or not self._rested:
                raise GuestTrapped("the code does not come to rest")
            return self._memory.take_image()
        except WasmtimeError as error:
            raise GuestTrapped(_extract_reason(error)) from error
        finally:
            self.close()

    def include_writes(self, image: MemoryImage) -> MemoryImage:
        """`image`, with pages for others that begin with it where this one wrote; as it is if that
        would be much. In any thread.
        """
        if self._memory is None:
            return image
        wider = self._memory.include_writes(image)
        added = wider.count_changed() - image.count_changed()
        return wider if added <= MAX_INCLUDED else image

    def note_writes(self) -> None:
        """Keep where it wrote while a server was loaded, and of the first that was called also with
        that call, for `prefault` of other guests.
        """
        factory = self._factory
        if self._memory and not factory.noted_call and (self.used or not factory.writes):
            factory.noted_call = self.used
            writes = self._memory.list_changes()
            if sum(end - start for start, end in writes) <= MAX_PREFAULT:
                factory.writes = writes

    def prefault(self) -> None:
        """Have the memory there that loading and calling a server takes. In any thread."""
        if self._memory:
            self._memory.prefault(self._factory.writes)

    def close(self) -> None:
        """Stop it wherever it is and free its memory, at the latest when the thread that runs it
        has noticed. Idempotent; at any time.
        """
        self._cut.set()
        if self._run:
            self._run.close()
            self._run = None
        self.surroundings = None

    def _wake(self, run: ComponentCall) -> None:
        """Run until it waits for its first line. Raises WasmtimeError."""
        started = time.thread_time()
        while not self._advance_once(run):
            if time.thread_time() - started > WAKE_SECONDS:
                raise WasmtimeError("the instance did not start")

    async def _advance_until_waiting(self, run: ComponentCall) -> None:
        """Run until it asks the host for something or has answered."""
        started = time.perf_counter()
        while not self._advance_once(run):
            if time.perf_counter() - started > INLINE_SECONDS:
                await self._advance_in_thread(run)
                return

    async def _advance_in_thread(self, run: ComponentCall) -> None:
        """Run in a thread, which has stopped when this returns or raises, however often it is
        cancelled meanwhile.
        """
        loop = asyncio.get_running_loop()
        running = asyncio.wrap_future(
            self._factory.threads.submit(self._advance_throttled, run, loop)
        )
        self._factory.keep_running(running)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self._cut.set()
            await wait_finished([running], STOP_SECONDS)
            raise

    def _advance_throttled(self, run: ComponentCall, loop: asyncio.AbstractEventLoop) -> None:
        """Run in a thread, with pauses that hold it to its share of a CPU after a first burst."""
        wall, cpu = time.monotonic(), time.thread_time()
        over = self._factory.over
        while not (self._cut.is_set() or over.is_set() or loop.is_closed()):
            if self._advance_once(run):
                return
            spent = time.thread_time() - cpu - CPU_BURST_SECONDS
            pause = spent / self._cpus - (time.monotonic() - wall)
            if pause > 0:
                self._cut.wait(min(pause, MAX_PAUSE_SECONDS))

    def _advance_once(self, run: ComponentCall) -> bool:
        """Run until it waits for the host (True) or an epoch ends. Raises WasmtimeError."""
        ticker = self._factory.ticker
        self._factory.host.enter_instance(self)
        ticker.begin_poll(run)
        try:
            over = run.poll()
        finally:
            ticker.end_poll(run)
        if over:
            run.raise_trap()
            if not self._resting:
                raise WasmtimeError("the instance ended by itself")
            self._rested = True
            return True
        return self.asked is not None or self.told is not None or bool(self.refused)


class GuestFactory:
    """Creates guests of one component; `threads` run the calls that compute long."""

    def __init__(self, loaded: LoadedComponent, ticker: Ticker, threads: Executor) -> None:
        self.loaded, self.ticker, self.threads = loaded, ticker, threads
        self.host = ImportHost(loaded.engine, loaded.component)
        self.keys = itertools.count(1)
        self.over = threading.Event()
        """Set when nothing is to run any more."""
        self.writes: list[tuple[int, int]] = []
        """Where loading and calling a server wrote to memory."""
        self.noted_call = False
        self._running: set[asyncio.Future[None]] = set()

    @property
    def computing(self) -> int:
        """The number of calls that run in a thread."""
        return len(self._running)

    def forget_guest(self, key: int) -> None:
        self.host.forget_instance(key)

    def keep_running(self, call: asyncio.Future[None]) -> None:
        self._running.add(call)
        call.add_done_callback(self._running.discard)

    async def stop(self) -> bool:
        """Stop what runs in threads; False if something did not end in time."""
        self.over.set()
        await wait_finished(self._running, STOP_SECONDS)
        return not self._running

    def make_guest(self, limits: Limits, image: MemoryImage | None = None) -> Guest:
        """Create a guest with its interpreter started. In any thread. Raises GuestTrapped."""
        return Guest(self, limits, image)

    async def make_guest_async(
        self, limits: Limits, image: MemoryImage | None = None, spent: Guest | None = None
    ) -> Guest:
        """Create a guest in a thread, which first ends `spent`. Raises GuestTrapped."""
        making = asyncio.wrap_future(self.threads.submit(self._replace_guest, spent, limits, image))
        try:
            return await asyncio.shield(making)
        except BaseException:
            # The thread goes on, and nobody waits for what it makes.
            making.add_done_callback(_close_made)
            raise

    def _replace_guest(
        self, spent: Guest | None, limits: Limits, image: MemoryImage | None
    ) -> Guest:
        if spent:
            spent.close()
        return self.make_guest(limits, image)


def _close_made(making: asyncio.Future[Guest]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().close()


async def wait_finished(futures: Iterable[asyncio.Future[Any]], seconds: float) -> None:
    """Wait until all are done, at most so long, however often this task is cancelled meanwhile. A
    cancellation is raised at the end.
    """
    loop = asyncio.get_running_loop()
    end, cancelled = loop.time() + seconds, None
    pending = {future for future in futures if not future.done()}
    while pending and (left := end - loop.time()) > 0:
        try:
            _, pending = await asyncio.wait(pending, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
            pending = {future for future in pending if not future.done()}
    if cancelled is not None:
        raise cancelled


def _extract_reason(error: WasmtimeError) -> str:
    """The last line of wasmtime's message, which holds the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:MAX_REASON] if lines else "unknown"
