"""Third-party servers in their cage: a container, and where they have hosts, an exit beside it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from pathlib import Path

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.containers import NOBODY, SCRATCH, Attached, Containers, Design, Mount
from sandbox.egress import PROXY_PORT, Exit
from sandbox.errors import PathRefused, SessionBroken
from sandbox.link import Link
from sandbox.mcp_session import McpSession
from sandbox.outfit import LIMITS, Outfit, Outfitter
from sandbox.permissions import Permission, check_nesting, check_path
from sandbox.redaction import Redaction
from sandbox.runner import Limits, Session

PROFILE = "seccomp-thirdparty.json"
HOME = "/home/server"
EXIT_LIMITS = Limits(memory_mb=64, pids=16, scratch_mb=1)
PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
SETTINGS: Mapping[str, str] = {
    "HOME": HOME,
    "TMPDIR": "/tmp",
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
"""Takes the script from the pipe, before the first message, so that no image is built for it."""


class ThirdPartyRunner:
    """Opens sessions with bundles that have a `launch`; a `Runner` for those.

    `image` is our base image, for exits and scripts. `private` are places of ours that no server
    may be given; `local` says whether the engine sees our file system.
    """

    def __init__(
        self,
        containers: Containers,
        image: str,
        labels: Mapping[str, str],
        outfit: Outfitter,
        *,
        brake: Brake | None = None,
        limits: Limits | None = None,
        runtime: str | None = None,
        private: Iterable[Path] = (),
        local: bool = True,
    ) -> None:
        self._containers, self._image, self._labels = containers, image, labels
        self._outfit, self._runtime = outfit, runtime
        self._brake = brake or Brake()
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
        self._brake.check()
        outfit = self._outfit(bundle)
        limits = limits or self._limits
        async with AsyncExitStack() as stack:
            network = "none"
            if outfit.exit is not None:
                network = await stack.enter_async_context(self._exit(outfit.exit))
            design = self._design(bundle, outfit, network)
            container = await self._containers.start(design, limits)
            stack.push_async_callback(container.removed)
            self._check_paths(outfit.paths)
            secrets = Redaction(outfit.environment.values())
            session = McpSession(bundle, broker, limits, container, secrets)
            container.bind(session)
            stack.callback(session.end)
            with self._brake.on_engage(session.freeze):
                self._brake.check()
                if bundle.launch and bundle.launch.way == "script":
                    script = bundle.source_code.encode()
                    container.write(len(script).to_bytes(4, "big") + script)
                await session.start()
                yield session

    def _design(self, bundle: Bundle, outfit: Outfit, network: str) -> Design:
        launch = bundle.launch
        assert launch is not None
        self._check_paths(outfit.paths)
        proxy = PROXY_SETTINGS if outfit.exit is not None else {}
        writable = [path.name for path in outfit.paths if path.writable]
        script = ("-I", "-B", "-c", RUN_SCRIPT) if launch.way == "script" else ()
        return Design(
            image=self._image if launch.way == "script" else launch.image,
            labels=self._labels,
            entrypoint=("python3",) if script else launch.entrypoint,
            command=(*script, *launch.command),
            environment={**launch.environment, **SETTINGS, **proxy, **outfit.environment},
            network=network,
            profile=PROFILE,
            user=_owner(writable[0]) if writable else NOBODY,
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
    async def _exit(self, way_out: Exit) -> AsyncIterator[str]:
        """The network of a container beside which our forwarder listens; cut with the brake."""
        design = Design(
            image=self._image,
            labels=self._labels,
            entrypoint=("python3", "-I", "-S", "-B"),
            command=("-c", forwarder(), json.dumps(way_out.listeners)),
            profile=PROFILE,
            hosts=way_out.hosts,
            sysctls={"net.ipv4.ip_unprivileged_port_start": "0"},
            runtime=self._runtime,
        )
        container = await self._containers.start(design, EXIT_LIMITS)
        link = Link(container.write, way_out.serve)
        container.bind(link)
        with self._brake.on_engage(_cut(link, container)):
            try:
                async with asyncio.timeout(EXIT_LIMITS.start_seconds):
                    if not await link.ready():
                        raise SessionBroken("the server's exit did not start")
                yield f"container:{container.identity}"
            except TimeoutError as error:
                raise SessionBroken("the server's exit did not start in time") from error
            finally:
                await link.ended()
                await container.removed()


def forwarder() -> str:
    """The program that listens inside."""
    return resources.files("images").joinpath("exit", "forwarder.py").read_text()


def _cut(link: Link, container: Attached) -> Callable[[], None]:
    def cut() -> None:
        link.end()
        container.kill()

    return cut


def _owner(path: str) -> str:
    """Who may write a path that a person granted for writing: its owner, never root."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise PathRefused(path, error.strerror or str(error)) from error
    return f"{status.st_uid}:{status.st_gid or 65534}" if status.st_uid else NOBODY
