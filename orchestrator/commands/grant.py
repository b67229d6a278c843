"""`toolwright grant`: what a server may have of this machine."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.errors import OrchestratorError
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
from registry.records import Grant
from registry.store import Store
from sandbox.permissions import check_nesting, check_path, parse_permission, permissions_of


@click.command("grant")
@click.argument("server")
@click.argument("permission", required=False)
@click.option("--revoke", is_flag=True, help="Take the permission away again.")
@pin_option
@json_option
@reported
def command(
    server: str, permission: str | None, revoke: bool, pin_file: Path | None, as_json: bool
) -> None:
    """Grant SERVER a PERMISSION that it declares: env:NAME, fs:/PATH:ro, fs:/PATH:rw, or
    network:HOST:PORT. Without one, list what it declares and has. Granting asks for the PIN.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        declared, given = store.entry(server).permissions, store.permissions(server)
        if permission is None:
            _list(declared, given, as_json)
            return
        try:
            wanted = parse_permission(permission)
        except ValueError as error:
            raise OrchestratorError(f"{error}.") from error
        origin = f"{server} {wanted}"
        if revoke:
            removed = store.remove_grant(origin, "permission", "terminal", time.time())
            say(f"{wanted} is taken from {server}." if removed else f"{server} has no {wanted}.")
            return
        if wanted not in permissions_of(declared):
            raise OrchestratorError(
                f"{server} does not declare {wanted}. It declares: "
                f"{', '.join(declared) or 'nothing'}."
            )
        if wanted.kind == "fs":
            check_path(wanted.name, settings.of_engine.private)
            check_nesting((*permissions_of(given), wanted))
        ask_pin(settings, pin_file)
        store.add_grant(Grant(origin, "permission", "terminal", time.time()))
    say(f"{server} may have {wanted}.")


def _list(declared: tuple[str, ...], given: frozenset[str], as_json: bool) -> None:
    wanted = {text: str(each) for text in declared for each in permissions_of((text,))}
    rows = [(text, normal in given) for text, normal in wanted.items()]
    if as_json:
        print_json([{"permission": text, "granted": granted} for text, granted in rows])
    else:
        print_table(("permission", "granted"), rows)
