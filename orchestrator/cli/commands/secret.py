"""`toolwright secret`: set, list and remove secrets. They are never shown."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.accounts import SOURCES, split_secret
from orchestrator.approvals.declaring import describe_variable
from orchestrator.approvals.granting import (
    bind_secret,
    describe_credential,
    find_credential_names,
    find_declared_uses,
)
from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.secrets import remove_secret, store_secret
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.cli.login import accounts_command as accounts_command
from orchestrator.cli.login import login_command as login_command
from orchestrator.cli.login import logout_command as logout_command
from orchestrator.cli.terminal import (
    ask_pin,
    engine_option,
    json_option,
    pin_option,
    print_done,
    print_json,
    print_table,
    print_text,
    prompt_hidden,
    report_errors,
    run_coroutine,
    tell_beside,
)
from orchestrator.errors import OrchestratorError
from orchestrator.logins.keeping import list_token_uses
from orchestrator.settings import Settings, load_settings
from registry.secrets.vault import list_own_secrets, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.credentials.uses import SecretUse, render_origin
from sandbox.errors import BundleInvalid
from sandbox.wire.policy import parse_origin
from sandbox.wire.redaction import MAX_SECRET

CLOSE = 0.75
"""How alike names are of which one may be meant for the other (`difflib`)."""

_place_option = click.option(
    "--auth",
    "place",
    default="",
    metavar="PLACE",
    help="For a credential that SERVER's description forgot: where it goes. header:X-Token, "
    "header:Authorization:token, query:key, cookie:sid, bearer, basic or digest. Makes its next "
    "version.",
)


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
@_place_option
@pin_option
@json_option
@engine_option
@report_errors
def set_secret(
    name: str,
    value_file: Path | None,
    place: str,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Set the secret NAME. Shows where the registered server would take it, asks for the PIN and
    the value, and lets it go there and nowhere else.

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
    settings = load_settings(engine=engine)
    with tell_beside(as_json):
        told = _set_secret(settings, name, value_file, place, pin_file)
    if as_json:
        print_json(told)


def _set_secret(
    settings: Settings, name: str, value_file: Path | None, place: str, pin_file: Path | None
) -> dict[str, Any]:
    """Set a secret; what was done, for scripts."""
    server, own = _split_name(name)
    if place and server == SOURCES:
        raise OrchestratorError(f"--auth belongs to a server's secret: SERVER.{name}.")
    _check_taken(settings, server, own, place)
    declaring = _load_declaring(place)
    declared = declaring.find_uses(settings, server, own, place) if declaring else None
    uses = _show_uses(settings, server, own, declared=declared)
    # Standard input has the PIN first, where it has both.
    value = _read_value(value_file) if value_file and str(value_file) != "-" else None
    signer = ask_pin(settings, pin_file)
    if value is None:
        value = _read_value(value_file) if value_file else _ask_value()
    with Store.open(settings.database_url) as store:
        vault = open_vault(settings)
        warning = store_secret(store, vault, server, own, value, uses, "terminal", signer)
    print_text(f"{name} is set.")
    if warning:
        print_text(warning, "yellow")
    version = _publish_declaring(declaring, settings, server, own, place)
    goes = sorted(map(str, uses))
    return {"name": name, "to": goes, "warning": warning, "version": version}


def _ask_value() -> str:
    try:
        return prompt_hidden("Value")
    except click.Abort as error:
        if sys.stdin.isatty():
            raise
        raise OrchestratorError(
            "the value is wanted, and there is no terminal to ask at. Nothing was set. "
            "`--value-file FILE` reads it from a file, `--value-file -` from standard input."
        ) from error


def _check_taken(settings: Settings, server: str, name: str, place: str) -> None:
    """Raises OrchestratorError for a secret that nobody would ever take: one of sources that is
    named as a server is, and one that a registered server does not ask for. Of a server that is not
    registered yet any name may be set; one that looks mistyped is told.
    """
    with Store.open(settings.database_url) as store:
        known = [each.name for each in store.servers.find_summaries()]
        named = name if server == SOURCES else server
        if named not in known:
            near = get_close_matches(server, known, 3, CLOSE) if server != SOURCES else []
            meant = " or ".join(f"{each}.{name}" for each in near)
            if near:
                print_text(f"There is no server {server}. Did you mean {meant}?", "yellow")
            return
        asked = find_credential_names(store.servers, Bundles(settings.home, store.servers), named)
        taken = place or _is_taken(settings, store, server, name)
    ways = [f"`toolwright secret set {named}.{each}`" for each in asked]
    if server == SOURCES and not taken:
        raise OrchestratorError(
            f"{name} is a server, and a secret without a dot is for sources: it would go nowhere. "
            f"Name the credential as well: {' or '.join(ways) or f'{name}.NAME'}. Nothing was set."
        )
    if not taken:
        asks = f"It asks for {' or '.join(ways)}. " if ways else "It asks for none. "
        raise OrchestratorError(
            f"{server} takes no secret {name}. {asks}If its description forgot this one, "
            f"`toolwright secret set {server}.{name} --auth PLACE` says where it goes. Nothing was "
            "set."
        )


def _is_taken(settings: Settings, store: Store, server: str, name: str) -> bool:
    """Whether a registered server, or a source, takes a secret, or it is set already. What programs
    of others take is not known.
    """
    if open_vault(settings).get(server, name) is not None:
        return True
    if server == SOURCES:
        return any(source.secret == name for source in store.grants.find_sources())
    shelf = Bundles(settings.home, store.servers)
    try:
        bundle = shelf.load_bundle(store.servers.get(server))
    except BundleInvalid:
        return True
    declared = find_declared_uses(store.servers, shelf, server, name)
    named = {split_secret(name)[0], name} & {each.name for each in bundle.credentials}
    return bundle.launch is not None or bool(declared or named)


def _publish_declaring(
    declaring: Any, settings: Settings, server: str, own: str, place: str
) -> int | None:
    """Register the version that sends a secret where `place` says; its number."""
    if declaring is None:
        return None
    made = run_coroutine(declaring.publish_declaring(settings, server, own, place))
    print_text(f"{made.name} version {made.version} sends it.", "bold green")
    version: int = made.version
    return version


@secret_command.command("bind")
@click.argument("name")
@click.option("--to", "origins", multiple=True, help="Only to this origin, such as https://host.")
@_place_option
@pin_option
@json_option
@engine_option
@report_errors
def bind_secret_command(
    name: str,
    origins: tuple[str, ...],
    place: str,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Let the secret SERVER.NAME go where the registered server would take it: shows where it goes
    now and where then, and asks for the PIN.
    """
    settings = load_settings(engine=engine)
    with tell_beside(as_json):
        told = _bind_secret(settings, name, origins, place, pin_file)
    if as_json:
        print_json(told)


def _bind_secret(
    settings: Settings, name: str, origins: tuple[str, ...], place: str, pin_file: Path | None
) -> dict[str, Any]:
    """Let a secret go to its places; what was done, for scripts."""
    server, own = _split_name(name)
    if server == SOURCES:
        raise OrchestratorError(
            f"{name} is no server's secret: `toolwright source add URL --header NAME=@{name}` says "
            "where it goes."
        )
    declaring = _load_declaring(place)
    declared = declaring.find_uses(settings, server, own, place) if declaring else None
    uses = _show_uses(settings, server, own, origins, declared, renewing=True)
    if not uses:
        raise OrchestratorError(f"no registered server asks for {name}. `toolwright list`")
    if open_vault(settings).get(server, own) is None:
        raise OrchestratorError(f"{name} is not set. `toolwright secret set {name}` sets it.")
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        bind_secret(store.grants, server, own, uses, "terminal", signer)
    print_text(f"{name} goes there and nowhere else.")
    version = _publish_declaring(declaring, settings, server, own, place)
    return {"name": name, "to": sorted(map(str, uses)), "warning": "", "version": version}


@secret_command.command("list")
@json_option
@report_errors
def list_secrets(as_json: bool) -> None:
    """List the names of the secrets, and where a person let each go."""
    settings = load_settings()
    names = list_own_secrets(open_vault(settings))
    with Store.open(settings.database_url) as store:
        goes = {each: _find_places(_open_grants(settings, store), *each) for each in names}
    if as_json:
        print_json([{"server": each[0], "name": each[1], "to": goes[each]} for each in names])
    else:
        print_table(("of", "name", "goes to"), ((*each, ", ".join(goes[each])) for each in names))


@secret_command.command("remove")
@click.argument("name")
@pin_option
@json_option
@report_errors
def remove_secret_command(name: str, pin_file: Path | None, as_json: bool) -> None:
    """Remove the secret NAME. Asks for the PIN where there is one of that name."""
    settings = load_settings()
    server, own = _split_name(name)
    removed = False
    if open_vault(settings).get(server, own) is not None:
        ask_pin(settings, pin_file)
        with Store.open(settings.database_url) as store:
            removed = remove_secret(store, open_vault(settings), server, own, "terminal")
    told = f"{name} is removed." if removed else f"There was no {name}."
    print_done(as_json, told, name=name, removed=removed)


def _load_declaring(place: str) -> Any:
    """`orchestrator.cli.declaring` where a place is given: it needs the compiler and an engine,
    which other secrets are set without.
    """
    return importlib.import_module("orchestrator.cli.declaring") if place else None


def _read_value(path: Path) -> str:
    """The content of a file, or of standard input for `-`, without its final line break."""
    try:
        if str(path) == "-":
            text = sys.stdin.read(MAX_SECRET + 1)
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(MAX_SECRET + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OrchestratorError(f"{path} cannot be read as text: {reason}.") from error
    if len(text) > MAX_SECRET:
        raise OrchestratorError(f"{path} is larger than a secret may be ({MAX_SECRET} characters).")
    return text.removesuffix("\n").removesuffix("\r")


def _show_uses(
    settings: Settings,
    server: str,
    name: str,
    origins: Sequence[str] = (),
    declared: tuple[SecretUse, ...] | None = None,
    *,
    renewing: bool = False,
) -> tuple[SecretUse, ...]:
    """Where the registered server would take a secret, at these origins or at all of its own, and
    where a log-in is renewed, if it is `renewing`; shown with where it goes now. `declared` is
    where its next version would. Raises OrchestratorError for an origin that is none of these.
    """
    with Store.open(settings.database_url) as store:
        before = _find_places(_open_grants(settings, store), server, name)
        shelf = Bundles(settings.home, store.servers)
        if declared is None:
            declared = find_declared_uses(store.servers, shelf, server, name)
        asked = find_credential_names(store.servers, shelf, server)
        told = describe_variable(store.servers, shelf, server, name)
        says = describe_credential(store.servers, shelf, server, name)
    if renewing:
        kept = list_token_uses(open_vault(settings), server, name)
        declared = tuple(dict.fromkeys((*declared, *kept))) if declared else ()
    uses = _select_uses(declared, origins)
    for place in before:
        print_text(f"goes now to   {place}", "" if place in map(str, uses) else "yellow")
    for use in uses:
        print_text(f"is to go to   {use}", "" if str(use) in before or not before else "yellow")
    if uses and says:
        print_text(f"its description says: “{says}”")
    if not uses and server != SOURCES:
        print_text(told or _describe_unasked(server, name, asked), "yellow")
    return uses


def _describe_unasked(server: str, name: str, asked: Collection[str]) -> str:
    """What to do with a secret that its server asks for nowhere; `asked` are those that it does."""
    told = f"No registered server takes {server}.{name} to an API. "
    if asked:
        told += f"{server} asks for {', '.join(f'{server}.{each}' for each in asked)}. "
        told += "If its description forgot this one, say where it goes with `--auth`. "
    told += f"Once one does, `toolwright secret bind {server}.{name}` lets it go there."
    if asked:
        return told
    given = f"`toolwright add {server} --env {name}=@{name} -- COMMAND`"
    return f"{told} A server that somebody else wrote gets it as a variable by {given}."


def _select_uses(declared: Sequence[SecretUse], origins: Sequence[str]) -> tuple[SecretUse, ...]:
    wanted = {parse_origin(each) for each in origins}
    if missing := wanted - {use.origin for use in declared}:
        given = ", ".join(each for each in origins if parse_origin(each) in missing)
        known = ", ".join(sorted({render_origin(use.origin) for use in declared})) or "nowhere"
        raise OrchestratorError(f"the server does not take it to {given}, but to {known}.")
    return tuple(use for use in declared if not origins or use.origin in wanted)


def _find_places(consents: Grants, server: str, name: str) -> list[str]:
    """Where a secret goes: a source's to the origins of the sources that it was named for."""
    if server != SOURCES:
        return sorted(consents.find_secret_uses(server, name))
    named = (source for source in consents.find_sources() if source.secret == name)
    return [
        f"{render_origin(origin)} header:{source.header.lower()}"
        for source in named
        if (origin := parse_origin(source.url))
    ]


def _open_grants(settings: Settings, store: Store) -> Grants:
    return open_grants(SignedPolicy(store, build_authority(settings)))


def _split_name(name: str) -> tuple[str, str]:
    """The server and the name of its secret. Raises click.UsageError where one is empty."""
    server, dot, own = name.partition(".")
    if not (server and own if dot else name):
        raise click.UsageError(f"{name[:80]!r} is no name: write SERVER.NAME, or NAME of a source.")
    return (server, own) if dot else (SOURCES, name)
