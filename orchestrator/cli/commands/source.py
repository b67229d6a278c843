"""`toolwright source`: manage the sources of API descriptions and the allowed hosts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import click

from orchestrator.approvals.granting import (
    add_source,
    allow_file,
    allow_host,
    allow_package,
    check_grantable,
    check_source,
    is_path,
    remove_grant,
)
from orchestrator.approvals.grants import CONFIRM, PACKAGE, encode_void_grant, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, sign_audit
from orchestrator.cli.terminal import (
    ask_pin,
    check_secret_set,
    json_option,
    pin_option,
    print_done,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.errors import OrchestratorError
from orchestrator.frontends.instructions import keep_changed_instructions
from orchestrator.settings import load_settings
from registry.approvals.grants import GrantTable
from registry.models import DocumentationSource, Grant
from registry.secrets.signing import Signer
from registry.store import Store


@click.group("source")
def source_command() -> None:
    """Add, list and remove API sources; allow hosts, packages and files."""


@source_command.command("add")
@click.argument("url")
@click.option("--header", help="NAME=@SECRET: send this secret as that header to the URL's host.")
@pin_option
@json_option
@report_errors
def add_api_source(url: str, header: str | None, pin_file: Path | None, as_json: bool) -> None:
    """Register URL as a source and allow its host. Asks for the PIN."""
    name, _, secret = (header or "").partition("=@")
    if header and not (name and secret):
        raise OrchestratorError(
            f"--header {header!r} is not of the form NAME=@SECRET, the name of a secret and never "
            "its value. `toolwright secret set SECRET` puts the value into the vault."
        )
    check_source(url)
    settings = load_settings()
    if secret:
        check_secret_set(settings, secret)
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        add_source(store.grants, DocumentationSource(url, name, secret), "terminal", signer)
        keep_changed_instructions(settings, store)
    told = f"{url} is a source; its host may be talked to."
    print_done(as_json, told, source=url, header=name, secret=secret)


@source_command.command("allow")
@click.argument("host", metavar="HOST:PORT")
@click.argument("more", nargs=-1)
@pin_option
@json_option
@report_errors
def allow_hosts(host: str, more: tuple[str, ...], pin_file: Path | None, as_json: bool) -> None:
    """Allow one or several hosts, packages or files. Asks for the PIN.

    \b
    HOST:PORT   requests to it, also where its address is private
    pypi:NAME   this package in forged servers
    ./PATH      a file or directory from which clients may name descriptions
    """
    settings = load_settings()
    for each in (host, *more):
        check_grantable(each, settings.of_engine.private)
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        for each in (host, *more):
            told = _allow_one(store.grants, each, signer, settings.of_engine.private)
            if not as_json:
                print_text(told)
        keep_changed_instructions(settings, store)
    if as_json:
        print_json({"allowed": [host, *more]})


def _allow_one(grants: GrantTable, what: str, signer: Signer, private: Iterable[Path]) -> str:
    """Allow a host, path or package; what is allowed, in words."""
    if is_path(what):
        path = allow_file(grants, what, "terminal", signer, private)
        return f"{path} may be read where a client names it as a source."
    if what.startswith(PACKAGE):
        allow_package(grants, what, "terminal", signer)
        return f"{what} may be imported by servers."
    allow_host(grants, what, "terminal", signer)
    return f"{what} may be talked to."


@source_command.command("list")
@json_option
@report_errors
def list_sources(as_json: bool) -> None:
    """List the sources and the allowed hosts."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        consents = open_grants(SignedPolicy(store, build_authority(settings)))
        sources, grants, void = (
            consents.find_sources(),
            consents.find_grants(),
            consents.find_void(),
        )
    lost = [encode_void_grant(*each) for each in void]
    if as_json:
        allowed = [_encode_grant(grant) for grant in grants]
        print_json({"sources": [vars(s) for s in sources], "allowed": allowed, "void": lost})
        return
    print_table(("source", "header", "secret"), ((s.url, s.header, s.secret) for s in sources))
    print_table(("allowed", "kind", "by"), ((g.origin, g.kind, g.granted_by) for g in grants))
    for each in lost:
        print_text(f"{each['what']} counts for nothing: {each['reason']}; {CONFIRM}", "yellow")


@source_command.command("remove")
@click.argument("what")
@pin_option
@json_option
@report_errors
def remove_source(what: str, pin_file: Path | None, as_json: bool) -> None:
    """Remove the source URL or the allowed HOST:PORT or PATH. Needs no PIN: it only takes away."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        removed = remove_grant(store.grants, what, "terminal", time.time())
        sign_audit(settings, store.audit)
        keep_changed_instructions(settings, store)
    told = f"{what} is removed." if removed else f"There was no {what}."
    print_done(as_json, told, what=what, removed=removed)


def _encode_grant(grant: Grant) -> dict[str, object]:
    given = {"origin": grant.origin, "kind": grant.kind, "detail": grant.detail}
    return {**given, "granted_by": grant.granted_by, "granted": grant.granted}
