"""`toolwright grant`: what a server may have of this machine, and what nobody signed for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import click

from orchestrator.clearance import Clearance
from orchestrator.consents import Consents, secret_of, void_json
from orchestrator.errors import OrchestratorError
from orchestrator.granting import confirm, confirmable, grant, revoke_permissions
from orchestrator.pin import authority
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import Settings, load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.store import Store
from sandbox.bundle import file_arguments
from sandbox.permissions import (
    Permission,
    check_nesting,
    check_path,
    is_readable,
    parse_permission,
    permissions_of,
)

FIRST = (
    "What you did not grant yourself, take away first: `toolwright grant … --revoke`, "
    "`toolwright source remove`."
)


@click.command("grant")
@click.argument("server", required=False)
@click.argument("permission", required=False)
@click.option("--revoke", is_flag=True, help="Take the permission away again. Needs no PIN.")
@click.option(
    "--confirm", "confirming", is_flag=True, help="Sign what counts for nothing without it."
)
@pin_option
@json_option
@reported
def command(
    server: str | None,
    permission: str | None,
    revoke: bool,
    confirming: bool,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Grant SERVER a PERMISSION that it declares: env:NAME, fs:/PATH:ro, fs:/PATH:rw,
    network:HOST:PORT, call:SERVER.TOOL, tls:HOST:PORT, tls:*:PORT, dns:ZONE[@SERVER],
    dns:*[@SERVER] or tcp:HOST:PORT; or fs:/PATH:ro, undeclared, where its tools take files as
    arguments. Without one, list what it declares and has; without SERVER, every grant.
    Granting asks for the PIN.

    With --confirm, show the grants that no signature of yours covers (of SERVER, a HOST:PORT or a
    source's URL, or all of them) and sign them with the PIN.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        consents = Consents(store, Clearance(store, authority(settings)).key)
        if confirming:
            _confirm(settings, consents, server or "", pin_file)
        elif server is None:
            _list_all(consents, as_json)
        elif permission is None:
            _list(store.entry(server).permissions, consents.permissions(server), as_json)
        else:
            _change(settings, consents, server, _parsed(permission), revoke, pin_file)


def _change(
    settings: Settings,
    consents: Consents,
    server: str,
    wanted: Permission,
    revoke: bool,
    pin_file: Path | None,
) -> None:
    store, given = consents.store, consents.permissions(server)
    entry = store.entry(server)
    if revoke:
        revoke_permissions(store, server, (str(wanted),), "terminal", time.time())
        had = str(wanted) in given
        say(f"{wanted} is taken from {server}." if had else f"{server} has no {wanted}.")
        return
    takes_files = any(file_arguments(tool.definition["inputSchema"]) for tool in entry.tools)
    if wanted not in permissions_of(entry.permissions) and not (
        takes_files and is_readable(wanted)
    ):
        raise OrchestratorError(
            f"{server} does not declare {wanted}. It declares: "
            f"{', '.join(entry.permissions) or 'nothing'}."
        )
    if wanted.kind == "fs":
        check_path(wanted.name, settings.of_engine.private)
        check_nesting((*permissions_of(given), wanted))
    secret = secret_of(wanted, Shelf(settings.home, store).bundle(entry))
    if wanted.loud:
        say(f"{wanted} is {wanted.loud}.", "red")
    signer = ask_pin(settings, pin_file)
    grant(store, f"{server} {wanted}", "permission", "terminal", signer, secret)
    say(f"{server} may have {wanted}.")


def _confirm(settings: Settings, consents: Consents, what: str, pin_file: Path | None) -> None:
    store = consents.store
    wanted = confirmable(store, Shelf(settings.home, store), consents.void(), what)
    if not wanted:
        say("There is nothing to confirm.")
        return
    print_table(
        ("unsigned", "kind", "secret", "by"),
        ((each.origin, each.kind, each.detail, each.granted_by) for each in wanted),
    )
    say(FIRST, "yellow")
    confirm(store, wanted, "terminal", ask_pin(settings, pin_file))
    say(f"{len(wanted)} grants are signed.")


def _parsed(permission: str) -> Permission:
    try:
        return parse_permission(permission)
    except ValueError as error:
        raise OrchestratorError(f"{error}.") from error


def _list_all(consents: Consents, as_json: bool) -> None:
    counted, void = consents.grants(), [void_json(*each) for each in consents.void()]
    if as_json:
        given = [{"what": each.origin, "kind": each.kind} for each in counted]
        print_json({"granted": given, "void": void})
        return
    print_table(("granted", "kind", "by"), ((g.origin, g.kind, g.granted_by) for g in counted))
    if void:
        rows = ((each["what"], each["kind"], each["reason"]) for each in void)
        print_table(("counts for nothing", "kind", "because"), rows)


def _list(declared: tuple[str, ...], given: Mapping[str, str], as_json: bool) -> None:
    wanted = {text: str(each) for text in declared for each in permissions_of((text,))}
    rows = [(text, normal in given) for text, normal in wanted.items()]
    if as_json:
        print_json([{"permission": text, "granted": granted} for text, granted in rows])
    else:
        print_table(("permission", "granted"), rows)
