"""Putting Toolwright, or one forged server by itself, into a client's configuration."""

from __future__ import annotations

import os
from pathlib import Path

import click

from orchestrator.clients import CLIENTS, beyond, configure, machine, printed, serving
from orchestrator.settings import load_settings
from orchestrator.terminal import err, say
from registry.store import Store


def enlist(
    home: Path, name: str, server: str = "", *, only_print: bool = False, remove: bool = False
) -> None:
    """Write that client's configuration, or only print what is to be in it.

    Raises OrchestratorError, and then nothing is changed.
    """
    client, start = CLIENTS[name], serving(home, server)
    path = client.path(machine(os.environ))
    if only_print:
        click.echo(f"{client.title}: {path}", err=True)
        click.echo(printed(client, start), nl=False)
        return
    backup = configure(client, path, start, remove=remove)
    say(f"{path}: {start.name} is {'removed' if remove else 'added'}")
    if backup:
        say(f"what was there is kept in {backup}")


def enlist_server(server: str, name: str, *, only_print: bool, remove: bool) -> None:
    """The same for one registered server by itself. Raises Unknown, unless it is to be removed."""
    settings = load_settings()
    if not remove:
        with Store.open(settings.database_url) as store:
            tools = [tool.name for tool in store.entry(server).tools]
        for warning in beyond(CLIENTS[name], server, tools):
            err.print(warning, style="yellow")
    enlist(settings.home, name, server, only_print=only_print, remove=remove)
