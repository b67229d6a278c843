"""`toolwright diff`: what was changed between two versions of a server."""

from __future__ import annotations

import click

from orchestrator.errors import OrchestratorError
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, reported, say
from orchestrator.versions import before, differences, version_of
from registry.store import Store


@click.command("diff")
@click.argument("name")
@click.argument("a", type=int, required=False)
@click.argument("b", type=int, required=False)
@json_option
@reported
def command(name: str, a: int | None, b: int | None, as_json: bool) -> None:
    """Show what changed from version A of the server NAME to version B; from the one before to the
    current one by default.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Shelf(settings.home, store)
        new = version_of(store, name, b)
        earlier = before(store, name, new.version) if a is None else a
        if earlier is None:
            raise OrchestratorError(f"{name} has one version only; there is none to compare with.")
        old = version_of(store, name, earlier)
        lines = list(differences(shelf.bundle(old), shelf.bundle(new)))
    if as_json:
        print_json({"server": name, "from": old.version, "to": new.version, "lines": lines})
        return
    for line in lines:
        say(line, {"+": "green", "-": "red", "#": "yellow"}.get(line[:1], ""))
