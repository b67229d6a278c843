"""The cage as a few functions, for whoever wants to attack it from outside.

    admit(source, permissions)                  may this code be a forged server's?
    unpack(archive, directory)                  what becomes of an archive (`sandbox.archive`)
    async with opened_cage() as cage:
        async with cage.server(program, …) as server:
            await server.initialize(); await server.list(); await server.call(tool, arguments)
            await server.stop()
        cage.leftovers()                        what is still there

Nothing here is needed to run Toolwright; all of it is what runs in Toolwright.
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

from sandbox.addresses import Resolver, system_resolver
from sandbox.archive import Bounds as Bounds
from sandbox.archive import unpack as unpack
from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle, Provenance, ToolDefinition
from sandbox.containers import Containers
from sandbox.docker_engine import Labels, connect, list_containers
from sandbox.egress import Exit, Tunnel
from sandbox.image import build_base
from sandbox.launch import Launch
from sandbox.livehttp import LiveHttp
from sandbox.outfit import LIMITS, Outfit
from sandbox.permissions import Permission, parse_permission
from sandbox.policy import Origin, Policy
from sandbox.remotetools import Listing, read_listing
from sandbox.report import Finding
from sandbox.runner import Limits, Outcome, Session
from sandbox.static.stage import prove_static
from sandbox.target import Target, parse_target
from sandbox.thirdparty import ThirdPartyRunner

INSTANCE = "cage"


def admit(
    source: str,
    permissions: Iterable[str] = (),
    tools: Iterable[ToolDefinition] | None = None,
) -> tuple[Finding, ...]:
    """What the static gate finds in the code of a forged server; nothing where it is admitted.

    `permissions` are what its bundle declares, `tools` the definitions that the code must match;
    where they are not given, the code is judged by itself.
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
    """One third-party server in its cage; `tunnels` are the connections it made or wanted."""

    _runner: ThirdPartyRunner
    _bundle: Bundle
    _limits: Limits
    tunnels: list[Tunnel]
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _session: Session | None = None
    _listing: Listing | None = None

    async def initialize(self) -> None:
        """Start the container and shake hands. Raises SessionBroken and other SandboxErrors."""
        nowhere = await self._stack.enter_async_context(LiveHttp())
        opened = self._runner.open(self._bundle, Broker(Policy(()), nowhere), self._limits)
        self._session = await self._stack.enter_async_context(opened)

    async def list(self) -> Listing:
        """What it lists, read as hostile text. From then on its definitions are pinned."""
        listed = await self._running().list_tools()
        self._listing = read_listing(listed)
        launch = self._bundle.launch
        assert launch is not None
        launch = replace(launch, tools=self._listing.remote, pins=self._listing.pins)
        self._bundle = replace(self._bundle, tools=self._listing.tools, launch=launch)
        self._running().bundle = self._bundle  # type: ignore[attr-defined]
        return self._listing

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, seconds: float | None = None
    ) -> Outcome:
        """Call a tool by the server's name of it. Raises CallTimedOut or SessionBroken."""
        if self._listing is None:
            await self.list()
        assert self._listing is not None
        names = {remote.original: remote.name for remote in self._listing.remote}
        return await self._running().call(names.get(tool, tool), arguments or {}, seconds)

    async def stop(self) -> None:
        """Kill it; returns when the engine has removed it. Idempotent."""
        self._session = None
        await self._stack.aclose()

    def _running(self) -> Session:
        if self._session is None:
            raise RuntimeError("initialize() comes first")
        return self._session


@dataclass
class Cage:
    """An engine's containers for third-party servers. `brake.engage()` stops all of them."""

    client: docker.DockerClient
    image: str
    process: str
    brake: Brake
    _containers: Containers

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
        resolve: Resolver = system_resolver,
        private: str = "",
        limits: Limits | None = None,
    ) -> AsyncIterator[CagedServer]:
        """A server, not yet started: a Python `program` of the standard library, or an `image`,
        with its own entry point and command where none are given.

        `permissions` are declared and granted: `network:HOST[:PORT]`, `env:NAME` (its value is the
        vault's entry of that name), `fs:PATH:ro|rw`. `resolve` stands for DNS; `private` is the one
        `HOST:PORT` whose address may be private. Raises ValueError for what is no permission.
        """
        allowed = tuple(map(parse_permission, permissions))
        tunnels: list[Tunnel] = []
        async with AsyncExitStack() as stack:
            outfit = await self._outfit(stack, allowed, vault or {}, resolve, private, tunnels)
            labels = Labels(INSTANCE, self.process).as_dict()
            runner = ThirdPartyRunner(
                self._containers, self.image, labels, lambda _: outfit, brake=self.brake
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
        """The ids of this cage's containers that the engine still has, in any state."""
        return tuple(str(c["Id"]) for c in list_containers(self.client, process=self.process))

    async def _outfit(
        self,
        stack: AsyncExitStack,
        allowed: tuple[Permission, ...],
        vault: Mapping[str, str],
        resolve: Resolver,
        private: str,
        tunnels: list[Tunnel],
    ) -> Outfit:
        targets = frozenset(each.target for each in allowed if each.kind == "network")
        granted = parse_target(private) if private else None
        local = frozenset({granted} if granted else ())
        way_out = None
        if targets:
            origins = frozenset(Origin("http", each.host, each.port) for each in local)
            upstream = await stack.enter_async_context(LiveHttp(origins, resolve=resolve))
            way_out = Exit(
                targets,
                upstream,
                private=frozenset[Target](local),
                told=tunnels.append,
                brake=self.brake,
                resolve=resolve,
            )
        names = [each.name for each in allowed if each.kind == "env"]
        return Outfit(
            environment={name: vault[name] for name in names if name in vault},
            paths=tuple(each for each in allowed if each.kind == "fs"),
            exit=way_out,
        )


@asynccontextmanager
async def opened_cage() -> AsyncIterator[Cage]:
    """A cage on the engine that the environment names, its base image built if it is missing.

    Raises EngineUnavailable or BaseImageBuildFailed. Leaving it removes all that it started.
    """
    client = await asyncio.to_thread(connect)
    with contextlib.closing(client):
        image = await asyncio.to_thread(build_base, client, lambda line: None)
        containers = Containers(client.api)
        try:
            yield Cage(client, image.reference, uuid.uuid4().hex, Brake(), containers)
        finally:
            await containers.close()
