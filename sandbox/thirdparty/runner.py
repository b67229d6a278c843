"""Sessions with third-party servers in containers, with an egress proxy if they have hosts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from pathlib import Path

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission, check_nesting, check_path
from sandbox.engines.docker.containers import (
    NOBODY,
    SCRATCH,
    AttachedContainer,
    ContainerManager,
    ContainerSpec,
    Mount,
)
from sandbox.errors import PathRefused, SessionBroken
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Session
from sandbox.thirdparty.egress import PROXY_PORT, EgressProxy
from sandbox.thirdparty.environment import LIMITS, EnvironmentProvider, LaunchEnvironment
from sandbox.thirdparty.link import Link
from sandbox.thirdparty.session import McpSession
from sandbox.wire.redaction import Redaction

PROFILE = "seccomp-thirdparty.json"
HOME = "/home/server"
EXIT_LIMITS = Limits(memory_mb=64, pids=16, scratch_mb=1)
PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
SETTINGS: Mapping[str, str] = {
    "HOME": HOME,
    "TMPDIR": SCRATCH,
    "UV_USE_IO_URING": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NO_UPDATE_NOTIFIER": "1",
}
PROXY_SETTINGS: Mapping[str, str] = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), PROXY_URL),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
RUN_SCRIPT = """import os, sys
def take(size):
    text = b""
    while len(text) < size:
        text += os.read(0, min(size - len(text), 65536))
    return text
text = take(int.from_bytes(take(4), "big"))
sys.argv[0] = "server.py"
exec(compile(text, "server.py", "exec"), {"__name__": "__main__", "__file__": "server.py"})
"""
"""Reads the script from the pipe before the first message, so that it needs no image."""


class ThirdPartyRunner:
    """Opens sessions with bundles that have a `launch`; a `Runner` for those.

    `image` is the base image, for forwarders and scripts. `private` are Toolwright's own paths,
    which are never given; `local` tells whether the engine sees this machine's file system.
    """

    def __init__(
        self,
        containers: ContainerManager,
        image: str,
        labels: Mapping[str, str],
        outfit: EnvironmentProvider,
        *,
        kill_switch: KillSwitch | None = None,
        limits: Limits | None = None,
        runtime: str | None = None,
        private: Iterable[Path] = (),
        local: bool = True,
    ) -> None:
        self._containers, self._image, self._labels = containers, image, labels
        self._outfit, self._runtime = outfit, runtime
        self._kill_switch = kill_switch or KillSwitch()
        self._limits = limits or LIMITS
        self._private = tuple(private)
        self._local = local

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the server.

        Raises SessionBroken, DefinitionsChanged, PermissionMissing, PathRefused, EngineUnavailable,
        BaseImageMissing, Frozen.
        """
        self._kill_switch.raise_if_engaged()
        outfit = self._outfit(bundle)
        limits = limits or self._limits
        async with AsyncExitStack() as stack:
            network = "none"
            if outfit.exit is not None:
                network = await stack.enter_async_context(
                    start_egress(
                        self._containers,
                        self._image,
                        self._labels,
                        outfit.exit,
                        kill_switch=self._kill_switch,
                        runtime=self._runtime,
                    )
                )
            design = self._build_spec(bundle, outfit, network)
            container = await self._containers.start_container(design, limits)
            stack.push_async_callback(container.kill_and_wait)
            self._check_paths(outfit.paths)
            secrets = Redaction(outfit.environment.values())
            blocked = outfit.exit.blocked if outfit.exit is not None else None
            session = McpSession(bundle, broker, limits, container, secrets, blocked)
            container.bind_listener(session)
            stack.callback(session.end)
            with self._kill_switch.on_engage(session.freeze):
                self._kill_switch.raise_if_engaged()
                if bundle.launch and bundle.launch.way == "script":
                    script = bundle.source_code.encode()
                    container.write(len(script).to_bytes(4, "big") + script)
                await session.start()
                yield session

    def _build_spec(self, bundle: Bundle, outfit: LaunchEnvironment, network: str) -> ContainerSpec:
        launch = bundle.launch
        assert launch is not None
        self._check_paths(outfit.paths)
        proxy = PROXY_SETTINGS if outfit.exit is not None else {}
        writable = [path.name for path in outfit.paths if path.writable]
        script = ("-I", "-B", "-c", RUN_SCRIPT) if launch.way == "script" else ()
        return ContainerSpec(
            image=self._image if launch.way == "script" else launch.image,
            labels=self._labels,
            entrypoint=("python3",) if script else launch.entrypoint,
            command=(*script, *launch.command),
            environment={**launch.environment, **SETTINGS, **proxy, **outfit.environment},
            network=network,
            profile=PROFILE,
            user=_find_owner(writable[0]) if writable else NOBODY,
            scratch=(HOME,),
            mounts=tuple(Mount(path.name, path.writable) for path in outfit.paths),
            directory=SCRATCH if launch.way == "script" else "",
            init=True,
            runtime=self._runtime,
        )

    def _check_paths(self, paths: tuple[Permission, ...]) -> None:
        if paths and not self._local:
            raise PathRefused(paths[0].name, "the container engine is on another machine")
        check_nesting(paths)
        for path in paths:
            check_path(path.name, self._private)


@asynccontextmanager
async def start_egress(
    containers: ContainerManager,
    image: str,
    labels: Mapping[str, str],
    way_out: EgressProxy,
    *,
    kill_switch: KillSwitch,
    runtime: str | None = None,
    limits: Limits = EXIT_LIMITS,
) -> AsyncIterator[str]:
    """Start a container of the base image with the forwarder; yields its network, which leads to
    `way_out` alone. The kill switch cuts it.

    Raises SessionBroken, EngineUnavailable, BaseImageMissing.
    """
    design = ContainerSpec(
        image=image,
        labels=labels,
        entrypoint=("python3", "-I", "-S", "-B"),
        command=("-c", load_forwarder(), json.dumps(way_out.listeners)),
        profile=PROFILE,
        hosts=way_out.hosts,
        sysctls={"net.ipv4.ip_unprivileged_port_start": "0"},
        runtime=runtime,
    )
    container = await containers.start_container(design, limits)
    link = Link(container.write, way_out.serve_stream)
    container.bind_listener(link)
    with kill_switch.on_engage(_create_cut(link, container)):
        try:
            async with asyncio.timeout(limits.start_seconds):
                if not await link.wait_ready():
                    raise SessionBroken("the server's exit did not start")
            yield f"container:{container.identity}"
        except TimeoutError as error:
            raise SessionBroken("the server's exit did not start in time") from error
        finally:
            await link.end_and_wait()
            await container.kill_and_wait()


def load_forwarder() -> str:
    """The source of the forwarder that runs in the container."""
    return resources.files("images").joinpath("exit", "forwarder.py").read_text()


def _create_cut(link: Link, container: AttachedContainer) -> Callable[[], None]:
    def cut() -> None:
        link.end()
        container.kill()

    return cut


def _find_owner(path: str) -> str:
    """The user that a server with this writable path runs as: the path's owner, never root."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise PathRefused(path, error.strerror or str(error)) from error
    return f"{status.st_uid}:{status.st_gid or 65534}" if status.st_uid else NOBODY
