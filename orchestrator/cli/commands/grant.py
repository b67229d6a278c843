"""`toolwright grant`: grant, list, revoke and confirm the permissions of servers."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.approvals.declaring import declare_permission, plan_declaration
from orchestrator.approvals.flows import FLOW, allow_flow
from orchestrator.approvals.granting import (
    add_grant,
    confirm_grants,
    find_confirmable,
    find_held_permissions,
    find_succession,
    revoke_permissions,
)
from orchestrator.approvals.grants import Grants, encode_void_grant, find_secret_name, open_grants
from orchestrator.approvals.needs import list_need_items
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, sign_audit
from orchestrator.approvals.text import escape_line
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    ask_pin,
    check_secret_set,
    json_option,
    pin_option,
    print_json,
    print_table,
    print_text,
    report_errors,
    tell_beside,
)
from orchestrator.errors import OrchestratorError
from orchestrator.frontends.instructions import keep_changed_instructions
from orchestrator.settings import Settings, load_settings
from registry.jobs.jobs import MAX_UNENDED
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import find_file_arguments
from sandbox.bundle.permissions import (
    Permission,
    check_nesting,
    check_path,
    is_readable,
    parse_permission,
    parse_permissions,
)
from sandbox.bundle.ratelimit import find_allowed_requests, parse_allowed_requests

FIRST = (
    "What you did not grant yourself, take away first: `toolwright grant … --revoke`, "
    "`toolwright source remove`."
)


@click.command("grant")
@click.argument("server", required=False, type=StoredName("server"))
@click.argument("permission", required=False)
@click.option("--revoke", is_flag=True, help="Take the permission away again. Needs no PIN.")
@click.option("--confirm", "confirming", is_flag=True, help="Sign grants that you have not signed.")
@pin_option
@json_option
@report_errors
def grant_command(
    server: str | None,
    permission: str | None,
    revoke: bool,
    confirming: bool,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Grant SERVER a PERMISSION. Asks for the PIN.

    Without PERMISSION, list what SERVER declares and has. Without SERVER, list every grant.

    Permissions that SERVER has to declare. One that you added by `toolwright add` declares what
    you grant it of the network, of variables and of files:

    \b
    network:HOST:PORT       connect there
    call:SERVER.TOOL        call a tool of another server
    env:NAME                have a secret as a variable
    fs:/PATH:ro, :rw        read, or also write, files
    dns:ZONE, dns:*         ask the name system; @SERVER behind it: that one
    tls:HOST:PORT, tls:*:PORT
                            see who answers
    tcp:HOST:PORT           one exchange over TCP

    Permissions that it need not declare:

    \b
    fs:/PATH:ro             files that its tools take as arguments
    requests:NUMBER         what one call may send to one host
    flow:OTHER              values that OTHER answers go into its calls without
                            being shown first

    With --confirm, show the grants that you have not signed (of SERVER, a HOST:PORT, a source's
    URL, or all) and sign them with the PIN.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        consents = open_grants(SignedPolicy(store, build_authority(settings)))
        if confirming:
            with tell_beside(as_json):
                signed = _confirm_grants(settings, consents, server or "", pin_file)
            keep_changed_instructions(settings, store)
            if as_json:
                print_json({"signed": signed})
        elif server is None:
            _list_grants(consents, as_json)
        elif permission is None:
            _list_permissions(consents, store.servers.get(server), as_json)
        else:
            with tell_beside(as_json):
                _change_grant(settings, consents, server, permission, revoke, pin_file)
            if as_json:
                given = sorted(consents.find_permissions(server))
                print_json({"server": server, "permission": permission, "granted": given})


def _change_grant(
    settings: Settings,
    consents: Grants,
    server: str,
    permission: str,
    revoke: bool,
    pin_file: Path | None,
) -> None:
    if permission.startswith(FLOW):
        _change_flow(settings, consents, server, permission, revoke, pin_file)
    elif parse_allowed_requests(permission) is not None:
        _change_requests(settings, consents, server, permission, revoke, pin_file)
    else:
        wanted = _parse_permission(permission)
        _change_permission(settings, consents, server, wanted, revoke, pin_file)


def _change_permission(
    settings: Settings,
    consents: Grants,
    server: str,
    wanted: Permission,
    revoke: bool,
    pin_file: Path | None,
) -> None:
    store, given = consents.store, consents.find_permissions(server)
    entry = store.servers.get(server)
    if revoke:
        revoke_permissions(store.grants, server, (str(wanted),), "terminal", time.time())
        sign_audit(settings, store.audit)
        had = str(wanted) in given
        print_text(f"{wanted} is taken from {server}." if had else f"{server} has no {wanted}.")
        return
    shelf = Bundles(settings.home, store.servers)
    if wanted.kind == "fs":
        check_path(wanted.name, settings.of_engine.private)
    more = plan_declaration(store.servers, shelf, server, wanted)
    if more is not None:
        if wanted.kind == "env":
            check_secret_set(settings, wanted.name, server)
        signer = ask_pin(settings, pin_file)
        version = declare_permission(
            store.servers, shelf, store.grants, more, "terminal", signer
        ).version
        print_text(f"{server} may have {wanted}: that is its version {version}.")
        return
    takes_files = any(find_file_arguments(tool.definition["inputSchema"]) for tool in entry.tools)
    if wanted not in parse_permissions(entry.permissions) and not (
        takes_files and is_readable(wanted)
    ):
        raise OrchestratorError(
            f"{server} does not declare {wanted}. It declares: "
            f"{', '.join(entry.permissions) or 'nothing'}."
        )
    if wanted.kind == "fs":
        check_nesting((*parse_permissions(given), wanted))
    secret = find_secret_name(wanted, shelf.load_bundle(entry))
    if wanted.warning:
        print_text(f"{wanted} is {wanted.warning}.", "red")
    signer = ask_pin(settings, pin_file)
    add_grant(store.grants, f"{server} {wanted}", "permission", "terminal", signer, secret)
    print_text(f"{server} may have {wanted}.")


def _change_flow(
    settings: Settings,
    consents: Grants,
    server: str,
    wanted: str,
    revoke: bool,
    pin_file: Path | None,
) -> None:
    """Let values of one server's answers go into another's calls unshown, or no longer."""
    store, source = consents.store, wanted.removeprefix(FLOW)
    if revoke:
        revoke_permissions(store.grants, server, (wanted,), "terminal", time.time())
        sign_audit(settings, store.audit)
        print_text(f"What {source} answers is shown before it goes to {server}.")
        return
    ends = store.servers.get(source), store.servers.get(server)
    allow_flow(consents, *ends, "terminal", ask_pin(settings, pin_file))
    print_text(f"What {source} answers may go to {server} without being shown first.")


def _change_requests(
    settings: Settings,
    consents: Grants,
    server: str,
    wanted: str,
    revoke: bool,
    pin_file: Path | None,
) -> None:
    """Let the calls of a server send so many requests to one host, or the usual number again."""
    store = consents.store
    name = store.servers.get(server).name
    others = [text for text in consents.find_permissions(name) if parse_allowed_requests(text)]
    signer = None if revoke else ask_pin(settings, pin_file)
    revoke_permissions(store.grants, name, (wanted, *others), "terminal", time.time())
    if signer is not None:
        add_grant(store.grants, f"{name} {wanted}", "permission", "terminal", signer)
    number = find_allowed_requests(consents.find_permissions(name))
    print_text(f"A call of {name} may send {number} requests to one host.")


def _confirm_grants(
    settings: Settings, consents: Grants, what: str, pin_file: Path | None
) -> list[str]:
    """Sign what counts for nothing; what was signed."""
    store = consents.store
    waiting = store.jobs.find("waiting", MAX_UNENDED)
    shelf, void = Bundles(settings.home, store.servers), consents.find_void()
    wanted = find_confirmable(store.servers, shelf, void, what, waiting)
    for grant, flaw in void:
        if grant.kind == "succession" and flaw != "revoked" and grant not in wanted:
            print_text(
                f"{grant.origin}: no waiting job shows what its succession would change, so it "
                "cannot be confirmed. `forge` again asks for it anew.",
                "yellow",
            )
    if not wanted:
        print_text("There is nothing to confirm.")
        return []
    print_table(
        ("unsigned", "kind", "secret", "by"),
        (
            map(escape_line, (each.origin, each.kind, each.detail, each.granted_by))
            for each in wanted
        ),
    )
    for each in wanted:
        change = find_succession(each, waiting) if each.kind == "succession" else None
        for line in list_need_items(change) if change else ():
            print_text(f"  {escape_line(line)}")
    print_text(FIRST, "yellow")
    confirm_grants(store.grants, wanted, "terminal", ask_pin(settings, pin_file))
    print_text(f"{len(wanted)} grants are signed.")
    return [each.origin for each in wanted]


def _parse_permission(permission: str) -> Permission:
    try:
        return parse_permission(permission)
    except ValueError as error:
        raise OrchestratorError(f"{error}.") from error


def _list_grants(consents: Grants, as_json: bool) -> None:
    counted, void = (
        consents.find_grants(),
        [encode_void_grant(*each) for each in consents.find_void()],
    )
    if as_json:
        given = [{"what": each.origin, "kind": each.kind} for each in counted]
        print_json({"granted": given, "void": void})
        return
    print_table(("granted", "kind", "by"), ((g.origin, g.kind, g.granted_by) for g in counted))
    if void:
        rows = ((each["what"], each["kind"], each["reason"]) for each in void)
        print_table(("counts for nothing", "kind", "because"), rows)


def _list_permissions(consents: Grants, entry: Entry, as_json: bool) -> None:
    held = set(find_held_permissions(consents, entry))
    declared = {
        str(each): text for text in entry.permissions for each in parse_permissions((text,))
    }
    if as_json:
        rows = [{"permission": text, "granted": name in held} for name, text in declared.items()]
        print_json(rows)
        return
    more = sorted(held - declared.keys())
    if not declared and not more:
        print_text(f"{entry.name} declares no permission and has none.")
        return
    yes_no = {True: "yes", False: "no"}
    print_table(
        ("permission", "declared", "granted"),
        (
            *((text, "yes", yes_no[name in held]) for name, text in declared.items()),
            *((name, "no", "yes") for name in more),
        ),
    )
