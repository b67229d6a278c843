"""The sandbox's defences as a few functions, for tests that attack them from outside.

    admit(source, permissions)                  may this code be a forged server's?
    unpack(archive, directory)                  unpack an archive (`sandbox.packages.archive`)
    async with opened_cage() as cage:
        async with cage.server(program, …) as server:
            await server.initialize(); await server.list(); await server.call(tool, arguments)
            await server.stop()
        cage.leftovers()                        what is still there

Nothing in the product calls this module; everything that it calls is the product's own code.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import docker

from sandbox.broker.addresses import Resolver, resolve_by_system
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.launch import Launch
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.bundle.permissions import Permission, parse_permission
from sandbox.bundle.report import Finding
from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.engines.docker.containers import ContainerManager
from sandbox.engines.docker.engine import ContainerLabels, connect_engine, list_containers
from sandbox.engines.docker.image import build_base
from sandbox.killswitch import KillSwitch
from sandbox.packages.archive import ArchiveBounds as Bounds
from sandbox.packages.archive import unpack_archive as unpack
from sandbox.session.interface import Limits, Outcome, Session
from sandbox.stages.static.stage import prove_static
from sandbox.thirdparty.egress import EgressProxy, Tunnel
from sandbox.thirdparty.environment import LIMITS, LaunchEnvironment
from sandbox.thirdparty.runner import ThirdPartyRunner
from sandbox.thirdparty.tools import ToolListing, read_listing
from sandbox.wire.policy import Origin, Policy

INSTANCE = "cage"

__all__ = ["Bounds", "Cage", "CagedServer", "admit", "opened_cage", "unpack"]


def admit(
    source: str,
    permissions: Iterable[str] = (),
    tools: Iterable[ToolDefinition] | None = None,
) -> tuple[Finding, ...]:
    """Findings of the static stage in a forged server's code; empty if the code is admitted.

    `permissions` are those that the bundle declares, `tools` the definitions that the code must
    match. Without `tools`, findings of the rule `mismatches` are left out.
    """
    bundle = Bundle(
        name="candidate",
        version=1,
        title="candidate",
        base_url="",
        source_code=source,
        tools=tuple(tools or ()),
        provenance=Provenance("outside", "0" * 64, author="client"),
        permissions=tuple(permissions),
    )
    found = prove_static(bundle).findings
    return found if tools is not None else tuple(f for f in found if f.rule != "mismatches")


@dataclass
class CagedServer:
    """One third-party server in its container; `tunnels` lists the connections it tried to make."""

    _runner: ThirdPartyRunner
    _bundle: Bundle
    _limits: Limits
    tunnels: list[Tunnel]
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _session: Session | None = None
    _listing: ToolListing | None = None

    async def initialize(self) -> None:
        """Start the container and the MCP session. Raises SessionBroken and other SandboxErrors."""
        nowhere = await self._stack.enter_async_context(LiveHttp())
        opened = self._runner.open(self._bundle, Broker(Policy(()), nowhere), self._limits)
        self._session = await self._stack.enter_async_context(opened)

    async def list(self) -> ToolListing:
        """List its tools, sanitized, and pin their definitions for the rest of the session."""
        listed = await self._get_session().list_tools()
        self._listing = read_listing(listed)
        launch = self._bundle.launch
        assert launch is not None
        launch = replace(launch, tools=self._listing.remote, pins=self._listing.pins)
        self._bundle = replace(self._bundle, tools=self._listing.tools, launch=launch)
        self._get_session().bundle = self._bundle  # type: ignore[attr-defined]
        return self._listing

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, seconds: float | None = None
    ) -> Outcome:
        """Call a tool by the server's name of it. Raises CallTimedOut or SessionBroken."""
        if self._listing is None:
            await self.list()
        assert self._listing is not None
        names = {remote.original: remote.name for remote in self._listing.remote}
        return await self._get_session().call(names.get(tool, tool), arguments or {}, seconds)

    async def stop(self) -> None:
        """Kill it; returns when the engine has removed it. Idempotent."""
        self._session = None
        await self._stack.aclose()

    def _get_session(self) -> Session:
        if self._session is None:
            raise RuntimeError("initialize() comes first")
        return self._session


@dataclass
class Cage:
    """A Docker engine that runs third-party servers. `brake.engage()` stops all of them."""

    client: docker.DockerClient
    image: str
    process: str
    kill_switch: KillSwitch
    _containers: ContainerManager

    @asynccontextmanager
    async def server(
        self,
        program: str = "",
        *,
        image: str = "",
        entrypoint: Iterable[str] = (),
        command: Iterable[str] = (),
        permissions: Iterable[str] = (),
        vault: Mapping[str, str] | None = None,
        resolve: Resolver = resolve_by_system,
        private: str = "",
        limits: Limits | None = None,
    ) -> AsyncIterator[CagedServer]:
        """A server, not yet started: a Python `program` that imports the standard library alone, or
        an `image`, run by the image's entry point and command unless others are given.

        `permissions` are declared and granted: `network:HOST[:PORT]`, `env:NAME` (its value is the
        vault's entry of that name), `fs:PATH:ro|rw`. `resolve` stands for DNS; `private` is the one
        `HOST:PORT` whose address may be private. Raises ValueError for what is no permission.
        """
        allowed = tuple(map(parse_permission, permissions))
        tunnels: list[Tunnel] = []
        async with AsyncExitStack() as stack:
            outfit = await self._build_environment(
                stack, allowed, vault or {}, resolve, private, tunnels
            )
            labels = ContainerLabels(INSTANCE, self.process).to_dict()
            runner = ThirdPartyRunner(
                self._containers, self.image, labels, lambda _: outfit, kill_switch=self.kill_switch
            )
            way = Launch("image", image=image) if image else Launch("script")
            bundle = Bundle(
                name="caged",
                version=1,
                title="caged",
                base_url="",
                source_code=program,
                tools=(),
                provenance=Provenance("outside", "0" * 64, author="third_party"),
                permissions=tuple(map(str, allowed)),
                launch=replace(way, entrypoint=tuple(entrypoint), command=tuple(command)),
            )
            server = CagedServer(runner, bundle, limits or LIMITS, tunnels)
            stack.push_async_callback(server.stop)
            yield server

    def leftovers(self) -> tuple[str, ...]:
        """Ids of the containers started here that the engine still lists, in any state."""
        return tuple(str(c["Id"]) for c in list_containers(self.client, process=self.process))

    async def _build_environment(
        self,
        stack: AsyncExitStack,
        allowed: tuple[Permission, ...],
        vault: Mapping[str, str],
        resolve: Resolver,
        private: str,
        tunnels: list[Tunnel],
    ) -> LaunchEnvironment:
        targets = frozenset(each.target for each in allowed if each.kind == "network")
        granted = parse_target(private) if private else None
        local = frozenset({granted} if granted else ())
        way_out = None
        if targets:
            origins = frozenset(Origin("http", each.host, each.port) for each in local)
            upstream = await stack.enter_async_context(LiveHttp(origins, resolve=resolve))
            way_out = EgressProxy(
                targets,
                upstream,
                private=frozenset[NetworkTarget](local),
                told=tunnels.append,
                kill_switch=self.kill_switch,
                resolve=resolve,
            )
        names = [each.name for each in allowed if each.kind == "env"]
        return LaunchEnvironment(
            environment={name: vault[name] for name in names if name in vault},
            paths=tuple(each for each in allowed if each.kind == "fs"),
            exit=way_out,
        )


@asynccontextmanager
async def opened_cage() -> AsyncIterator[Cage]:
    """Connect to the Docker engine of the environment and build the base image if it is missing.

    Raises EngineUnavailable or BaseImageBuildFailed. All containers are removed on exit.
    """
    client = await asyncio.to_thread(connect_engine)
    with contextlib.closing(client):
        image = await asyncio.to_thread(build_base, client, lambda line: None)
        containers = ContainerManager(client.api)
        try:
            yield Cage(client, image.reference, uuid.uuid4().hex, KillSwitch(), containers)
        finally:
            await containers.close()
