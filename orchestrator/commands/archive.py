"""`toolwright archive`: take a server out of use."""

from __future__ import annotations

import time

import click

from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, reported, say
from registry.store import Store


@click.command("archive")
@click.argument("name")
@click.option("--reason", default="", help="Kept in the audit log.")
@json_option
@reported
def command(name: str, reason: str, as_json: bool) -> None:
    """Take the server NAME out of use. Its files and records stay; forging it again revives it."""
    with Store.open(load_settings().database_url) as store:
        store.archive(name, time.time(), "terminal", reason)
    if as_json:
        print_json({"server": name, "state": "archived"})
    else:
        say(f"{name} is archived.")
