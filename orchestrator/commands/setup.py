"""`toolwright setup`: prepare this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from orchestrator.clients import CLIENTS, config_path, merged, server_entry, write_config
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import ask_pin, pin_option, read_line, reported, say
from registry.pin import set_pin
from registry.store import Store
from sandbox.docker_engine import connect
from sandbox.image import build_base


@click.command("setup")
@click.option("--client", type=click.Choice(CLIENTS), help="Write this client's configuration.")
@click.option("--print", "only_print", is_flag=True, help="With --client: print, do not write.")
@click.option("--remove", is_flag=True, help="With --client: take Toolwright out again.")
@click.option("--base-image", is_flag=True, help="Only build the base image, if it is missing.")
@click.option("--change-pin", is_flag=True, help="Choose another PIN; asks for the present one.")
@pin_option
@reported
def command(
    client: str | None,
    only_print: bool,
    remove: bool,
    base_image: bool,
    change_pin: bool,
    pin_file: Path | None,
) -> None:
    """Prepare this machine: database, PIN, base image; with --client also the client."""
    settings = load_settings()
    if client:
        _configure(settings, client, only_print, remove)
        return
    if not base_image:
        with Store.open(settings.database_url):
            say(f"home: {settings.home}")
        _pin(settings, pin_file, change_pin)
    _build()


def _pin(settings: Settings, pin_file: Path | None, change: bool) -> None:
    """Choose the PIN, once; another one only for who knows the present one."""
    if settings.pin.exists() and not change:
        say("PIN: chosen earlier")
        return
    if settings.pin.exists():
        ask_pin(settings, None)
    if pin_file is None and not sys.stdin.isatty():
        say("PIN: none yet. Run `toolwright setup` at a terminal, or give --pin-file.", "yellow")
        return
    pin = (
        read_line(pin_file)
        if pin_file
        else click.prompt("Choose a PIN", hide_input=True, confirmation_prompt=True)
    )
    set_pin(settings.pin, pin)
    say("PIN: set")


def _build() -> None:
    client = connect()
    try:
        image = build_base(client, lambda line: say(line, "dim"))
    finally:
        client.close()
    say(f"base image: {image.reference}")


def _configure(settings: Settings, client: str, only_print: bool, remove: bool) -> None:
    path = config_path(client)
    entry = None if remove else server_entry(settings.home)
    if only_print:
        click.echo(json.dumps({"mcpServers": {"toolwright": entry}}, indent=2))
        return
    backup = write_config(path, merged(path, entry))
    say(f"{path}: toolwright is {'removed' if remove else 'added'}")
    if backup:
        say(f"what was there is kept in {backup}")
