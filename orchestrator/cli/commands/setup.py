"""`toolwright setup`: prepare the home, PIN and engine, or configure an MCP client."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.signing_key import open_key
from orchestrator.cli.clients.clients import (
    CLIENTS,
    SERVER,
    configure_client,
    describe_machine,
    read_entries,
)
from orchestrator.cli.enroll import choose_pin, record_key, replace_pin, replace_signing_key
from orchestrator.cli.next_steps import choose_next_commands, print_next_commands, read_home_state
from orchestrator.cli.preparation import keep_engine, prepare_engine, read_new_pin
from orchestrator.cli.terminal import (
    ask_pin,
    engine_option,
    is_terminal,
    json_option,
    pin_option,
    print_json,
    print_text,
    read_pin,
    report_errors,
    tell_beside,
)
from orchestrator.errors import OrchestratorError, WrongPin
from orchestrator.settings import Settings, describe_kept_engine, load_settings
from registry.audit.search import AuditTable
from registry.secrets.signing import compute_fingerprint
from registry.store import Store


@click.command("setup")
@click.option(
    "--client", type=click.Choice(tuple(CLIENTS)), help="Write this client's configuration."
)
@click.option("--print", "only_print", is_flag=True, help="With --client: print, do not write.")
@click.option("--remove", is_flag=True, help="With --client: take Toolwright out again.")
@click.option("--yes", is_flag=True, help="Ask about no client; say how each is added.")
@click.option("--engine-only", is_flag=True, help="Only make the engine ready, if it is not yet.")
@click.option("--change-pin", is_flag=True, help="Choose another PIN; asks for the present one.")
@click.option("--new-key", is_flag=True, help="With the PIN, replace the key of your decisions.")
@click.option("--key", "only_key", is_flag=True, help="With the PIN, make a missing key.")
@click.option(
    "--present-pin-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="With --change-pin: read the present PIN from a file.",
)
@pin_option
@json_option
@engine_option
@report_errors
def setup_command(
    client: str | None,
    only_print: bool,
    remove: bool,
    yes: bool,
    engine_only: bool,
    change_pin: bool,
    new_key: bool,
    only_key: bool,
    present_pin_file: Path | None,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Prepare this machine: database, PIN, engine; or, with --client, the client.

    With --engine the home keeps where servers run, `auto` takes that back; TOOLWRIGHT_ENGINE and
    the --engine of another command go before it. With --engine-only nothing is kept.
    """
    settings = load_settings(engine=engine)
    with tell_beside(as_json):
        if client:
            told = configure_client(settings.home, client, only_print=only_print, remove=remove)
        elif new_key or only_key:
            told = {"key": _set_up_key(settings, pin_file, new_key)}
        else:
            present = present_pin_file if change_pin else None
            told = _set_up_home(settings, pin_file, present, change_pin, engine_only, yes, engine)
    if as_json:
        print_json(told)


def _set_up_home(
    settings: Settings,
    pin_file: Path | None,
    present_pin_file: Path | None,
    change_pin: bool,
    engine_only: bool,
    ask_nothing: bool,
    engine: str | None,
) -> dict[str, Any]:
    """Prepare the home and its engine, or the engine alone; what is there then, for scripts. The
    `engine` that was named is kept once it is ready.
    """
    told: dict[str, Any] = {"home": str(settings.home)}
    if not engine_only:
        with Store.open(settings.database_url) as store:
            print_text(f"home: {settings.home}")
            told["key"] = _set_up_pin(settings, store.audit, pin_file, present_pin_file, change_pin)
        told["has_pin"] = settings.pin.exists()
    told["engine"] = prepare_engine(settings)
    print_text(told["engine"])
    if engine and not engine_only:
        settings = keep_engine(settings, engine)
    if not engine_only and settings.kept_engine:
        told["kept_engine"] = settings.kept_engine
        print_text(describe_kept_engine(settings))
    if not engine_only:
        told["clients"] = _add_found_clients(settings, ask_nothing)
        state = read_home_state(settings)
        told["next"] = choose_next_commands(state)
        print_next_commands(state)
    return told


def _add_found_clients(settings: Settings, ask_nothing: bool) -> list[dict[str, Any]]:
    """Add Toolwright to those clients of this machine that the person at the terminal wants it in;
    where nobody is asked, say how each is added. For each client whether it has Toolwright.
    """
    machine = describe_machine(os.environ)
    listed = []
    for name, client in CLIENTS.items():
        path = client.path(machine)
        if not path.exists():
            continue
        how = f"`toolwright setup --client {name}`"
        found = f"Found {client.title} ({path})"
        has = False
        try:
            if SERVER in read_entries(client, path):
                has = True
                print_text(f"{found}: has Toolwright")
            elif ask_nothing or not is_terminal(False):
                print_text(f"{found}: {how} adds Toolwright")
            elif click.confirm(f"{found}. Add Toolwright to it?", default=False, err=True):
                configure_client(settings.home, name)
                has = True
            else:
                print_text(f"Later: {how}")
        except OrchestratorError as error:
            print_text(str(error), "yellow")
        listed.append({"client": name, "path": str(path), "has_toolwright": has})
    return listed


def _set_up_pin(
    settings: Settings, audit: AuditTable, pin_file: Path | None, present: Path | None, change: bool
) -> str:
    """Set the first PIN; changing it needs the present one. The fingerprint of the key that signs
    with it, "" where none was set.
    """
    if settings.pin.exists() and not change:
        print_text("PIN: chosen earlier")
        return ""
    signer = ask_pin(settings, present) if settings.pin.exists() else None
    if pin_file is None and not sys.stdin.isatty():
        print_text(
            "PIN: none yet. Run `toolwright setup` at a terminal, or give --pin-file.", "yellow"
        )
        return ""
    pin = read_new_pin(pin_file)
    if signer is None:
        signer = choose_pin(settings, audit, pin)
    else:
        replace_pin(settings, audit, signer, pin)
    key = compute_fingerprint(signer.public)
    print_text(f"PIN: set; your decisions are signed with the key {key}")
    return key


def _set_up_key(settings: Settings, pin_file: Path | None, replace: bool) -> str:
    """Create the signing key of a home that has only a PIN, or replace the key; its fingerprint."""
    pin = read_pin(pin_file)
    with Store.open(settings.database_url) as store:
        opened = open_key(settings, pin, time.time())
        if opened.signer is None:
            raise WrongPin(opened.refused)
        signer = (
            replace_signing_key(settings, store, opened.signer, pin) if replace else opened.signer
        )
        record_key(settings, store.audit, signer)
    key = compute_fingerprint(signer.public)
    print_text(f"your decisions are signed with the key {key}")
    return key
