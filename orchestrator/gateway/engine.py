"""Selecting the engine that runs the servers: Docker where it answers, else the embedded WASM
engine.
"""

from __future__ import annotations

import asyncio
import importlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from types import TracebackType
from typing import Any, TypeVar

from orchestrator.settings import EngineSettings
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.reaper import run_reaper
from sandbox.errors import (
    BaseImageMissing,
    ComponentMissing,
    EngineAbsent,
    EngineUnavailable,
    NotOnThisEngine,
    PackagesNeedDocker,
    SandboxError,
)
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Runner, Session
from sandbox.thirdparty.environment import EnvironmentProvider

LOOK_AGAIN_SECONDS = 2.0

T = TypeVar("T")
Labels = Mapping[str, str]


class Engine:
    """The engine in use, itself a `Runner`. Where there is none, it is looked for again when the
    next session is opened, and its absence is what opening raises.

    `name` is `docker` or `wasm`, or nothing; `base` the id of the base image or component;
    `modules` what servers can import, where the engine has its own list. `tell` gets the line that
    says why the WASM engine stands in for Docker.
    """

    def __init__(
        self,
        settings: EngineSettings,
        process: str,
        kill_switch: KillSwitch,
        tell: Callable[[str], Any],
        outfit: EnvironmentProvider | None = None,
    ) -> None:
        self.name, self.base = "", ""
        self.modules: frozenset[str] | None = None
        self._settings, self._process, self._kill_switch = settings, process, kill_switch
        self._tell = tell
        self._stack = AsyncExitStack()
        self._runner: Runner | None = None
        self._outfit = outfit
        self._foreign: Runner | None = None
        self._absence: SandboxError | None = None
        self._looked = 0.0
        self._looking = asyncio.Lock()

    async def __aenter__(self) -> Engine:
        await self._look_for_engine()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def fetch(self, work: Callable[[Labels], T]) -> T:
        """Run what fetches packages in a thread, with labels for its containers. They end with this
        process, by the kill switch, and when this is cancelled.
        """
        job = f"fetch-{uuid.uuid4().hex[:12]}"
        try:
            return await asyncio.to_thread(work, self._build_labels(job))
        except asyncio.CancelledError:
            await asyncio.to_thread(self._kill_job, job)
            raise

    def _build_labels(self, job: str = "") -> Labels:
        engine = importlib.import_module("sandbox.engines.docker.engine")
        labels: Labels = engine.ContainerLabels(
            self._settings.instance, self._process, job
        ).to_dict()
        return labels

    def _kill_job(self, job: str) -> None:
        engine = importlib.import_module("sandbox.engines.docker.engine")
        with closing(engine.connect_engine()) as client:
            engine.kill_containers(client, job=job)

    def check_available(self) -> None:
        """Return where there is an engine. Raises what opening a session would."""
        if self._runner is None:
            raise self._absence or EngineUnavailable("none was looked for")

    async def look_again(self) -> None:
        """Look for an engine at once, where there was none: somebody just made one ready."""
        self._looked = -LOOK_AGAIN_SECONDS
        await self._look_for_engine()

    def check_caged(self, server: str) -> None:
        """Return where a third-party server can be fetched and run in a cage. Raises Frozen,
        NotOnThisEngine, or what opening a session would.
        """
        self._kill_switch.raise_if_engaged()
        self.check_available()
        if self._foreign is None:
            raise NotOnThisEngine(server)

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle. Raises what the engine raises, or why there is none."""
        runner = await self._find_runner(bundle)
        async with runner.open(bundle, broker, limits) as session:
            yield session

    async def _find_runner(self, bundle: Bundle) -> Runner:
        if bundle.launch is not None and bundle.launch.way == "process":
            return self._open_unconfined(bundle)
        if self._runner is None:
            await self._look_for_engine()
        self.check_available()
        runner = self._runner if bundle.launch is None else self._foreign
        if runner is None:
            raise NotOnThisEngine(bundle.name)
        if bundle.packages and self.name != "docker":
            raise PackagesNeedDocker(bundle.name)
        return runner

    def _open_unconfined(self, bundle: Bundle) -> Runner:
        if self._outfit is None:
            raise NotOnThisEngine(bundle.name)
        module = importlib.import_module("sandbox.thirdparty.unconfined")
        inherited = self._settings.inherited
        runner: Runner = module.UnconfinedRunner(
            self._outfit, inherited=inherited, kill_switch=self._kill_switch
        )
        return runner

    async def _look_for_engine(self) -> None:
        async with self._looking:
            if self._runner or time.monotonic() - self._looked < LOOK_AGAIN_SECONDS:
                return
            try:
                self._runner = await self._choose_runner()
            except (EngineUnavailable, BaseImageMissing, ComponentMissing) as error:
                self._absence = error
            self._looked = time.monotonic()

    async def _choose_runner(self) -> Runner:
        """Raises EngineUnavailable, BaseImageMissing or ComponentMissing."""
        if self._settings.name == "wasm":
            return await self._start_wasm()
        try:
            return await self._start_docker()
        except (EngineUnavailable, BaseImageMissing) as error:
            if self._settings.name == "docker":
                raise
            try:
                runner = await self._start_wasm()
            except ComponentMissing as missing:
                # Of the two, what `toolwright setup` mends.
                raise (error if isinstance(error, BaseImageMissing) else missing) from None
            if not isinstance(error, EngineAbsent):
                self._tell(f"servers run on the embedded WASM engine: {_shorten(error)}")
            return runner

    # Loading the Docker SDK costs 0.2 s and wasmtime 0.1, so each only for who uses it.

    async def _start_docker(self) -> Runner:
        engine = await asyncio.to_thread(importlib.import_module, "sandbox.engines.docker.engine")
        images = importlib.import_module("sandbox.engines.docker.image")
        client = await asyncio.to_thread(engine.connect_engine)
        image = await asyncio.to_thread(images.find_base_image, client)
        if image is None:
            client.close()
            raise BaseImageMissing(images.compute_base_reference())
        self._stack.callback(client.close)
        self._stack.enter_context(run_reaper(self._process))
        # By its id: what is started keeps to one base, also where another takes its name meanwhile.
        runner = engine.DockerRunner(
            client,
            image.id,
            engine.ContainerLabels(self._settings.instance, self._process),
            kill_switch=self._kill_switch,
            spares=self._settings.spares,
            runtime=self._settings.runtime,
            kept=await asyncio.to_thread(_find_kept_bases, client, image.id),
            build_layer=self._build_layer,
        )
        if self._outfit is not None:
            foreign = importlib.import_module("sandbox.thirdparty.runner")
            self._foreign = foreign.ThirdPartyRunner(
                runner.containers,
                image.reference,
                self._build_labels(),
                self._outfit,
                kill_switch=self._kill_switch,
                runtime=self._settings.runtime,
                private=self._settings.private,
                local=engine.is_local_engine(client),
            )
        return await self._enter_runner("docker", image.id, runner)

    def _build_layer(self, client: Any, bundle: Bundle, base: str) -> str:
        layers = importlib.import_module("sandbox.packages.layers")
        image: str = layers.build_dependency_layer(
            client, bundle, lambda step: None, base, self._build_labels("packages")
        )
        return image

    async def _start_wasm(self) -> Runner:
        components = await asyncio.to_thread(
            importlib.import_module, "sandbox.engines.wasm.component"
        )
        loaded = await asyncio.to_thread(components.load_component, self._settings.cache)
        engine = importlib.import_module("sandbox.engines.wasm.engine")
        runner = engine.WasmRunner(
            loaded, kill_switch=self._kill_switch, spares=self._settings.spares
        )
        self.modules = frozenset(components.list_modules())
        return await self._enter_runner("wasm", f"wasm:{loaded.digest}", runner)

    async def _enter_runner(self, name: str, base: str, runner: Any) -> Runner:
        entered: Runner = await self._stack.enter_async_context(runner)
        self.name, self.base = name, base
        return entered


def _find_kept_bases(client: Any, present: str) -> dict[str, str]:
    """The earlier base images that servers are still proved on, without the present one."""
    bases = importlib.import_module("sandbox.engines.docker.bases")
    return {id: name for id, name in bases.list_kept_bases(client).items() if id != present}


def _shorten(error: EngineUnavailable | BaseImageMissing) -> str:
    """Why Docker is not used, in one line of a terminal."""
    if isinstance(error, BaseImageMissing):
        return str(error)
    return "Docker does not answer. `toolwright doctor` shows the engines."
