"""The Docker engine: every bundle in a container whose only connection is its stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import docker
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.utils import kwargs_from_env

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.containers import (
    ENGINE_ERRORS,
    Attached,
    Containers,
    Design,
    reason,
    remove_container,
)
from sandbox.errors import EngineUnavailable, SandboxError
from sandbox.layers import dependency_layer
from sandbox.runner import Limits, Session
from sandbox.session import PipeSession

Client = docker.DockerClient
LABEL = "toolwright"
KILLERS = 32
"""Orders to kill on their way at once: none waits for another container's removal."""


@dataclass(frozen=True)
class Labels:
    """What every container carries: the installation, the process that started it, and the job."""

    instance: str
    process: str
    job: str = ""

    def as_dict(self) -> dict[str, str]:
        return {
            LABEL: "sandbox",
            f"{LABEL}.instance": self.instance,
            f"{LABEL}.process": self.process,
            f"{LABEL}.job": self.job,
        }


def connect(timeout: int = 30) -> docker.DockerClient:
    """A client of the engine that the environment names. Raises EngineUnavailable."""
    try:
        _check_socket(kwargs_from_env().get("base_url") or DEFAULT_UNIX_SOCKET)
        client = docker.from_env(timeout=timeout)
        client.ping()
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(reason(error)) from error
    return client


def _check_socket(url: str) -> None:
    """Raises OSError where nobody listens on a local socket: the SDK would leave its own open."""
    if os.name == "posix" and "unix://" in url:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(url.partition("unix://")[2])


class DockerRunner:
    """Opens sessions in single-use containers of the generic image, `spares` started ahead.

    A spare has run no code but the runtime's; it is handed one bundle and never used again. Use as
    an async context manager; leaving it removes every container it made, others' in `containers`
    too. `kept` are names of earlier images by their ids: bundles that were proved on one of them,
    and not on the present one, run on that.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        image: str,
        labels: Labels,
        *,
        brake: Brake | None = None,
        spares: int = 0,
        limits: Limits | None = None,
        runtime: str | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        self._kept = kept or {}
        self._client, self._layers = client, dict[str, str]()
        self._image, self._labels, self._runtime = image, labels, runtime
        self._brake = brake or Brake()
        self._wanted = spares
        self._limits = limits or Limits()
        self._spares: list[asyncio.Task[Attached]] = []
        self.containers = Containers(client.api)

    async def __aenter__(self) -> DockerRunner:
        self._replenish()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        for container in await asyncio.gather(*self._spares, return_exceptions=True):
            if isinstance(container, Attached):
                container.kill()
        self._spares.clear()
        await self.containers.close()

    async def drained(self) -> None:
        """Return when every container that was to be removed is gone."""
        await self.containers.drained()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle.

        Raises LoadFailed, SessionBroken, EngineUnavailable, BaseImageMissing, Frozen; where the
        bundle has packages and the engine lacks their image, also PackageUnusable.
        """
        self._brake.check()
        limits = limits or self._limits
        if bundle.packages:
            container = await self._started(limits, await self._layer(bundle))
        elif (base := self._kept.get(bundle.provenance.base_image)) is not None:
            container = await self._started(limits, base)
        else:
            container = await self._take(limits)
        session = PipeSession(bundle, broker, limits, container)
        container.bind(session)
        try:
            async with session.running(self._brake):
                yield session
        finally:
            await container.removed()

    async def _take(self, limits: Limits) -> Attached:
        if limits == self._limits and self._spares:
            spare = self._spares.pop(0)
            self._replenish()
            # The engine may have been away when the spare was started, or since.
            with contextlib.suppress(SandboxError):
                container = await spare
                if container.alive:
                    return container
        return await self._started(limits, self._image)

    async def _layer(self, bundle: Bundle) -> str:
        """The image of a bundle's packages, made where the engine has none."""
        digest = bundle.digest()
        if digest not in self._layers:
            self._layers[digest] = await asyncio.to_thread(
                dependency_layer, self._client, bundle, lambda step: None, self._image
            )
        return self._layers[digest]

    def _replenish(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._spares) < self._wanted and not self._brake.engaged:
            self._spares.append(loop.create_task(self._started(self._limits, self._image)))

    async def _started(self, limits: Limits, image: str) -> Attached:
        design = Design(image, self._labels.as_dict(), runtime=self._runtime)
        return await self.containers.start(design, limits)


def list_containers(client: docker.DockerClient, **labels: str) -> tuple[Mapping[str, Any], ...]:
    """The sandboxes with these `toolwright.*` labels, in any state. Raises EngineUnavailable."""
    wanted = [f"{LABEL}=sandbox", *(f"{LABEL}.{key}={value}" for key, value in labels.items())]
    try:
        return tuple(client.api.containers(all=True, filters={"label": wanted}))
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(reason(error)) from error


def kill_containers(client: docker.DockerClient, **labels: str) -> int:
    """Kill and remove the sandboxes with these labels; returns how many there were."""
    found = list_containers(client, **labels)
    with ThreadPoolExecutor(KILLERS) as threads:
        list(threads.map(lambda c: remove_container(client.api, c["Id"]), found))
    return len(found)


def kill_instance(instance: str) -> int:
    """Kill all sandboxes of an installation; 0 too where no engine answers: nothing runs then."""
    try:
        client = connect()
    except EngineUnavailable:
        return 0
    with contextlib.closing(client), contextlib.suppress(EngineUnavailable):
        return kill_containers(client, instance=instance)
    return 0


def is_local(client: docker.DockerClient) -> bool:
    """Whether the engine runs on this machine, and so sees its files."""
    return str(client.api.base_url).startswith(("http+docker://", "http+unix://", "npipe://"))
