"""Which engine runs the servers: Docker where one answers, else the embedded WASM engine."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any

import structlog

from orchestrator.settings import Settings
from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.docker_engine import DockerRunner, Labels, connect
from sandbox.errors import (
    BaseImageMissing,
    ComponentMissing,
    EngineUnavailable,
    SandboxError,
)
from sandbox.image import base_image, base_reference
from sandbox.reaper import reaper
from sandbox.runner import Limits, Runner, Session

LOOK_AGAIN_SECONDS = 2.0

log = structlog.get_logger()


class Engine:
    """The engine in use, itself a `Runner`. Where there is none, it is looked for again when the
    next session is opened, and its absence is what opening raises.

    `name` is `docker` or `wasm`, or nothing; `base` the id of the base image or component.
    """

    def __init__(self, settings: Settings, process: str, brake: Brake) -> None:
        self.name, self.base = "", ""
        self._settings, self._process, self._brake = settings, process, brake
        self._stack = AsyncExitStack()
        self._runner: Runner | None = None
        self._absence: SandboxError | None = None
        self._looked = 0.0
        self._looking = asyncio.Lock()

    async def __aenter__(self) -> Engine:
        await self._look()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle. Raises what the engine raises, or why there is none."""
        if self._runner is None:
            await self._look()
        if self._runner is None:
            raise self._absence or EngineUnavailable("none was looked for")
        async with self._runner.open(bundle, broker, limits) as session:
            yield session

    async def _look(self) -> None:
        async with self._looking:
            if self._runner or time.monotonic() - self._looked < LOOK_AGAIN_SECONDS:
                return
            try:
                self._runner = await self._found()
            except (EngineUnavailable, BaseImageMissing, ComponentMissing) as error:
                self._absence = error
            self._looked = time.monotonic()

    async def _found(self) -> Runner:
        """Raises EngineUnavailable, BaseImageMissing or ComponentMissing."""
        if self._settings.engine == "wasm":
            return await self._wasm()
        try:
            return await self._docker()
        except (EngineUnavailable, BaseImageMissing) as error:
            if self._settings.engine == "docker":
                raise
            try:
                runner = await self._wasm()
            except ComponentMissing:
                raise error from None
            log.info("servers run on the embedded WASM engine", reason=str(error))
            return runner

    async def _docker(self) -> Runner:
        client = await asyncio.to_thread(connect)
        image = await asyncio.to_thread(base_image, client)
        if image is None:
            client.close()
            raise BaseImageMissing(base_reference())
        self._stack.callback(client.close)
        self._stack.enter_context(reaper(self._process))
        runner = DockerRunner(
            client,
            image.reference,
            Labels(self._settings.instance, self._process),
            brake=self._brake,
            spares=self._settings.spares,
            runtime=self._settings.container_runtime,
        )
        self.name, self.base = "docker", image.id
        return await self._stack.enter_async_context(runner)

    async def _wasm(self) -> Runner:
        # Loading wasmtime costs 110 ms, so only who uses it does.
        loaded: Any = await asyncio.to_thread(_component, self._settings)
        engine = importlib.import_module("sandbox.wasm_engine")
        runner = engine.WasmRunner(loaded, brake=self._brake, spares=self._settings.spares)
        self.name, self.base = "wasm", f"wasm:{loaded.digest}"
        entered: Runner = await self._stack.enter_async_context(runner)
        return entered


def _component(settings: Settings) -> Any:
    return importlib.import_module("sandbox.wasm_component").load_component(settings.cache)
