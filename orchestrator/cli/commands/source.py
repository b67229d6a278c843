"""`toolwright source`: where API descriptions may be read, and which hosts may be talked to."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.clearance import Clearance
from orchestrator.consents import CONFIRM, PACKAGE, Consents, void_json
from orchestrator.errors import OrchestratorError
from orchestrator.granting import add_source, allow_host, allow_package, forget
from orchestrator.pin import authority
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.records import Grant, Source
from registry.store import Store


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
    name, _, secret = (header or "").partition("=@")
    if header and not (name and secret):
        raise OrchestratorError(f"{header!r} is not of the form NAME=@SECRET.")
    settings = load_settings()
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        add_source(store, Source(url, name, secret), "terminal", signer)
    say(f"{url} is a source; its host may be talked to.")


@command.command("allow")
@click.argument("host")
@click.argument("more", nargs=-1)
@pin_option
@reported
def allow(host: str, more: tuple[str, ...], pin_file: Path | None) -> None:
    """Allow HOST:PORT to be talked to, also where its address is private, or forged servers to have
    a package, as pypi:NAME; one or several. Asks for the PIN.
    """
    settings = load_settings()
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        for each in (host, *more):
            package = each.startswith(PACKAGE)
            (allow_package if package else allow_host)(store, each, "terminal", signer)
            say(f"{each} may be {'imported by servers' if package else 'talked to'}.")


@command.command("list")
@json_option
@reported
def list_sources(as_json: bool) -> None:
    """List the sources and the allowed hosts."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        consents = Consents(store, Clearance(store, authority(settings)).key)
        sources, grants, void = consents.sources(), consents.grants(), consents.void()
    lost = [void_json(*each) for each in void]
    if as_json:
        allowed = [_granted(grant) for grant in grants]
        print_json({"sources": [vars(s) for s in sources], "allowed": allowed, "void": lost})
        return
    print_table(("source", "header", "secret"), ((s.url, s.header, s.secret) for s in sources))
    print_table(("allowed", "kind", "by"), ((g.origin, g.kind, g.granted_by) for g in grants))
    for each in lost:
        say(f"{each['what']} counts for nothing: {each['reason']}; {CONFIRM}", "yellow")


@command.command("remove")
@click.argument("what")
@pin_option
@reported
def remove(what: str, pin_file: Path | None) -> None:
    """Remove the source URL or the allowed HOST:PORT. Needs no PIN: it only takes away."""
    with Store.open(load_settings().database_url) as store:
        removed = forget(store, what, "terminal", time.time())
    say(f"{what} is removed." if removed else f"There was no {what}.")


def _granted(grant: Grant) -> dict[str, object]:
    given = {"origin": grant.origin, "kind": grant.kind, "detail": grant.detail}
    return {**given, "granted_by": grant.granted_by, "granted": grant.granted}
