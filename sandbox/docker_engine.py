"""The Docker engine: every bundle in a container whose only connection is its stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeVar

import docker
import docker.errors
import docker.types
import requests

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.errors import BaseImageMissing, EngineUnavailable, SandboxError, SessionBroken
from sandbox.runner import Limits, Session
from sandbox.session import PipeSession

T = TypeVar("T")
Client = docker.DockerClient
FRAME_HEADER = 8
STDERR = 2
LABEL = "toolwright"
SCRATCH = "/tmp"
ENGINE_ERRORS = (docker.errors.DockerException, requests.RequestException, OSError)


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
        client = docker.from_env(timeout=timeout)
        client.ping()
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(_reason(error)) from error
    return client


def _failed(what: str, error: Exception) -> SandboxError:
    """The engine's refusal to do something, or that there is none any more."""
    if isinstance(error, docker.errors.DockerException):
        return SessionBroken(f"{what}: {str(error)[:300]}")
    return EngineUnavailable(_reason(error))


def _reason(error: BaseException) -> str:
    """The innermost cause: the client wraps what the system said in what only it understands."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return str(error)[:200]


class DockerRunner:
    """Opens sessions in single-use containers of the generic image, `spares` started ahead.

    A spare has run no code but the runtime's; it is handed one bundle and never used again. Use as
    an async context manager; leaving it removes every container it made.
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
    ) -> None:
        self._api = client.api
        self._image, self._labels, self._runtime = image, labels, runtime
        self._brake = brake or Brake()
        self._wanted = spares
        self._limits = limits or Limits()
        self._spares: list[asyncio.Task[_Container]] = []
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="docker")
        self._removals: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> DockerRunner:
        self._replenish()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        for container in await asyncio.gather(*self._spares, return_exceptions=True):
            if isinstance(container, _Container):
                container.kill()
        self._spares.clear()
        await self.drained()
        self._threads.shutdown(wait=False)

    async def drained(self) -> None:
        """Return when every container that was to be removed is gone."""
        while self._removals:
            await asyncio.gather(*self._removals)

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle.

        Raises LoadFailed, SessionBroken, EngineUnavailable, BaseImageMissing, Frozen.
        """
        self._brake.check()
        container = await self._take(limits or self._limits)
        session = PipeSession(bundle, broker, limits or self._limits, container)
        container.bind(session)
        try:
            with self._brake.on_engage(session.freeze):
                self._brake.check()
                await session.start()
                yield session
        finally:
            session.end()
            await container.removed()

    async def _take(self, limits: Limits) -> _Container:
        if limits == self._limits and self._spares:
            spare = self._spares.pop(0)
            self._replenish()
            # The engine may have been away when the spare was started, or since.
            with contextlib.suppress(SandboxError):
                container = await spare
                if container.alive:
                    return container
        return await self._started(limits)

    def _replenish(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._spares) < self._wanted and not self._brake.engaged:
            self._spares.append(loop.create_task(self._started(self._limits)))

    async def _started(self, limits: Limits) -> _Container:
        creation = asyncio.ensure_future(self._in_thread(self._create, limits))
        try:
            identity, connection = await asyncio.shield(creation)
        except asyncio.CancelledError:
            creation.add_done_callback(self._unwanted)
            raise
        container = _Container(identity, self._remove)
        started = False
        try:
            await asyncio.get_running_loop().create_connection(lambda: container, sock=connection)
            await self._in_thread(self._api.start, identity)
            started = True
        except ENGINE_ERRORS as error:
            raise _failed("the container did not start", error) from error
        finally:
            if not started:
                container.kill()
        return container

    def _unwanted(self, creation: asyncio.Future[tuple[str, socket.socket]]) -> None:
        """Remove a container that nobody waits for any more."""
        if not creation.cancelled() and creation.exception() is None:
            identity, connection = creation.result()
            connection.close()
            self._remove(identity)

    def _create(self, limits: Limits) -> tuple[str, socket.socket]:
        """Create a container and attach to it before it starts, so that no output is lost."""
        identity = ""
        try:
            made = self._api.create_container(
                self._image,
                stdin_open=True,
                labels=self._labels.as_dict(),
                user="65534:65534",
                network_disabled=True,
                environment={},
                host_config=self._host_config(limits),
            )
            identity = str(made["Id"])
            stream = self._api.attach_socket(
                identity, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        except docker.errors.ImageNotFound as error:
            raise BaseImageMissing(self._image) from error
        except ENGINE_ERRORS as error:
            if identity:
                remove_container(self._api, identity)
            raise _failed("the engine made no container", error) from error
        connection = getattr(stream, "_sock", stream)
        owned = socket.socket(fileno=os.dup(connection.fileno()))
        owned.setblocking(False)
        stream.close()
        connection.close()
        return identity, owned

    def _host_config(self, limits: Limits) -> dict[str, Any]:
        memory = limits.memory_mb * 1024 * 1024
        return self._api.create_host_config(
            network_mode="none",
            read_only=True,
            tmpfs={
                SCRATCH: f"size={limits.scratch_mb}m,nr_inodes=4096,noexec,nosuid,nodev,mode=1777"
            },
            ipc_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges", f"seccomp={seccomp_profile()}"],
            pids_limit=limits.pids,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=int(limits.cpus * 1e9),
            ulimits=[
                docker.types.Ulimit(name="nofile", soft=limits.files, hard=limits.files),
                docker.types.Ulimit(name="core", soft=0, hard=0),
            ],
            oom_score_adj=500,
            log_config=docker.types.LogConfig(type="none"),
            auto_remove=True,
            init=False,
            runtime=self._runtime,
        )

    def _remove(self, identity: str) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        removal = loop.run_in_executor(self._threads, remove_container, self._api, identity)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return removal

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)


class _Container(asyncio.Protocol):
    """The attached stream of one container: Docker's multiplexed frames (Engine API, "attach")."""

    def __init__(self, identity: str, remove: Callable[[str], asyncio.Future[None]]) -> None:
        self._identity, self._remove = identity, remove
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._session: PipeSession | None = None
        self._removal: asyncio.Future[None] | None = None
        self._lost = False

    @property
    def alive(self) -> bool:
        return not self._lost and self._removal is None

    def bind(self, session: PipeSession) -> None:
        self._session = session
        if not self.alive:
            session.end()

    def write(self, data: bytes) -> None:
        if self._transport and not self._lost:
            self._transport.write(data)

    def kill(self) -> None:
        if self._removal is None:
            if self._transport:
                self._transport.close()
            self._removal = self._remove(self._identity)

    async def removed(self) -> None:
        self.kill()
        if self._removal:
            await asyncio.shield(self._removal)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._session:
            self._session.end()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= FRAME_HEADER:
            end = FRAME_HEADER + int.from_bytes(self._buffer[4:FRAME_HEADER], "big")
            if len(self._buffer) < end:
                return
            stream, content = self._buffer[0], bytes(self._buffer[FRAME_HEADER:end])
            del self._buffer[:end]
            if self._session and stream == STDERR:
                self._session.feed_stderr(content)
            elif self._session:
                self._session.feed(content)


def remove_container(api: docker.APIClient, identity: str) -> None:
    """Kill and remove a container; one that is gone or going already is no error.

    Nor is an engine that is gone: it has no sandbox left, or the next start sweeps it away.
    """
    with contextlib.suppress(*ENGINE_ERRORS):
        api.remove_container(identity, force=True)


def list_containers(client: docker.DockerClient, **labels: str) -> tuple[Mapping[str, Any], ...]:
    """The sandboxes with these `toolwright.*` labels, in any state. Raises EngineUnavailable."""
    wanted = [f"{LABEL}=sandbox", *(f"{LABEL}.{key}={value}" for key, value in labels.items())]
    try:
        return tuple(client.api.containers(all=True, filters={"label": wanted}))
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(_reason(error)) from error


def kill_containers(client: docker.DockerClient, **labels: str) -> int:
    """Kill and remove the sandboxes with these labels; returns how many there were."""
    found = list_containers(client, **labels)
    with ThreadPoolExecutor(8) as threads:
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


@functools.cache
def seccomp_profile() -> str:
    """The profile as the engine's API wants it: compact JSON."""
    text = resources.files("images").joinpath("seccomp.json").read_text()
    return json.dumps(json.loads(text), separators=(",", ":"))
