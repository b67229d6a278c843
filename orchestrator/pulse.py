"""Noticing within 20 ms that the database changed: a freeze, a job, a decision."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from registry.store import Store
from sandbox.brake import Brake

PERIOD_SECONDS = 0.015


class Pulse:
    """A thread that watches the database and tells the event loop.

    On a freeze it engages the brake, and acknowledges the epoch once everything registered with the
    brake has run.
    """

    def __init__(self, store: Store, brake: Brake, process: str) -> None:
        self._store, self._brake, self._process = store, brake, process
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._changed = asyncio.Event()
        self._epoch = -1

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch for the time of the block. The state at its start is already applied inside."""
        self._apply()
        thread = threading.Thread(target=self._watch, name="pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    async def wait(self, seconds: float | None = None) -> bool:
        """Return at the next change of the database by anyone: True, or False after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def changes(self, seconds: float) -> AsyncIterator[None]:
        """Yield at once and then at every change, until `seconds` have passed."""
        end = self._loop.time() + seconds
        yield
        while (left := end - self._loop.time()) > 0 and await self.wait(left):
            yield

    def _watch(self) -> None:
        version = self._store.data_version()
        while not self._stop.wait(PERIOD_SECONDS):
            current = self._store.data_version()
            if current != version:
                version = current
                self._notice()

    def _notice(self) -> None:
        applied = threading.Event()

        def on_loop() -> None:
            self._apply()
            before, self._changed = self._changed, asyncio.Event()
            before.set()
            applied.set()

        try:
            self._loop.call_soon_threadsafe(on_loop)
        except RuntimeError:
            return
        while not applied.wait(PERIOD_SECONDS) and not self._stop.is_set():
            pass

    def _apply(self) -> None:
        state = self._store.freeze_state()
        if state.frozen:
            self._brake.engage()
        else:
            self._brake.release()
        if state.epoch != self._epoch:
            self._epoch = state.epoch
            self._store.acknowledge(self._process, state.epoch, time.time())
