"""`toolwright secret`: set, list and remove secrets. They are never shown."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.brokers import SOURCES
from orchestrator.settings import load_settings
from orchestrator.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_table,
    read_line,
    reported,
    say,
)
from registry.store import Store
from registry.vault import FileVault, Secret


@click.group("secret")
def command() -> None:
    """Set, list and remove secrets. `SERVER.NAME` is a server's; a bare NAME is for sources."""


@command.command("set")
@click.argument("name")
@click.option(
    "--value-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the value from a file, or from standard input with `-`.",
)
@pin_option
@reported
def set_secret(name: str, value_file: Path | None, pin_file: Path | None) -> None:
    """Set the secret NAME. Asks for the PIN and the value; basic ones are `user:password`."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    value = read_line(value_file) if value_file else click.prompt("Value", hide_input=True)
    FileVault(settings.vault).put(*_parts(name), Secret(value))
    with Store.open(settings.database_url) as store:
        store.note("secret.set", name, {}, time.time())
    say(f"{name} is set.")


@command.command("list")
@json_option
@reported
def list_secrets(as_json: bool) -> None:
    """List the names of the secrets."""
    names = FileVault(load_settings().vault).names()
    if as_json:
        print_json([{"server": server, "name": name} for server, name in names])
    else:
        print_table(("of", "name"), names)


@command.command("remove")
@click.argument("name")
@pin_option
@reported
def remove_secret(name: str, pin_file: Path | None) -> None:
    """Remove the secret NAME. Asks for the PIN."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    removed = FileVault(settings.vault).delete(*_parts(name))
    with Store.open(settings.database_url) as store:
        store.note("secret.remove", name, {}, time.time())
    say(f"{name} is removed." if removed else f"There was no {name}.")


def _parts(name: str) -> tuple[str, str]:
    server, dot, own = name.partition(".")
    return (server, own) if dot else (SOURCES, name)
