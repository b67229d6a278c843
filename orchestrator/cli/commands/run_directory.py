"""The process of `toolwright run DIR`: a bundle that is being developed."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import click

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.bundle_directory import DirectoryGrants, read_secrets, serve_directory
from orchestrator.processes.termination import run_until_terminated
from orchestrator.settings import load_engine_settings
from sandbox.bundle.model import Bundle, read_bundle
from sandbox.engines.process import ProcessRunner
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Runner

NO_CAGE = (
    "!! --engine none: the server's code runs as a plain process of yours, WITHOUT A SANDBOX. It "
    "can read your files and reach the network. For development only, with code you trust."
)
ADD = "A person registers it with `toolwright add`; then `toolwright run NAME` serves it."


def serve_directory_process(
    directory: str,
    engine: str | None,
    creds: Path | None,
    allow_private: bool,
    allow_writes: bool,
) -> None:
    """Serve the bundle in a directory over stdin and stdout until end of file."""
    bundle = read_bundle(Path(directory).expanduser(), with_spec=False)
    if bundle.launch is not None:
        raise OrchestratorError(f"{directory} is a third-party server. {ADD}")
    secrets = read_secrets(creds, bundle.credentials) if creds else {}
    grants = DirectoryGrants(allow_private, allow_writes, secrets)
    run_until_terminated(_serve_bundle(bundle, engine, grants))


async def _serve_bundle(bundle: Bundle, engine: str | None, grants: DirectoryGrants) -> None:
    async with _open_runner(engine) as runner:
        await serve_directory(bundle, runner, grants)


@asynccontextmanager
async def _open_runner(name: str | None) -> AsyncIterator[Runner]:
    """The runner of that engine. Raises EngineUnavailable, BaseImageMissing or ComponentMissing."""
    if name == "none":
        click.secho(NO_CAGE, fg="red", bold=True, err=True)
        yield ProcessRunner()
        return
    # Loaded by name: without a cage a server starts in half the time.
    engines = importlib.import_module("orchestrator.gateway.engine")
    settings = load_engine_settings(engine=name)
    async with engines.Engine(
        settings, uuid4().hex, KillSwitch(), partial(click.echo, err=True)
    ) as engine:
        engine.check_available()
        yield engine
