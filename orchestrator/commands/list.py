"""`toolwright list`: the registered servers."""

from __future__ import annotations

import click

from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.records import dossier
from registry.store import Store


@click.command("list")
@json_option
@reported
def command(as_json: bool) -> None:
    """List the registered servers with their trust."""
    with Store.open(load_settings().database_url) as store:
        rows = store.summaries()
        whole = as_json and [dossier(e, store.standing(e.name)) for e in store.entries()]
    if as_json:
        print_json(whole)
    elif not rows:
        say("No servers yet. Forge one: toolwright forge TASK --source URL")
    else:
        print_table(
            ("server", "version", "state", "trust", "calls", "ok", "tools", "title"),
            (
                (
                    row.name,
                    row.version,
                    row.state,
                    row.standing.level,
                    row.standing.total,
                    row.standing.successful,
                    row.tools,
                    row.title,
                )
                for row in rows
            ),
        )
