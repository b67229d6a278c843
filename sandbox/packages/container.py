"""Containers that npm and pip run in: no home, settings, secrets or file of this machine, no other
process than the client's own, and no way out but to the hosts of a registry.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from sandbox.broker.addresses import resolve_by_system
from sandbox.broker.live import LiveHttp
from sandbox.bundle.target import NetworkTarget
from sandbox.engines.docker.containers import ContainerManager, ContainerSpec
from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.image import build_base
from sandbox.errors import PackageUnusable, UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.packages.archive import TREE_BOUNDS, read_header, unpack_tree
from sandbox.packages.registries import MORE_HOSTS, Registry, is_ordinary_address
from sandbox.session.interface import Limits
from sandbox.thirdparty.egress import Connection, EgressCaps, EgressProxy, Tunnel
from sandbox.thirdparty.runner import PROXY_URL, start_egress
from sandbox.wire.policy import Origin

WORK, CERTIFICATES = "/work", "ca.pem"
PROFILE = "seccomp-fetch.json"
SECONDS = 600.0
MAX_STATUS = 16 * 1024 * 1024
MAX_TOLD = 2000
MAX_STREAM = TREE_BOUNDS.total_bytes + MAX_STATUS
CPUS = 2.0
LIMITS = Limits(memory_mb=3072, pids=128, files=4096, scratch_mb=2048)
EXIT_LIMITS = Limits(memory_mb=64, cpus=1.0, pids=16, scratch_mb=1, start_seconds=120.0)
CAPS = EgressCaps(
    head_seconds=60.0,
    connect_seconds=30.0,
    tunnel_bytes=TREE_BOUNDS.total_bytes,
    session_bytes=2 * TREE_BOUNDS.total_bytes,
    tunnels=20_000,
)
MAX_PLAIN_BYTES = 256 * 1024 * 1024
SETTINGS: Mapping[str, str] = {
    "HOME": f"{WORK}/home",
    "TMPDIR": f"{WORK}/scratch",
    "PYTHONDONTWRITEBYTECODE": "1",
    "UV_USE_IO_URING": "0",
    "PIP_CONFIG_FILE": "/dev/null",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), PROXY_URL),
}
LABELS: Mapping[str, str] = {"toolwright": "sandbox", "toolwright.instance": ""}


@dataclass(frozen=True)
class FetchJob:
    """What a fetching container does, in an `image`: `order` is its job (`images/fetch/`), `files`
    what it is given. It reaches the hosts of `registry` alone.
    """

    image: str
    registry: Registry
    order: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)
    node: bool = False


@dataclass(frozen=True)
class _End:
    """How a container ended: connections that were refused, and why nothing came of it."""

    refused: Sequence[Tunnel]
    broken: str


def run_fetch(
    client: Client, job: FetchJob, directory: Path, labels: Mapping[str, str] = LABELS
) -> str:
    """Run a job in a container, and write what it fetched into an empty directory; returns pip's
    report.

    Takes a thread of its own: call it from no event loop. Raises PackageUnusable, ArchiveRefused,
    EngineUnavailable, BaseImageBuildFailed.
    """
    base = build_base(client, lambda line: None).reference
    with TemporaryFile() as stream:
        ended = asyncio.run(_receive(client, base, job, labels, stream))
        stream.seek(0)
        if ended.broken:
            raise PackageUnusable(f"the fetching container ended early: {ended.broken}")
        status = read_header(stream, MAX_STATUS)
        _check_status(status, ended.refused)
        unpack_tree(stream, directory)
    return str(status.get("report", ""))


async def _receive(
    client: Client, base: str, job: FetchJob, labels: Mapping[str, str], stream: IO[bytes]
) -> _End:
    """Write what the container sends to `stream`."""
    tunnels: list[Tunnel] = []
    limits = replace(LIMITS, cpus=min(CPUS, float(client.info().get("NCPU") or 1)))
    containers = ContainerManager(client.api)
    try:
        async with AsyncExitStack() as stack:
            exit = await _open_exit(stack, job.registry, tunnels)
            network = await stack.enter_async_context(
                start_egress(
                    containers,
                    base,
                    labels,
                    exit,
                    kill_switch=KillSwitch(),
                    limits=EXIT_LIMITS,
                )
            )
            container = await containers.start_container(_build_spec(job, network, labels), limits)
            stack.push_async_callback(container.kill_and_wait)
            receiver = _Receiver(stream)
            container.bind_listener(receiver)
            for part in _encode_job(job):
                container.write(part)
            if not await receiver.wait_end(SECONDS):
                raise PackageUnusable(f"fetching took longer than {SECONDS:g} s. Try again.")
    finally:
        await containers.close()
    return _End([tunnel for tunnel in tunnels if tunnel.refusal], receiver.find_problem())


async def _open_exit(
    stack: AsyncExitStack, registry: Registry, tunnels: list[Tunnel]
) -> EgressProxy:
    origins = frozenset(Origin("http", each.host, each.port) for each in registry.plain)
    upstream = await stack.enter_async_context(LiveHttp(origins, response_bytes=MAX_PLAIN_BYTES))

    async def resolve(host: str, port: int) -> list[str]:
        found = await resolve_by_system(host, port)
        if (host, port) in chosen or all(map(is_ordinary_address, found)):
            return found
        raise UpstreamUnreachable(f"{host} is at {', '.join(found)[:200]}, which is no registry's")

    async def connect(target: NetworkTarget) -> Connection | None:
        proxy = registry.proxy
        return await proxy.connect(target) if proxy and proxy.serves(target.host) else None

    chosen = {(each.host, each.port) for each in registry.chosen}
    return EgressProxy(
        registry.hosts,
        upstream,
        private=registry.hosts,
        told=tunnels.append,
        caps=CAPS,
        resolve=resolve,
        connect=connect,
    )


def _build_spec(job: FetchJob, network: str, labels: Mapping[str, str]) -> ContainerSpec:
    start = ("node", "-e") if job.node else ("python3", "-I", "-B", "-c")
    return ContainerSpec(
        image=job.image,
        labels=labels,
        entrypoint=start[:1],
        command=(*start[1:], _load_driver(job.node)),
        environment=SETTINGS,
        network=network,
        profile=PROFILE,
        scratch=(WORK,),
        scratch_files=2 * TREE_BOUNDS.files,
    )


def _load_driver(node: bool) -> str:
    name = "fetcher.js" if node else "fetcher.py"
    return resources.files("images").joinpath("fetch", name).read_text()


def _encode_job(job: FetchJob) -> Sequence[bytes]:
    files = dict(job.files)
    if job.registry.certificates:
        files[CERTIFICATES] = job.registry.certificates
    listed = [(name, len(content)) for name, content in files.items()]
    order = json.dumps({**job.order, "files": listed}).encode()
    return len(order).to_bytes(4, "big"), order, *files.values()


class _Receiver:
    """Takes what a container sends, up to a bound."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._room = stream, MAX_STREAM
        self._ended = asyncio.Event()
        self._told = b""

    def find_problem(self) -> str:
        """Why nothing of what was sent can be used; empty if it can."""
        if self._room < 0:
            return f"it sent more than {MAX_STREAM} bytes"
        if self._room == MAX_STREAM:
            return self._told.decode(errors="replace").strip() or "it sent nothing"
        return ""

    async def wait_end(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def feed(self, chunk: bytes) -> None:
        self._room -= len(chunk)
        if self._room < 0:
            self.end()
        elif not self._ended.is_set():
            self._stream.write(chunk)

    def feed_stderr(self, chunk: bytes) -> None:
        self._told = (self._told + chunk)[-MAX_TOLD:]

    def end(self, reason: Exception | None = None) -> None:
        self._ended.set()


def _check_status(status: Mapping[str, Any], refused: Sequence[Tunnel]) -> None:
    """Raises PackageUnusable where the client failed, or met what it may not take."""
    wanted = [str(each)[:200] for each in status.get("refused") or ()][:5]
    if wanted:
        raise PackageUnusable(
            f"it needs what is not in the registry: {'; '.join(wanted)}. Packages are taken from "
            "the registry alone, by name and version: none from git, a URL or a path."
        )
    if status.get("code") == 0:
        return
    told = str(status.get("output") or "the container ended early").strip()[-MAX_TOLD:]
    hosts = sorted({f"{each.host}:{each.port}" for each in refused if each.refusal == "refused"})
    if hosts:
        told += (
            f"\nIt asked for {', '.join(hosts)[:300]}, which is no host of the registry. If it is "
            f"one of yours, name it in {MORE_HOSTS} (HOST:PORT, …) and try again."
        )
    raise PackageUnusable(f"the package could not be fetched:\n{told}")
