"""`toolwright rollback`: go back to an earlier version of a server."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, reported, say
from orchestrator.versions import go_back, planned
from registry.store import Store


@click.command("rollback")
@click.argument("name")
@click.argument("version", type=int, required=False)
@click.option("--reason", default="", help="Kept in the audit log.")
@pin_option
@json_option
@reported
def command(
    name: str, version: int | None, reason: str, pin_file: Path | None, as_json: bool
) -> None:
    """Put VERSION of the server NAME back in use, by default the one before the current. Its
    content becomes the newest version. The PIN is asked for where it may do more than now.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shelf = Shelf(settings.home, store)
        plan = planned(store, shelf, name, version)
        if plan.gains:
            if not as_json:
                say(f"version {plan.target.version} may do more than now:", "yellow")
                for gain in plan.gains:
                    say(f"  {gain}")
            ask_pin(settings, pin_file)
        entry = go_back(store, shelf, plan, "terminal", reason, time.time())
    if as_json:
        told = {"from": plan.current.version, "to": plan.target.version, "version": entry.version}
        print_json({"server": name, **told})
    else:
        say(f"{name} is at version {entry.version}, which is version {plan.target.version} again.")
