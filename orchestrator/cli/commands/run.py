"""`toolwright run`: serve one server by itself over stdio, for any MCP client."""

from __future__ import annotations

import importlib
import os
from functools import partial
from pathlib import Path

import click

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.early import start_early_answers
from orchestrator.frontends.flat_greeting import find_kept_greeting
from registry.errors import RegistryError
from sandbox.bundle.model import NAME
from sandbox.errors import SandboxError

ENGINES = ("auto", "docker", "wasm", "none")
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
            # Loaded by name, as below: a client waits for the first answer.
            process = importlib.import_module("orchestrator.cli.commands.run_directory")
            process.serve_directory_process(server, engine, creds, allow_private, allow_writes)
        elif allow_private or allow_writes or creds or engine == "none":
            raise click.UsageError(_render_name_error(server))
        else:
            early = start_early_answers(partial(find_kept_greeting, server))
            process = importlib.import_module("orchestrator.cli.commands.run_registered")
            process.serve_registered_process(server, engine, not no_control, account, early)
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
