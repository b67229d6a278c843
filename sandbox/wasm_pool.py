"""Instances made ahead, and the threads that instances run in."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_guest import Guest, GuestFactory

MAX_THREADS = 256
THREAD_STACK_BYTES = 16 * 1024 * 1024
"""Compiled WASM runs on its thread's stack, of which the component may use a part."""
TICK_SECONDS = 0.02
REPLENISH_SECONDS = 0.02


class GuestPool:
    """Guests with `limits`, `spares` of them made ahead. Use as an async context manager."""

    def __init__(self, loaded: LoadedComponent, limits: Limits, spares: int) -> None:
        self.limits, self.component = limits, loaded.digest
        self._factory = GuestFactory(loaded)
        self._wanted = spares
        self._spares: deque[Guest] = deque()
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wasm")
        self._running: set[Future[None]] = set()
        self._ticker: asyncio.TimerHandle | None = None
        self._replenishment: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> GuestPool:
        self.replenish()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        await finished(self._running)
        while self._spares:
            self._spares.pop().close()
        for timer in (self._ticker, self._replenishment):
            if timer:
                timer.cancel()
        self._threads.shutdown(wait=False)

    @property
    def busy(self) -> bool:
        """Whether a thread is at work."""
        return bool(self._running)

    def run(self, work: Callable[[], None]) -> Future[None]:
        """Have a thread do work that may call a guest. Epochs end while there is any."""
        before = threading.stack_size(THREAD_STACK_BYTES)
        try:
            future = self._threads.submit(work)
        finally:
            threading.stack_size(before)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        if self._ticker is None:
            self._tick_later()
        return future

    def take(self, limits: Limits) -> Guest:
        """A fresh guest, made ahead if there is one. For threads. Raises GuestTrapped."""
        if limits == self.limits:
            try:
                return self._spares.popleft()
            except IndexError:
                pass
        return self._factory.make(limits)

    def replenish(self) -> None:
        """Have the spares that are missing made."""
        for _ in range(self._wanted - len(self._spares)):
            self.run(self._make_spare)

    def replenish_soon(self) -> None:
        """The same a moment later, so that it takes no CPU from the call that used up a spare."""
        if self._replenishment is None and len(self._spares) < self._wanted:
            loop = asyncio.get_running_loop()
            self._replenishment = loop.call_later(REPLENISH_SECONDS, self._replenish_now)

    def _replenish_now(self) -> None:
        self._replenishment = None
        self.replenish()

    def _make_spare(self) -> None:
        if len(self._spares) < self._wanted:
            self._spares.append(self._factory.make(self.limits))

    def _tick_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        if self._running:
            self._factory.tick()
            self._tick_later()


async def finished(futures: Iterable[Future[None]]) -> None:
    """Return when the threads' work is over, however it ended."""
    waiting = [asyncio.wrap_future(future) for future in tuple(futures)]
    await asyncio.gather(*waiting, return_exceptions=True)
