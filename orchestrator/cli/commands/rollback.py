"""`toolwright diff` and `rollback`: compare versions of a server, go back to an earlier one."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_text,
    report_errors,
)
from orchestrator.errors import OrchestratorError
from orchestrator.frontends.instructions import keep_changed_instructions
from orchestrator.healing.versions import (
    diff_versions,
    find_previous_version,
    find_version,
    plan_rollback,
    roll_back,
)
from orchestrator.settings import load_settings
from registry.servers.bundles import Bundles
from registry.store import Store


@click.command("diff")
@click.argument("name", type=StoredName("server"))
@click.argument("a", type=int, required=False)
@click.argument("b", type=int, required=False)
@json_option
@report_errors
def diff_command(name: str, a: int | None, b: int | None, as_json: bool) -> None:
    """Show what changed from version A of the server NAME to version B; from the one before to the
    current one by default.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Bundles(settings.home, store.servers)
        new = find_version(store.servers, name, b)
        earlier = find_previous_version(store.servers, name, new.version) if a is None else a
        if earlier is None:
            raise OrchestratorError(f"{name} has one version only; there is none to compare with.")
        old = find_version(store.servers, name, earlier)
        lines = list(diff_versions(shelf.load_bundle(old), shelf.load_bundle(new)))
    if as_json:
        print_json({"server": name, "from": old.version, "to": new.version, "lines": lines})
        return
    for line in lines:
        print_text(line, {"+": "green", "-": "red", "#": "yellow"}.get(line[:1], ""))


@click.command("rollback")
@click.argument("name", type=StoredName("server"))
@click.argument("version", type=int, required=False)
@click.option("--reason", default="", help="Kept in the audit log.")
@pin_option
@json_option
@report_errors
def rollback_command(
    name: str, version: int | None, reason: str, pin_file: Path | None, as_json: bool
) -> None:
    """Put VERSION of the server NAME back in use, by default the one before the current. Its
    content becomes the newest version. The PIN is asked for where it may do more than now.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Bundles(settings.home, store.servers)
        plan = plan_rollback(store.servers, shelf, name, version)
        if plan.gains:
            if not as_json:
                print_text(f"version {plan.target.version} may do more than now:", "yellow")
                for gain in plan.gains:
                    print_text(f"  {gain}")
            ask_pin(settings, pin_file)
        entry = roll_back(store, shelf, plan, "terminal", reason, time.time())
        keep_changed_instructions(settings, store)
    if as_json:
        told = {"from": plan.current.version, "to": plan.target.version, "version": entry.version}
        print_json({"server": name, **told})
    else:
        print_text(
            f"{name} is at version {entry.version}, which is version {plan.target.version} again."
        )
