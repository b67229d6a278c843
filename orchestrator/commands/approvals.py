"""`toolwright approvals`: what waits for a person."""

from __future__ import annotations

import click

from orchestrator.answers import approval_json
from orchestrator.moments import ago
from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.store import Store


@click.command("approvals")
@click.option("--all", "every", is_flag=True, help="Also those that were decided.")
@json_option
@reported
def command(every: bool, as_json: bool) -> None:
    """List the requests that wait for a person."""
    with Store.open(load_settings().database_url) as store:
        rows = store.approvals() if every else store.approvals("pending")
    if as_json:
        print_json([approval_json(row) for row in rows])
    elif not rows:
        say("Nothing waits.")
    else:
        print_table(
            ("approval", "state", "tool", "request", "asked", "why"),
            (
                (
                    row.id,
                    row.state,
                    f"{row.entry}.{row.tool}",
                    f"{row.wire.method} {row.wire.url}",
                    ago(row.created),
                    row.reason,
                )
                for row in rows
            ),
        )
