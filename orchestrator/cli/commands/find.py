"""`toolwright find`: the tools that fit a task."""

from __future__ import annotations

import click

from orchestrator.levels import levels
from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.store import Store


@click.command("find")
@click.argument("task")
@click.option("-k", default=5, show_default=True, type=click.IntRange(1, 20))
@json_option
@reported
def command(task: str, k: int, as_json: bool) -> None:
    """Show the registered tools that fit TASK, best first."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        matches = store.search(task, k)
        found = {match.entry: store.entry(match.entry) for match in matches}
        of = {name: levels(settings, store, entry) for name, entry in found.items()}
    if as_json:
        print_json([{**vars(match), "level": of[match.entry][match.tool]} for match in matches])
    elif not matches:
        say("No registered tool fits. Forge one: toolwright forge TASK --source URL")
    else:
        print_table(
            ("tool", "group", "level", "score", "description"),
            (
                (
                    f"{m.entry}.{m.tool}",
                    m.group,
                    of[m.entry][m.tool],
                    f"{m.score:.2f}",
                    m.description[:100],
                )
                for m in matches
            ),
        )
