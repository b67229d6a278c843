"""`toolwright run`: serve one server by itself over stdio, for any MCP client."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import click

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.bundle_directory import DirectoryGrants, read_secrets, serve_directory
from orchestrator.processes.termination import TERMINATED
from orchestrator.settings import load_engine_settings
from registry.errors import RegistryError
from sandbox.bundle.model import NAME, Bundle, read_bundle
from sandbox.engines.process import ProcessRunner
from sandbox.errors import SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Runner

ENGINES = ("auto", "docker", "wasm", "none")
NO_CAGE = (
    "!! --engine none: the server's code runs as a plain process of yours, WITHOUT A SANDBOX. It "
    "can read your files and reach the network. For development only, with code you trust."
)
CLIENTS = (
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "codex",
    "gemini",
    "goose",
    "zed",
    "windsurf",
    "cline",
)
"""The names in orchestrator/cli/clients/clients.py, which takes longer to load than a server to
start.
"""
ADD = "A person registers it with `toolwright add`; then `toolwright run NAME` serves it."


@click.command("run")
@click.argument("server", metavar="DIR|NAME")
@click.option("--allow-private", is_flag=True, help="DIR: its hosts may have private addresses.")
@click.option("--allow-writes", is_flag=True, help="DIR: writes are sent without an approval.")
@click.option(
    "--creds",
    type=click.Path(path_type=Path, dir_okay=False),
    help='DIR: a JSON file of credentials, {"SCHEME": {"token": …} or {"user": …, "pass": …}}.',
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="By default Docker if it answers, else the embedded WASM engine. DIR: `none` is without a "
    "sandbox.",
)
@click.option("--account", help="NAME: its calls go out with this account.")
@click.option("--no-control", is_flag=True, help="NAME: do not start the control plane.")
@click.option("--client", type=click.Choice(CLIENTS), help="NAME: add it to this client instead.")
@click.option("--print", "only_print", is_flag=True, help="With --client: print, do not write.")
@click.option("--remove", is_flag=True, help="With --client: take it out again.")
def run_command(
    server: str,
    allow_private: bool,
    allow_writes: bool,
    creds: Path | None,
    engine: str | None,
    account: str | None,
    no_control: bool,
    client: str | None,
    only_print: bool,
    remove: bool,
) -> None:
    """Serve one server over stdin and stdout: the registered one called NAME, in its sandbox, with
    writes that wait for you; or, while you develop, the bundle in the directory DIR (with a slash
    in it: `./pets`).
    """
    if (only_print or remove) and not client:
        raise click.UsageError("--print and --remove go with --client")
    if account is not None and not is_server_name(server):
        raise click.UsageError("--account takes the NAME of a registered server")
    try:
        if client:
            _configure_client(server, client, only_print, remove)
        elif not is_server_name(server):
            bundle = read_bundle(Path(server).expanduser(), with_spec=False)
            if bundle.launch is not None:
                raise OrchestratorError(f"{server} is a third-party server. {ADD}")
            secrets = read_secrets(creds, bundle.credentials) if creds else {}
            asyncio.run(
                _serve_bundle(bundle, engine, DirectoryGrants(allow_private, allow_writes, secrets))
            )
        elif allow_private or allow_writes or creds or engine == "none":
            raise click.UsageError(_render_name_error(server))
        else:
            # Loaded by name: a registered server needs the registry, a directory starts without.
            registered = importlib.import_module("orchestrator.frontends.single_server")
            asyncio.run(registered.serve_registered(server, engine, not no_control, account))
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None
    except (OrchestratorError, RegistryError, SandboxError) as error:
        raise click.ClickException(str(error)) from error


def _configure_client(server: str, client: str, only_print: bool, remove: bool) -> None:
    if not is_server_name(server):
        raise click.UsageError("--client takes the NAME of a registered server")
    # Loaded by name: the clients' formats take longer to load than a server takes to start.
    enlisting = importlib.import_module("orchestrator.cli.clients.clients")
    enlisting.configure_client_for_server(server, client, only_print=only_print, remove=remove)


def is_server_name(server: str) -> bool:
    """Whether this is a registered server's name rather than a directory. A client's configuration
    must mean the same in every working directory, so a directory is what no name can be.
    """
    return NAME.match(server) is not None


def _render_name_error(server: str) -> str:
    return (
        f"{server} is the name of a registered server, which always runs in its sandbox, with "
        f"writes that wait. If you mean the directory, write .{os.sep}{server}"
    )


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
