"""`toolwright secret`: set, list and remove secrets. They are never shown."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.errors import OrchestratorError
from orchestrator.gateway.brokers import SOURCES
from orchestrator.settings import load_settings
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from sandbox.wire.redaction import ANYWHERE, MAX_SECRET


@click.group("secret")
def secret_command() -> None:
    """Set, list and remove secrets. `SERVER.NAME` is a server's; a bare NAME is for sources."""


@secret_command.command("set")
@click.argument("name")
@click.option(
    "--value-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the value from a file, or from standard input with `-`.",
)
@pin_option
@report_errors
def set_secret(name: str, value_file: Path | None, pin_file: Path | None) -> None:
    """Set the secret NAME. Asks for the PIN and the value.

    \b
    apiKey, bearer   the key or token
    basic, digest    user:password
    oauth2, openIdConnect
                     an access token, CLIENT_ID:CLIENT_SECRET, or a JSON object of client_id,
                     client_secret, refresh_token, access_token, username, password, scope,
                     audience, resource
    aws-sigv4        ACCESS_KEY_ID:SECRET_ACCESS_KEY, or a JSON object of access_key_id,
                     secret_access_key, session_token
    template         what its {secret} and {secret.FIELD} name
    """
    settings = load_settings()
    ask_pin(settings, pin_file)
    value = _read_value(value_file) if value_file else click.prompt("Value", hide_input=True)
    if not value.strip():
        raise OrchestratorError(f"the value of {name} is empty. Nothing was set.")
    open_vault(settings).put(*_split_name(name), Secret(value))
    with Store.open(settings.database_url) as store:
        store.audit.add_note("secret.set", name, {}, time.time())
    print_text(f"{name} is set.")
    if len(value) < ANYWHERE:
        print_text("It is so short that it cannot be kept out of answers for certain.", "yellow")


@secret_command.command("list")
@json_option
@report_errors
def list_secrets(as_json: bool) -> None:
    """List the names of the secrets."""
    names = open_vault(load_settings()).list_names()
    if as_json:
        print_json([{"server": server, "name": name} for server, name in names])
    else:
        print_table(("of", "name"), names)


@secret_command.command("remove")
@click.argument("name")
@pin_option
@report_errors
def remove_secret(name: str, pin_file: Path | None) -> None:
    """Remove the secret NAME. Asks for the PIN."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    removed = open_vault(settings).delete(*_split_name(name))
    with Store.open(settings.database_url) as store:
        store.audit.add_note("secret.remove", name, {}, time.time())
    print_text(f"{name} is removed." if removed else f"There was no {name}.")


def _read_value(path: Path) -> str:
    """The content of a file, or of standard input for `-`, without its final line break."""
    try:
        if str(path) == "-":
            text = sys.stdin.read(MAX_SECRET + 1)
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(MAX_SECRET + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise OrchestratorError(f"{path} cannot be read as text: {error}.") from error
    if len(text) > MAX_SECRET:
        raise OrchestratorError(f"{path} is larger than a secret may be ({MAX_SECRET} characters).")
    return text.removesuffix("\n").removesuffix("\r")


def _split_name(name: str) -> tuple[str, str]:
    server, dot, own = name.partition(".")
    return (server, own) if dot else (SOURCES, name)
