"""The WASM engine: bundles run in instances of one component, in this process.

It has the interface of the Docker engine; docs/architecture.md compares the two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.pool import OPENING_SECONDS, GuestPool
from sandbox.engines.wasm.session import GuestPipe
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits
from sandbox.session.pipe import PipeSession
from sandbox.session.recording import CallInputs, create_live_inputs


class WasmRunner:
    """Opens sessions in instances of their own, `spares` of them created ahead.

    Each call gets the inputs on its tape, else what `sandbox.session.recording.choose_inputs` makes
    of `make_inputs()`, and they are on its tape afterwards. Use as an async context manager. Of the
    limits, `pids`, `files` and `scratch_mb` do not apply: instances have none of them.
    """

    def __init__(
        self,
        loaded: LoadedComponent,
        *,
        kill_switch: KillSwitch | None = None,
        spares: int = 0,
        limits: Limits | None = None,
        make_inputs: Callable[[], CallInputs] = create_live_inputs,
        opening_seconds: float = OPENING_SECONDS,
    ) -> None:
        self.pool = GuestPool(loaded, limits or Limits(), spares, opening_seconds)
        self._kill_switch = kill_switch or KillSwitch()
        self._make_inputs = make_inputs
        self._held = AsyncExitStack()

    async def __aenter__(self) -> WasmRunner:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.pool)
            stack.enter_context(self._kill_switch.on_engage(self.pool.forget_servers))
            self._held = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._held.aclose()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[PipeSession]:
        """A session with the bundle. Raises LoadFailed, SessionBroken, Frozen."""
        self._kill_switch.raise_if_engaged()
        pipe = GuestPipe(self.pool, bundle, limits or self.pool.limits, self._make_inputs)
        session = pipe.session = PipeSession(bundle, broker, pipe.limits, pipe)
        try:
            async with session.run_session(self._kill_switch):
                self.pool.replenish_soon()
                yield session
        finally:
            await pipe.wait_ended()
