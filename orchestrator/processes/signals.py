"""Noticing within 20 ms what other processes did: a freeze, a job, a decision, a new server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from registry.signals import Signals
from registry.store import Store
from sandbox.brake import Brake

PERIOD_SECONDS = 0.015


class Pulse:
    """A thread that watches the database and tells the event loop.

    On a freeze it engages the brake, and acknowledges the epoch once everything registered with the
    brake has run. `on_catalogue` is called when a server was published or changed its state.
    """

    def __init__(
        self, store: Store, brake: Brake, process: str, on_catalogue: Callable[[], None]
    ) -> None:
        self._store, self._brake, self._process = store, brake, process
        self._on_catalogue = on_catalogue
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._changed = asyncio.Event()
        self._work = asyncio.Event()
        self._seen: Signals | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch for the time of the block. The state at its start is already applied inside."""
        self._apply(self._store.signals())
        thread = threading.Thread(target=self._watch, name="pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    async def work(self, seconds: float) -> None:
        """Return when there may be a job or an approval to take up, or after `seconds`."""
        await _set(self._work, seconds)
        self._work.clear()

    async def changed(self) -> None:
        """Return at the next change of the database by anyone."""
        await self._changed.wait()

    async def changes(self, seconds: float) -> AsyncIterator[None]:
        """Yield at once and then at every change, until `seconds` have passed."""
        end = self._loop.time() + seconds
        yield
        while (left := end - self._loop.time()) > 0 and await _set(self._changed, left):
            yield

    def _watch(self) -> None:
        version = self._store.data_version()
        while not self._stop.wait(PERIOD_SECONDS):
            current = self._store.data_version()
            if current != version:
                version = current
                self._notice(self._store.signals())

    def _notice(self, signals: Signals) -> None:
        applied = threading.Event()

        def on_loop() -> None:
            self._apply(signals)
            before, self._changed = self._changed, asyncio.Event()
            before.set()
            applied.set()

        try:
            self._loop.call_soon_threadsafe(on_loop)
        except RuntimeError:
            return
        while not applied.wait(PERIOD_SECONDS) and not self._stop.is_set():
            pass

    def _apply(self, signals: Signals) -> None:
        before, self._seen = self._seen, signals
        if signals.frozen:
            self._brake.engage()
        else:
            self._brake.release()
        if before is None or signals.epoch != before.epoch:
            self._store.acknowledge(self._process, signals.epoch, time.time())
        if before is None or signals.catalogue != before.catalogue:
            self._on_catalogue()
        if before is None or _tasks(signals) != _tasks(before):
            self._work.set()


def _tasks(signals: Signals) -> tuple[int, int, bool]:
    return signals.queued, signals.approved, signals.frozen


async def _set(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event was set within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
