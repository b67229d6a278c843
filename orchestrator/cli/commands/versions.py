"""`toolwright versions`: what versions a server has had, and who made them why."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.health import trial_json
from orchestrator.moments import ago
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.records import Entry
from registry.store import Store
from sandbox.errors import BundleInvalid


@click.command("versions")
@click.argument("name")
@json_option
@reported
def command(name: str, as_json: bool) -> None:
    """List the versions of the server NAME, newest first, and what each has learned."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Shelf(settings.home, store)
        current = store.entry(name)
        rows = [
            _row(shelf, entry, entry.version == current.version) for entry in store.versions(name)
        ]
        trial = store.trial(name)
    if as_json:
        print_json({"server": name, "versions": rows, "trial": trial and trial_json(trial)})
        return
    print_table(
        ("version", "", "made", "by", "digest", "learned"),
        (
            (
                row["version"],
                "current" if row["current"] else "",
                ago(row["created"]),
                row["created_by"],
                row["digest"][:12],
                "; ".join(row["learned"]) if row["kept"] else "its files are gone",
            )
            for row in rows
        ),
    )
    if trial and trial.ended is None:
        told = f"{trial.new.succeeded} of {trial.new.total} counted reads were good"
        say(f"version {trial.version} is on trial beside {trial.previous}: {told}")


def _row(shelf: Shelf, entry: Entry, current: bool) -> dict[str, Any]:
    row = {
        "version": entry.version,
        "current": current,
        "created": entry.created,
        "created_by": entry.created_by,
        "digest": entry.digest,
        "parent": entry.parent,
        "base_image": entry.base_image,
    }
    try:
        bundle = shelf.bundle(entry)
    except BundleInvalid:
        return {**row, "kept": False, "learned": []}
    learned = [*map(str, bundle.paces), *map(str, bundle.widened)]
    return {**row, "kept": True, "learned": learned}
