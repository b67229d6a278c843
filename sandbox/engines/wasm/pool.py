"""Instances made ahead, and the threads for those that compute long."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_guest import Guest, GuestFactory, GuestTrapped
from sandbox.wasm_opening import Lines, Opened, opened
from sandbox.wasm_ticker import Ticker

MAX_THREADS = 256
REPLENISH_SECONDS = 0.02
MAX_KNOWN = 8
"""Servers that an instance is opened ahead for: those that were opened last."""
MAX_OPENING_SECONDS = 0.5
"""Whoever takes longer to load is not opened ahead."""


class GuestPool:
    """Guests with `limits`, `spares` of them made ahead; where there are any, also one for each of
    the servers that were opened last, which has its bundle already and was touched by no call.

    Use as an async context manager.
    """

    def __init__(self, loaded: LoadedComponent, limits: Limits, spares: int) -> None:
        self.limits, self.component = limits, loaded.digest
        self._ticker = Ticker(loaded.engine)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wasm")
        self._factory = GuestFactory(loaded, self._ticker, self._threads)
        self._wanted = spares
        self._spares: deque[Guest] = deque()
        self._known: OrderedDict[Lines, Opened | None] = OrderedDict()
        self._replenishing: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[Opened] | None = None

    async def __aenter__(self) -> GuestPool:
        self._ticker.start()
        self.replenish_soon(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        self.forget()
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

    @property
    def ahead(self) -> int:
        """How many servers have a guest that was opened ahead."""
        return sum(1 for found in self._known.values() if found)

    async def replenished(self) -> None:
        """Return when nothing is missing that is to be made ahead."""
        self.replenish_soon(0)
        while self._replenishing:
            await self._replenishing

    async def take(self, limits: Limits) -> Guest:
        """A fresh guest, made ahead if there is one. Raises GuestTrapped."""
        if limits == self.limits and self._spares:
            return self._spares.popleft()
        return await self._factory.made(limits)

    def take_opened(self, lines: Lines, limits: Limits) -> Opened | None:
        """A guest that has heard exactly these lines and nothing else, if one was opened ahead."""
        found = self._known.get(lines) if limits == self.limits else None
        if found:
            self._known[lines] = None
        return found

    def remember(self, lines: Lines, limits: Limits, seconds: float) -> None:
        """A server was opened with these lines, which took so long; it may be again."""
        if not self._wanted or limits != self.limits or seconds > MAX_OPENING_SECONDS:
            return
        self._known.setdefault(lines, None)
        self._known.move_to_end(lines)
        while len(self._known) > MAX_KNOWN:
            _close(self._known.popitem(last=False)[1])

    def forget(self) -> None:
        """End what was opened ahead, and what is being opened."""
        while self._known:
            _close(self._known.popitem()[1])
        if self._opening:
            self._opening.cancel()

    def replenish_soon(self, seconds: float = REPLENISH_SECONDS) -> None:
        """Have what is missing made, a moment later so that it takes no CPU from the call that used
        one up.
        """
        if self._replenishing is None and self._wanted:
            self._replenishing = asyncio.create_task(self._replenish(seconds))

    async def _replenish(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            with suppress(GuestTrapped):
                while len(self._spares) < self._wanted:
                    self._spares.append(await self._factory.made(self.limits))
                while lines := next((k for k, v in reversed(self._known.items()) if not v), None):
                    await self._open_ahead(lines)
        finally:
            self._replenishing = None

    async def _open_ahead(self, lines: Lines) -> None:
        """Have a guest opened. What does not open in time is forgotten."""
        guest = await self._factory.made(self.limits)
        self._opening = asyncio.create_task(opened(guest, lines, self.limits))
        done, _ = await asyncio.wait([self._opening], timeout=MAX_OPENING_SECONDS)
        if not done:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        task, self._opening = self._opening, None
        failed = task.cancelled() or task.exception() is not None
        if failed or lines not in self._known:
            self._known.pop(lines, None)
            _close(None if failed else task.result())
        else:
            self._known[lines] = task.result()


def _close(found: Opened | None) -> None:
    if found:
        found.guest.close()
