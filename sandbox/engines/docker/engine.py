"""The Docker engine: every bundle in a container whose only connection is its stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.utils import kwargs_from_env

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.containers import (
    ENGINE_ERRORS,
    AttachedContainer,
    ContainerManager,
    ContainerSpec,
    find_reason,
    remove_container,
)
from sandbox.engines.docker.layers import find_dependency_layer
from sandbox.errors import EngineAbsent, EngineUnavailable, PackageUnusable, SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Session
from sandbox.session.pipe import PipeSession

Client = docker.DockerClient
LayerBuilder = Callable[[Client, Bundle, str], str]
"""Builds the image of a bundle's packages on a base image; returns its id."""
LABEL = "toolwright"
KILLERS = 32
"""Containers that are killed at once, so that none waits for another one's removal."""
ANSWER_SECONDS = 10
"""What an engine may take to answer while a kill waits for it; it is asked again afterwards."""
REPLENISH_SECONDS = 0.03
"""After a spare was taken: starting the next one would take the processor from the first answer."""
_ABSENT = (FileNotFoundError, ConnectionRefusedError, PermissionError)


@dataclass(frozen=True)
class ContainerLabels:
    """Labels of every container: the installation, the process that started it, and the job."""

    instance: str
    process: str
    job: str = ""

    def to_dict(self) -> dict[str, str]:
        return {
            LABEL: "sandbox",
            f"{LABEL}.instance": self.instance,
            f"{LABEL}.process": self.process,
            f"{LABEL}.job": self.job,
        }


def connect_engine(timeout: int = 30) -> docker.DockerClient:
    """Connect to the engine that the environment names. Raises EngineUnavailable, EngineAbsent if
    there is none.
    """
    try:
        _check_socket(kwargs_from_env().get("base_url") or DEFAULT_UNIX_SOCKET)
    except _ABSENT as error:
        raise EngineAbsent(find_reason(error)) from error
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(find_reason(error)) from error
    try:
        client = docker.from_env(timeout=timeout)
        client.ping()
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(find_reason(error)) from error
    return client


def _check_socket(url: str) -> None:
    """Raises OSError if nobody listens on a local socket: the SDK would leak its own then."""
    if os.name == "posix" and "unix://" in url:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(url.partition("unix://")[2])


class DockerRunner:
    """Opens sessions in single-use containers of the generic image, `spares` started ahead.

    A spare has run no code but the runtime's; it gets one bundle and is never reused. Use as an
    async context manager; on exit it removes every container started by `containers`. `kept` maps
    ids of earlier base images to names: a bundle that was proved on one of them runs on it.
    `build_layer` fetches and builds what the engine lacks of a bundle's packages.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        image: str,
        labels: ContainerLabels,
        *,
        kill_switch: KillSwitch | None = None,
        spares: int = 0,
        limits: Limits | None = None,
        runtime: str | None = None,
        kept: Mapping[str, str] | None = None,
        build_layer: LayerBuilder | None = None,
    ) -> None:
        self._kept, self._build_layer = kept or {}, build_layer
        self._client, self._layers = client, dict[str, str]()
        self._image, self._labels, self._runtime = image, labels, runtime
        self._kill_switch = kill_switch or KillSwitch()
        self._wanted = spares
        self._limits = limits or Limits()
        self._spares: list[asyncio.Task[AttachedContainer]] = []
        self.containers = ContainerManager(client.api)

    async def __aenter__(self) -> DockerRunner:
        self._replenish_spares()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        for container in await asyncio.gather(*self._spares, return_exceptions=True):
            if isinstance(container, AttachedContainer):
                container.kill()
        self._spares.clear()
        await self.containers.close()

    async def wait_drained(self) -> None:
        """Wait until all scheduled removals of containers are done."""
        await self.containers.wait_drained()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """Open a session with the bundle.

        Raises LoadFailed, SessionBroken, EngineUnavailable, BaseImageMissing, Frozen; if the image
        of the bundle's packages has to be built, also PackageUnusable and BaseImageBuildFailed.
        """
        self._kill_switch.raise_if_engaged()
        limits = limits or self._limits
        if bundle.packages:
            container = await self._start_container(limits, await self._ensure_layer(bundle))
        elif (base := self._kept.get(bundle.provenance.base_image)) is not None:
            container = await self._start_container(limits, base)
        else:
            container = await self._take_container(limits)
        session = PipeSession(bundle, broker, limits, container)
        container.bind_listener(session)
        try:
            async with session.run_session(self._kill_switch):
                yield session
        finally:
            await container.kill_and_wait()

    async def _take_container(self, limits: Limits) -> AttachedContainer:
        if limits == self._limits and self._spares:
            spare = self._spares.pop(0)
            asyncio.get_running_loop().call_later(REPLENISH_SECONDS, self._replenish_spares)
            # The engine may have been away when the spare was started, or since.
            try:
                container = await spare
                if container.alive:
                    return container
            except asyncio.CancelledError:
                # It may have become ready at that very moment, and nobody else has it.
                spare.add_done_callback(_kill_started)
                raise
            except SandboxError:
                pass
        return await self._start_container(limits, self._image)

    async def _ensure_layer(self, bundle: Bundle) -> str:
        """The image of a bundle's packages, built if the engine has none."""
        digest = bundle.compute_digest()
        if digest not in self._layers:
            self._layers[digest] = await asyncio.to_thread(self._find_layer, bundle)
        return self._layers[digest]

    def _find_layer(self, bundle: Bundle) -> str:
        found = find_dependency_layer(self._client, bundle, self._image)
        if found:
            return found
        if self._build_layer is None:
            raise PackageUnusable(f"the packages of {bundle.name} are in no image of the engine.")
        return self._build_layer(self._client, bundle, self._image)

    def _replenish_spares(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._spares) < self._wanted and not self._kill_switch.engaged:
            self._spares.append(loop.create_task(self._start_container(self._limits, self._image)))

    async def _start_container(self, limits: Limits, image: str) -> AttachedContainer:
        design = ContainerSpec(image, self._labels.to_dict(), runtime=self._runtime)
        return await self.containers.start_container(design, limits)


def _kill_started(start: asyncio.Task[AttachedContainer]) -> None:
    if not start.cancelled() and start.exception() is None:
        start.result().kill()


def list_containers(client: docker.DockerClient, **labels: str) -> tuple[Mapping[str, Any], ...]:
    """The sandboxes with these `toolwright.*` labels, in any state. Raises EngineUnavailable."""
    wanted = [f"{LABEL}=sandbox", *(f"{LABEL}.{key}={value}" for key, value in labels.items())]
    try:
        return tuple(client.api.containers(all=True, filters={"label": wanted}))
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(find_reason(error)) from error


def kill_containers(client: docker.DockerClient, **labels: str) -> int:
    """Kill and remove the sandboxes with these labels; returns how many were listed before.

    What somebody else is at removing is not waited for, so whether all are gone is known only when
    the next round finds none. Raises EngineUnavailable.
    """
    found = list_containers(client, **labels)
    with ThreadPoolExecutor(KILLERS) as threads:
        list(threads.map(lambda c: remove_container(client.api, c["Id"], 0), found))
    return len(found)


def kill_instance(instance: str) -> int:
    """Kill all sandboxes of an installation, as `kill_containers` does. Raises EngineUnavailable,
    EngineAbsent if there is no engine.
    """
    with contextlib.closing(connect_engine(ANSWER_SECONDS)) as client:
        return kill_containers(client, instance=instance)


def is_local_engine(client: docker.DockerClient) -> bool:
    """Whether the engine runs on this machine, so that it can mount its files."""
    return str(client.api.base_url).startswith(("http+docker://", "http+unix://", "npipe://"))
