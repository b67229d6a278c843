"""`toolwright versions`: list the versions of a server with their authors."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.approvals.dates import format_age
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    json_option,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.server_report import encode_trial
from orchestrator.settings import load_settings
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.errors import BundleInvalid


@click.command("versions")
@click.argument("name", type=StoredName("server"))
@json_option
@report_errors
def versions_command(name: str, as_json: bool) -> None:
    """List the versions of the server NAME, newest first, and what each has learned."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Bundles(settings.home, store.servers)
        current = store.servers.get(name)
        rows = [
            _encode_version(shelf, entry, entry.version == current.version)
            for entry in store.servers.find_versions(name)
        ]
        trial = store.canaries.get(name)
    if as_json:
        print_json({"server": name, "versions": rows, "trial": trial and encode_trial(trial)})
        return
    print_table(
        ("version", "", "made", "by", "digest", "learned"),
        (
            (
                row["version"],
                "current" if row["current"] else "",
                format_age(row["created"]),
                row["created_by"],
                row["digest"][:12],
                "; ".join(row["learned"]) if row["kept"] else "its files are gone",
            )
            for row in rows
        ),
    )
    if trial and trial.ended is None:
        told = f"{trial.new.succeeded} of {trial.new.total} counted reads were good"
        print_text(f"version {trial.version} is on trial beside {trial.previous}: {told}")


def _encode_version(shelf: Bundles, entry: Entry, current: bool) -> dict[str, Any]:
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
        bundle = shelf.load_bundle(entry)
    except BundleInvalid:
        return {**row, "kept": False, "learned": []}
    learned = [*map(str, bundle.paces), *map(str, bundle.widened)]
    return {**row, "kept": True, "learned": learned}
