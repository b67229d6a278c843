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
        rows = [dossier(entry, store.standing(entry.name)) for entry in store.entries()]
    if as_json:
        print_json(rows)
    elif not rows:
        say("No servers yet. Forge one: toolwright forge TASK --source URL")
    else:
        print_table(
            ("server", "version", "state", "trust", "calls", "ok", "tools", "title"),
            (
                (
                    row["tool_id"],
                    row["version"],
                    row["state"],
                    row["trust_level"],
                    row["total_invocations"],
                    row["successful_invocations"],
                    len(row["tools"]),
                    row["title"],
                )
                for row in rows
            ),
        )
