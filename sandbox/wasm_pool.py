"""Instances made ahead, and the threads for those that compute long."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_guest import Guest, GuestFactory, GuestTrapped
from sandbox.wasm_ticker import Ticker

MAX_THREADS = 256
REPLENISH_SECONDS = 0.02


class GuestPool:
    """Guests with `limits`, `spares` of them made ahead. Use as an async context manager."""

    def __init__(self, loaded: LoadedComponent, limits: Limits, spares: int) -> None:
        self.limits, self.component = limits, loaded.digest
        self._ticker = Ticker(loaded.engine)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wasm")
        self._factory = GuestFactory(loaded, self._ticker, self._threads)
        self._wanted = spares
        self._spares: deque[Guest] = deque()
        self._replenishing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> GuestPool:
        self._ticker.start()
        self.replenish_soon(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        if self._replenishing:
            await self._replenishing
        while self._spares:
            self._spares.pop().close()
        self._threads.shutdown()
        self._ticker.stop()

    @property
    def computing(self) -> int:
        """How many calls compute at the moment, in threads."""
        return self._factory.computing

    async def take(self, limits: Limits) -> Guest:
        """A fresh guest, made ahead if there is one. Raises GuestTrapped."""
        if limits == self.limits and self._spares:
            return self._spares.popleft()
        return await self._factory.made(limits)

    def replenish_soon(self, seconds: float = REPLENISH_SECONDS) -> None:
        """Have the spares that are missing made, a moment later so that it takes no CPU from the
        call that used one up.
        """
        if self._replenishing is None and len(self._spares) < self._wanted:
            self._replenishing = asyncio.create_task(self._replenish(seconds))

    async def _replenish(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            with suppress(GuestTrapped):
                while len(self._spares) < self._wanted:
                    self._spares.append(await self._factory.made(self.limits))
        finally:
            self._replenishing = None
