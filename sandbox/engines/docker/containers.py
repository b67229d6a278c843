"""Docker containers: creation with all restrictions, attached streams, and removal."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, TypeVar

import docker
import docker.errors
import docker.types
import requests

from sandbox.errors import BaseImageMissing, EngineUnavailable, SandboxError, SessionBroken
from sandbox.offload import INLINE_SECONDS
from sandbox.session.interface import Limits
from sandbox.session.pipe import Listener

T = TypeVar("T")
FRAME_HEADER = 8
STDERR = 2
CONFLICT = 409
REMOVAL_SECONDS = 10
MAX_EARLY = 64 * 1024
SHARE = 0.5
"""Of the event loop's time, what the output of one container may take in the long run."""
CPU_PERIOD = 1_000_000
"""Microseconds in which a container may use its share of a CPU, the most there are
(https://docs.kernel.org/scheduler/sched-bwc.html). Of a shorter one little is left when an answer
is built, which then waits for the next.
"""
SCRATCH = "/tmp"  # nosec B108 # a container's own, alone in it
NOBODY = "65534:65534"
ENGINE_ERRORS = (docker.errors.DockerException, requests.RequestException, OSError)


@dataclass(frozen=True)
class Mount:
    """A directory or file of the host, mounted at the same path in the container."""

    path: str
    writable: bool = False


@dataclass(frozen=True)
class ContainerSpec:
    """The specification of a container, beside its limits. `profile` names a file of `images/`.

    `network` is `none`, or `container:ID` to share another container's network. `scratch` are tmpfs
    directories beside /tmp, each of the limits' size and `scratch_files` files. `hosts` are names
    and addresses for /etc/hosts. An empty `command` leaves the image's own.
    """

    image: str
    labels: Mapping[str, str]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: str = "none"
    profile: str = "seccomp.json"
    user: str = NOBODY
    scratch: tuple[str, ...] = ()
    scratch_files: int = 4096
    mounts: tuple[Mount, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    init: bool = False
    runtime: str | None = None


def create_container(
    api: docker.APIClient, design: ContainerSpec, limits: Limits
) -> tuple[str, socket.socket]:
    """Create a container and attach to it before it starts, so that no output is lost; returns its
    id and a non-blocking socket.

    Raises BaseImageMissing, SessionBroken or EngineUnavailable.
    """
    identity = ""
    try:
        made = api.create_container(
            design.image,
            entrypoint=list(design.entrypoint) or None,
            command=list(design.command) or None,
            stdin_open=True,
            labels=dict(design.labels),
            user=design.user,
            network_disabled=design.network == "none" and not design.hosts,
            environment=dict(design.environment),
            working_dir=design.directory or None,
            host_config=_build_host_config(api, design, limits),
            # The client's own settings name proxies, with their passwords.
            use_config_proxy=False,
        )
        identity = str(made["Id"])
        stream = api.attach_socket(
            identity, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        )
    except docker.errors.ImageNotFound as error:
        raise BaseImageMissing(design.image) from error
    except ENGINE_ERRORS as error:
        if identity:
            remove_container(api, identity)
        raise translate_error("the engine made no container", error) from error
    # The SDK wraps the socket and closes it with the response; a duplicate stays ours.
    connection = getattr(stream, "_sock", stream)
    owned = socket.socket(fileno=os.dup(connection.fileno()))
    owned.setblocking(False)
    stream.close()
    connection.close()
    return identity, owned


def _build_host_config(
    api: docker.APIClient, design: ContainerSpec, limits: Limits
) -> dict[str, Any]:
    memory = limits.memory_mb * 1024 * 1024
    room = f"size={limits.scratch_mb}m,nr_inodes={design.scratch_files}"
    scratch = f"{room},noexec,nosuid,nodev,mode=1777"
    config: dict[str, Any] = api.create_host_config(
        network_mode=design.network,
        read_only=True,
        tmpfs=dict.fromkeys((SCRATCH, *design.scratch), scratch),
        ipc_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", f"seccomp={load_seccomp_profile(design.profile)}"],
        pids_limit=limits.pids,
        mem_limit=memory,
        memswap_limit=memory,
        cpu_period=CPU_PERIOD,
        cpu_quota=int(limits.cpus * CPU_PERIOD),
        ulimits=[
            docker.types.Ulimit(name="nofile", soft=limits.files, hard=limits.files),
            docker.types.Ulimit(name="core", soft=0, hard=0),
        ],
        oom_score_adj=500,
        log_config=docker.types.LogConfig(type="none"),
        auto_remove=True,
        init=design.init,
        runtime=design.runtime,
        mounts=[
            docker.types.Mount(mount.path, mount.path, type="bind", read_only=not mount.writable)
            for mount in design.mounts
        ],
        extra_hosts=dict(design.hosts),
        sysctls=dict(design.sysctls),
    )
    return config


class AttachedContainer(asyncio.Protocol):
    """The attached stream of one container: Docker's multiplexed frames (Engine API, "attach").

    What a container says before it has a listener is kept for that one; more than `MAX_EARLY` bytes
    end it. One whose output takes more than its share of the event loop's time, since it writes
    without end, is not read for a while.
    """

    def __init__(self, identity: str, remove: Callable[[str], asyncio.Future[None]]) -> None:
        self.identity, self._schedule_removal = identity, remove
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._listener: Listener | None = None
        self._removal: asyncio.Future[None] | None = None
        self._lost = False
        self._spent = self._counted = 0.0
        """Seconds of the loop's time that its output took, and up to when they were set off
        against the time that passed."""

    @property
    def alive(self) -> bool:
        return not self._lost and self._removal is None

    @property
    def is_read(self) -> bool:
        """Whether its output is read at this moment."""
        return self._transport is not None and self._transport.is_reading()

    def bind_listener(self, listener: Listener) -> None:
        self._listener = listener
        del self._buffer[: self._deliver_frames(listener, bytes(self._buffer))]
        if not self.alive:
            listener.end()

    def write(self, data: bytes) -> None:
        if self._transport and not self._lost:
            self._transport.write(data)

    def count_unread(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport and self.alive else 0

    def kill(self) -> None:
        if self._removal is None:
            if self._transport:
                # Not `close`, which keeps what nobody will read.
                self._transport.abort()
            self._removal = self._schedule_removal(self.identity)

    async def kill_and_wait(self) -> None:
        self.kill()
        if self._removal:
            await asyncio.shield(self._removal)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._listener:
            self._listener.end()

    def data_received(self, data: bytes) -> None:
        begun = time.thread_time()
        if self._listener is not None and not self._buffer:
            self._buffer += data[self._deliver_frames(self._listener, data) :]
        else:
            self._buffer += data
            if self._listener is not None:
                del self._buffer[: self._deliver_frames(self._listener, bytes(self._buffer))]
            elif len(self._buffer) > MAX_EARLY:
                self.kill()
        spent = time.thread_time() - begun
        self._spent, before = self._spent + spent, self._spent
        if self._spent > INLINE_SECONDS:
            now = time.monotonic()
            self._spent = max(0.0, before - SHARE * (now - self._counted)) + spent
            self._counted = now
            if self._spent > INLINE_SECONDS and self._transport is not None:
                self._transport.pause_reading()
                # Does nothing where it was closed meanwhile.
                resume, seconds = self._transport.resume_reading, self._spent / SHARE
                asyncio.get_running_loop().call_later(seconds, resume)

    def _deliver_frames(self, listener: Listener, received: bytes) -> int:
        """Deliver the frames that are whole; how many bytes they take."""
        at = 0
        while len(received) >= at + FRAME_HEADER:
            begin = at + FRAME_HEADER
            end = begin + int.from_bytes(received[at + 4 : begin], "big")
            if len(received) < end:
                break
            stream, at = received[at], end
            if stream == STDERR:
                listener.feed_stderr(received[begin:end])
            else:
                listener.feed(received[begin:end])
        return at


class ContainerManager:
    """Starts containers and removes them, the engine's slow calls in threads. Close it at the end.

    Not thread-safe: one event loop.
    """

    def __init__(self, api: docker.APIClient) -> None:
        self._api = api
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="docker")
        self._removals: set[asyncio.Future[None]] = set()
        self._unwanted: set[asyncio.Future[tuple[str, socket.socket]]] = set()
        """Creations under way whose containers are removed when they are there."""

    async def start_container(self, design: ContainerSpec, limits: Limits) -> AttachedContainer:
        """Start a container. Raises BaseImageMissing, SessionBroken or EngineUnavailable."""
        creation = asyncio.ensure_future(
            self._run_in_thread(create_container, self._api, design, limits)
        )
        try:
            identity, connection = await asyncio.shield(creation)
        except asyncio.CancelledError:
            self._unwanted.add(creation)
            creation.add_done_callback(self._remove_unwanted)
            raise
        container = AttachedContainer(identity, self._schedule_removal)
        started = False
        try:
            await asyncio.get_running_loop().create_connection(lambda: container, sock=connection)
            await self._run_in_thread(self._api.start, identity)
            started = True
        except ENGINE_ERRORS as error:
            raise translate_error("the container did not start", error) from error
        finally:
            if not started:
                container.kill()
        return container

    async def wait_drained(self) -> None:
        """Wait until all scheduled removals are done, also of what is being created."""
        while self._removals or self._unwanted:
            pending: set[asyncio.Future[Any]] = {*self._removals, *self._unwanted}
            await asyncio.wait(pending)

    async def close(self) -> None:
        await self.wait_drained()
        self._threads.shutdown(wait=False)

    def _remove_unwanted(self, creation: asyncio.Future[tuple[str, socket.socket]]) -> None:
        """Remove a container whose `start` was cancelled during its creation."""
        self._unwanted.discard(creation)
        if not creation.cancelled() and creation.exception() is None:
            identity, connection = creation.result()
            connection.close()
            self._schedule_removal(identity)

    def _schedule_removal(self, identity: str) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        removal = loop.run_in_executor(self._threads, remove_container, self._api, identity)
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        return removal

    async def _run_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)


def remove_container(api: docker.APIClient, identity: str, seconds: int = REMOVAL_SECONDS) -> None:
    """Kill and remove a container and wait until it is gone; a missing one is no error.

    Nor is an engine that does not answer: the next start removes what is left by its label. If
    somebody else is at removing it, that is waited for so many seconds.
    """
    with contextlib.suppress(*ENGINE_ERRORS):
        try:
            api.remove_container(identity, force=True)
        except docker.errors.APIError as error:
            if error.status_code != CONFLICT:
                raise
            # It ended by itself, and the engine is at removing it.
            if seconds:
                api.wait(identity, timeout=seconds, condition="removed")


def translate_error(what: str, error: Exception) -> SandboxError:
    """SessionBroken for a refusal of the engine, EngineUnavailable if it does not answer."""
    if isinstance(error, docker.errors.DockerException):
        return SessionBroken(f"{what}: {str(error)[:300]}")
    return EngineUnavailable(find_reason(error))


def find_reason(error: BaseException) -> str:
    """The message of the innermost cause: the client's own wrappers say nothing to a person."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    # Without Python's "[Errno 2]".
    return str(getattr(error, "strerror", None) or error)[:200]


@functools.cache
def load_seccomp_profile(name: str = "seccomp.json") -> str:
    """Load a seccomp profile of `images/` as the engine's API takes it: compact JSON."""
    text = resources.files("images").joinpath(name).read_text()
    return json.dumps(json.loads(text), separators=(",", ":"))
