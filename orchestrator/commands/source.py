"""`toolwright source`: where API descriptions may be read, and which hosts may be talked to."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.errors import OrchestratorError
from orchestrator.granting import allow_host
from orchestrator.settings import load_settings
from orchestrator.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_table,
    reported,
    say,
)
from registry.records import Source
from registry.store import Store
from sandbox.policy import origin_of


@click.group("source")
def command() -> None:
    """Add, list and remove API sources; allow hosts."""


@command.command("add")
@click.argument("url")
@click.option("--header", help="NAME=@SECRET: send this secret as that header to the URL's host.")
@pin_option
@reported
def add(url: str, header: str | None, pin_file: Path | None) -> None:
    """Register URL as a source and allow its host. Asks for the PIN."""
    origin = origin_of(url)
    if origin is None:
        raise OrchestratorError(f"{url} is not an http(s) URL. Give one, such as https://host/.")
    name, _, secret = (header or "").partition("=@")
    if header and not (name and secret):
        raise OrchestratorError(f"{header!r} is not of the form NAME=@SECRET.")
    settings = load_settings()
    ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        store.add_source(Source(url, name, secret), time.time())
        allow_host(store, f"{origin.host}:{origin.port}", "terminal")
    say(f"{url} is a source; {origin.host}:{origin.port} may be talked to.")


@command.command("allow")
@click.argument("host")
@pin_option
@reported
def allow(host: str, pin_file: Path | None) -> None:
    """Allow HOST:PORT to be talked to, also where its address is private. Asks for the PIN."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        allow_host(store, host, "terminal")
    say(f"{host} may be talked to.")


@command.command("list")
@json_option
@reported
def list_sources(as_json: bool) -> None:
    """List the sources and the allowed hosts."""
    with Store.open(load_settings().database_url) as store:
        sources, grants = store.sources(), store.grants()
    if as_json:
        print_json({"sources": [vars(s) for s in sources], "allowed": [vars(g) for g in grants]})
        return
    print_table(("source", "header", "secret"), ((s.url, s.header, s.secret) for s in sources))
    print_table(("allowed", "kind", "by"), ((g.origin, g.kind, g.granted_by) for g in grants))


@command.command("remove")
@click.argument("what")
@pin_option
@reported
def remove(what: str, pin_file: Path | None) -> None:
    """Remove the source URL or the allowed HOST:PORT. Asks for the PIN."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    now = time.time()
    with Store.open(settings.database_url) as store:
        removed = store.remove_source(what, now)
        removed |= store.remove_grant(what, "host", "terminal", now)
        removed |= store.remove_grant(what, "private_host", "terminal", now)
    say(f"{what} is removed." if removed else f"There was no {what}.")
