"""`toolwright import-clients`: run the servers that clients start by themselves."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.cli.adding import add_server, print_added, read_permissions
from orchestrator.cli.clients.clients import CLIENTS, describe_machine, read_all_entries
from orchestrator.cli.clients.found_servers import FoundServer, find_servers
from orchestrator.cli.clients.takeover import (
    list_variables,
    read_records,
    replace_entry,
    restore_entry,
)
from orchestrator.cli.terminal import (
    FAILED,
    OUR_ERRORS,
    ask_pin,
    is_terminal,
    json_option,
    pin_option,
    print_json,
    print_note,
    print_text,
    report_errors,
    run_coroutine,
    tell_beside,
)
from orchestrator.errors import ConfigNotUnderstood, OrchestratorError
from orchestrator.forging.thirdparty.registration import Addition
from orchestrator.forging.thirdparty.source import parse_command
from orchestrator.settings import Settings, load_settings
from registry.errors import RowNotFound
from registry.secrets.signing import Signer
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from sandbox.bundle.launch import AUTHOR


@dataclass(frozen=True)
class Choice:
    """A server to import, for all clients that start it, and what it may have."""

    found: tuple[FoundServer, ...]
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def first(self) -> FoundServer:
        return self.found[0]


@click.command("import-clients")
@click.argument("names", nargs=-1)
@click.option(
    "--client", "only", multiple=True, type=click.Choice(tuple(CLIENTS)), help="Only this client's."
)
@click.option("--undo", is_flag=True, help="Put back what the clients' files had.")
@pin_option
@json_option
@report_errors
def import_clients_command(
    names: tuple[str, ...], only: tuple[str, ...], undo: bool, pin_file: Path | None, as_json: bool
) -> None:
    """Have Toolwright run the servers that your MCP clients start by themselves. Each is registered
    as by `toolwright add`: in a sandbox, and its writes wait for you. Its client starts it by
    `toolwright run` from then on.

    At a terminal it asks for each server, and which hosts and paths it may have; what you do not
    name it does not get. NAMES are imported without a question and get neither hosts nor paths. The
    values of variables go into the vault. Asks for the PIN; a copy of each file is kept.
    """
    settings = load_settings()
    with tell_beside(as_json):
        done = (
            _undo_imports(settings, names, pin_file)
            if undo
            else _import_servers(settings, names, only, pin_file)
        )
    if as_json:
        shown = [{"server": server, "done": well} for server, well in done.items()]
        print_json({"undone" if undo else "imported": shown})
    if not all(done.values()):
        raise SystemExit(FAILED)


def _import_servers(
    settings: Settings, names: tuple[str, ...], only: tuple[str, ...], pin_file: Path | None
) -> dict[str, bool]:
    """Import what the person wants; for each server whether all of it was done."""
    found, unread = _read_clients(only or tuple(CLIENTS))
    if not found and not unread and not names:
        print_text("No client on this machine starts a server that is not Toolwright's.")
        return {}
    choices = _choose_servers(_group_servers(settings, found), names)
    if not choices:
        print_text("Nothing was changed.")
        return {}
    signer = ask_pin(settings, pin_file)
    return {each.first.server: _import_server(settings, each, signer) for each in choices}


def _read_clients(clients: Sequence[str]) -> tuple[list[FoundServer], list[str]]:
    """What these clients start, and those whose file cannot be read, which keep no others from
    being imported.
    """
    machine, found, unread = describe_machine(os.environ), list[FoundServer](), list[str]()
    for name in clients:
        try:
            found += find_servers(name, machine)
        except OrchestratorError as error:
            reason = error.reason if isinstance(error, ConfigNotUnderstood) else str(error)
            path = CLIENTS[name].path(machine)
            print_text(f"{path} of {CLIENTS[name].title} cannot be read: {reason}", "yellow")
            unread.append(name)
    return found, unread


def _group_servers(settings: Settings, found: Sequence[FoundServer]) -> list[Choice]:
    """Print all that was found; those that can be imported, each once."""
    groups: list[Choice] = []
    with Store.open(settings.database_url) as store:
        for each in found:
            problem = each.problem or _find_obstacle(store, each, groups)
            if problem:
                print_text(f"{each.place}: stays as it is: {problem}", "yellow")
                continue
            print_text(f"{each.place}: {shlex.join(each.words)}")
            same = [group for group in groups if group.first.is_same(each)]
            if same:
                groups[groups.index(same[0])] = Choice((*same[0].found, each))
                continue
            groups.append(Choice((each,)))
            variables = ", ".join(f"env:{name}" for name in each.environment)
            print_text(f"  as {each.server}, gets: {variables or 'nothing'}; no host, no file")
    return groups


def _find_obstacle(store: Store, found: FoundServer, groups: Sequence[Choice]) -> str:
    """Why a name cannot be taken; "" where it can."""
    if any(g.first.server == found.server and not g.first.is_same(found) for g in groups):
        return f"another client has another server of that name, {found.server}."
    with suppress(RowNotFound):
        entry = store.servers.get(found.server)
        if entry.state == "archived" and entry.created_by == AUTHOR:
            # It was removed, and is added again.
            return ""
        return (
            f"a server {found.server} is registered already. "
            f"`toolwright remove {found.server}` first, or rename this one."
        )
    return ""


def _choose_servers(groups: Sequence[Choice], names: Sequence[str]) -> list[Choice]:
    """Those that a person wants. Raises OrchestratorError for a name that cannot be imported."""
    if names:
        by_name = {
            name: group for group in groups for name in (group.first.server, group.first.name)
        }
        unknown = [name for name in names if name not in by_name]
        if unknown:
            raise OrchestratorError(
                f"{unknown[0][:60]!r} is not among what can be imported: "
                f"{', '.join(group.first.server for group in groups) or 'nothing'}. "
                "`toolwright import-clients` says why."
            )
        return [group for group in groups if {group.first.server, group.first.name} & set(names)]
    if not is_terminal(False):
        for group in groups:
            print_note(f"toolwright import-clients {group.first.server} --pin-file FILE")
        return []
    return [choice for group in groups for choice in _ask_about(group)]


def _ask_about(group: Choice) -> Iterator[Choice]:
    """The choice of the person at the terminal, if it is one."""
    name = group.first.server
    if not click.confirm(f"Have Toolwright run {name}?", default=False, err=True):
        return
    hosts = click.prompt(
        f"Hosts that {name} may connect to (HOST[:PORT] …)",
        default="",
        show_default=False,
        err=True,
    )
    paths = click.prompt(
        f"Paths that {name} may see (PATH:ro or PATH:rw …)",
        default="",
        show_default=False,
        err=True,
    )
    yield Choice(group.found, tuple(hosts.replace(",", " ").split()), tuple(shlex.split(paths)))


def _import_server(settings: Settings, choice: Choice, signer: Signer) -> bool:
    """Register a server and have its clients start it; False where it stays as it is."""
    name, environment = choice.first.server, choice.first.environment
    vault, fresh = open_vault(settings), list[str]()
    try:
        given = [f"{variable}=@{variable}" for variable in environment]
        permissions, secrets, _ = read_permissions(choice.hosts, (), given, choice.paths)
        addition = Addition(name, parse_command(choice.first.words), permissions, secrets)
        fresh = _keep_secrets(settings, choice.first)
        added = run_coroutine(add_server(settings, addition, signer, quiet=False))
    except BaseException as error:
        for variable in fresh:
            vault.delete(name, variable)
        if not isinstance(error, OUR_ERRORS):
            raise
        print_text(f"{choice.first.name} stays as it is: {error}", "red")
        return False
    print_added(added)
    switched = [_switch_client(settings, found, name) for found in choice.found]
    return all(switched)


def _keep_secrets(settings: Settings, found: FoundServer) -> list[str]:
    """Put the values of a server's variables into the vault; the names of those that were not
    there. Raises OrchestratorError where another value is.
    """
    vault, fresh = open_vault(settings), []
    for variable in found.environment:
        present = vault.get(found.server, variable)
        if present is not None and present.reveal() != found.environment[variable]:
            raise OrchestratorError(
                f"the vault has another value of {found.server}.{variable}. "
                f"`toolwright secret remove {found.server}.{variable}` takes it out."
            )
        if present is None:
            fresh.append(variable)
    with Store.open(settings.database_url) as store:
        for variable in fresh:
            with vault.lock_secret(found.server, variable):
                vault.put(found.server, variable, Secret(found.environment[variable]))
            store.audit.add_note("secret.set", f"{found.server}.{variable}", {}, time.time())
    return fresh


def _switch_client(settings: Settings, found: FoundServer, server: str) -> bool:
    """Have one client start the registered server. False where its file could not be changed."""
    held = _list_held(found)
    try:
        backup = replace_entry(settings, found, server)
    except OrchestratorError as error:
        print_text(str(error), "red")
        return False
    print_text(f"{found.path}: {found.name} starts `toolwright run {server}`")
    print_text(f"what was there is kept in {backup}")
    if held:
        print_text(
            f"That copy holds the values of {', '.join(held)}: delete it once all works. "
            "`--undo` does not need it.",
            "yellow",
        )
    return True


def _list_held(found: FoundServer) -> list[str]:
    """The variables of all servers whose values the file has now, as its copy will."""
    entries = read_all_entries(CLIENTS[found.client], found.path)
    return [
        f"{keys[-1]}.{variable}"
        for keys, entry in entries.items()
        if isinstance(entry, dict) and "TOOLWRIGHT_HOME" not in list_variables(entry)
        for variable in list_variables(entry)
    ]


def _undo_imports(
    settings: Settings, names: Sequence[str], pin_file: Path | None
) -> dict[str, bool]:
    """Put back the entries of these servers, or of all; for each whether that was done."""
    records = [each for each in read_records(settings) if not names or each.server in names]
    if not records:
        which = f" as {', '.join(names)}" if names else ""
        print_text(f"Nothing was imported{which} that could be put back.")
        return {}
    # The values of its variables leave the vault, for the file that they were in.
    ask_pin(settings, pin_file)
    vault, done = open_vault(settings), dict[str, bool]()
    for record in reversed(records):
        try:
            restore_entry(settings, vault, record)
        except OrchestratorError as error:
            print_text(str(error), "red")
            done[record.server] = False
            continue
        done.setdefault(record.server, True)
        print_text(f"{record.path}: {record.name} is as it was")
        print_text(f"{record.server} stays registered: `toolwright remove {record.server}`")
    return done
