"""The WASM engine: every bundle in instances of one component, in this process and in no container.

Nothing above `sandbox/` can tell it from the Docker engine; docs/architecture.md compares the two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.recording import Inputs, live_inputs
from sandbox.runner import Limits
from sandbox.session import PipeSession
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_pool import GuestPool
from sandbox.wasm_session import GuestPipe


class WasmRunner:
    """Opens sessions in instances that no other session uses, `spares` of them made ahead.

    Each call gets the inputs on its tape, else what `sandbox.recording.inputs_for` makes of
    `make_inputs()`, and they are on its tape afterwards. Use as an async context manager. Of the
    limits, `pids`, `files` and `scratch_mb` have no meaning here: there are none.
    """

    def __init__(
        self,
        loaded: LoadedComponent,
        *,
        brake: Brake | None = None,
        spares: int = 0,
        limits: Limits | None = None,
        make_inputs: Callable[[], Inputs] = live_inputs,
    ) -> None:
        self.pool = GuestPool(loaded, limits or Limits(), spares)
        self._brake = brake or Brake()
        self._make_inputs = make_inputs
        self._held = AsyncExitStack()

    async def __aenter__(self) -> WasmRunner:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.pool)
            stack.enter_context(self._brake.on_engage(self.pool.forget))
            self._held = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._held.aclose()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[PipeSession]:
        """A session with the bundle. Raises LoadFailed, SessionBroken, Frozen."""
        self._brake.check()
        pipe = GuestPipe(self.pool, bundle, limits or self.pool.limits, self._make_inputs)
        session = pipe.session = PipeSession(bundle, broker, pipe.limits, pipe)
        try:
            async with session.running(self._brake):
                self.pool.replenish_soon()
                yield session
        finally:
            await pipe.ended()
