"""The WASM engine: every bundle in instances of one component, in this process and in no container.

Nothing above `sandbox/` can tell it from the Docker engine. docs/architecture.md compares the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from wasmtime import WasmtimeError

from sandbox import exactjson
from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.errors import SessionBroken
from sandbox.exchange import Exchange
from sandbox.guard import depth
from sandbox.runner import Limits, Outcome
from sandbox.session import ERROR_META, PipeSession
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_guest import Guest, GuestCut, GuestFactory, GuestTrapped
from sandbox.wasm_recording import (
    LOADING,
    Inputs,
    RecordedOutcome,
    Recording,
    Replay,
    live_inputs,
)

MAX_CALLS = 8
"""Calls of one session that run at once, as in a container; each has an instance of its own."""
MAX_THREADS = 256
THREAD_STACK_BYTES = 16 * 1024 * 1024
TICK_SECONDS = 0.02
MAX_LOG_CALLS = 10_000
STATELESS_AUTHOR = "compiler"
LOAD_FAILED = -32001


class WasmRunner:
    """Opens sessions in fresh instances, `spares` of them made ahead.

    A session replays a recording where it is given one, else every call gets `inputs()` and the
    outcome is a `RecordedOutcome`. Use as an async context manager.
    """

    def __init__(
        self,
        loaded: LoadedComponent,
        *,
        brake: Brake | None = None,
        spares: int = 0,
        limits: Limits | None = None,
        inputs: Callable[[], Inputs] = live_inputs,
    ) -> None:
        self.guests = GuestFactory(loaded)
        self._brake = brake or Brake()
        self._wanted = spares
        self._limits = limits or Limits()
        self._inputs = inputs
        self._spares: deque[Guest] = deque()
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wasm")
        self._running = 0
        self._replenishing: set[Future[None]] = set()

    async def __aenter__(self) -> WasmRunner:
        self._replenish()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        await finished(self._replenishing)
        while self._spares:
            self._spares.pop().close()
        self._threads.shutdown(wait=False)

    @asynccontextmanager
    async def open(
        self,
        bundle: Bundle,
        broker: Broker,
        limits: Limits | None = None,
        recording: Recording | None = None,
    ) -> AsyncIterator[WasmSession]:
        """A session with the bundle. Raises LoadFailed, SessionBroken, Frozen.

        With a recording every call gets its inputs, and its exchanges answer instead of the broker.
        """
        self._brake.check()
        limits = limits or self._limits
        inputs = self._inputs
        if recording is not None:
            broker, taken = Replay(recording.exchanges), recording.inputs
            inputs = lambda: taken  # noqa: E731
        pipe = GuestPipe(self, bundle, limits, inputs)
        session = WasmSession(bundle, broker, limits, pipe)
        pipe.session = session
        try:
            with self._brake.on_engage(session.freeze):
                self._brake.check()
                await session.start()
                yield session
        finally:
            session.end()
            await pipe.ended()
