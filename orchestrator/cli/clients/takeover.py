"""Entries of clients' files that start a server behind the gate, and putting back what was there.

What was there is kept in the home, without the values of its variables: these are in the vault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.cli.clients.clients import (
    CLIENTS,
    build_start_command,
    exchange_entry,
    read_all_entries,
)
from orchestrator.cli.clients.found_servers import LAUNCHING, FoundServer
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.database.files import lock_file, write_atomically
from registry.secrets.vault import Vault

RECORD = "imported.json"
_ENVIRONMENTS = ("env", "envs")


@dataclass(frozen=True)
class ImportedEntry:
    """An entry of a client's file that was replaced by one that starts `server`. `before` is what
    was there, with the values of its variables left out; `keys` lead there, where it is not among
    the servers for every use of the client.
    """

    client: str
    path: str
    name: str
    server: str
    before: Mapping[str, Any]
    keys: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, ...]:
        """The path to the entry in the file."""
        return tuple(self.keys) or (*CLIENTS[self.client].keys, self.name)


def replace_entry(settings: Settings, found: FoundServer, server: str) -> Path:
    """Have a client start the registered server in place of the found one; the backup of its file.
    Keys of the entry that do not say how it is started stay.

    Raises OrchestratorError, and then nothing is changed.
    """
    start = replace(build_start_command(settings.home, server), name=found.name)
    kept = {key: value for key, value in found.entry.items() if key not in LAUNCHING}
    entry = {**CLIENTS[found.client].entry(start), **kept}
    before = _map_values(found.entry, {})
    record = ImportedEntry(found.client, str(found.path), found.name, server, before, found.keys)
    # Written first: an entry without a record could not be put back.
    with lock_file(settings.home / RECORD):
        _write_records(settings, [*read_records(settings), record])
    try:
        return exchange_entry(CLIENTS[found.client], found.path, found.keys, found.entry, entry)
    except OrchestratorError:
        with lock_file(settings.home / RECORD), suppress(ValueError):
            # Once: whoever was faster at the same entry has an equal one.
            records = read_records(settings)
            records.remove(record)
            _write_records(settings, records)
        raise


def restore_entry(settings: Settings, vault: Vault, record: ImportedEntry) -> Path:
    """Put back what a client's file had, its variables' values out of the vault; the backup.

    Raises OrchestratorError, and then nothing is changed.
    """
    client, path = CLIENTS[record.client], Path(record.path)
    present = read_all_entries(client, path).get(record.place)
    arguments = present.get("args") if isinstance(present, Mapping) else None
    is_ours = isinstance(arguments, list) and arguments[-2:] == ["run", record.server]
    if not isinstance(present, Mapping) or not is_ours:
        raise OrchestratorError(
            f"{path} has another `{record.name}` than Toolwright put there; nothing was changed."
        )
    secrets = {}
    for variable in list_variables(record.before):
        secret = vault.get(record.server, variable)
        if secret is None:
            raise OrchestratorError(
                f"the vault has no {record.server}.{variable}, which `{record.name}` had in "
                f"{path}; its value is in a backup beside that file. Nothing was changed."
            )
        secrets[variable] = secret.reveal()
    before = _map_values(record.before, secrets)
    backup = exchange_entry(client, path, record.place, present, before)
    with lock_file(settings.home / RECORD):
        _write_records(settings, [each for each in read_records(settings) if each != record])
    return backup


def read_records(settings: Settings) -> list[ImportedEntry]:
    """What was replaced and not put back, oldest first. Raises OrchestratorError."""
    path = settings.home / RECORD
    try:
        rows = json.loads(path.read_text())
        return [ImportedEntry(**{**row, "keys": tuple(row.get("keys", ()))}) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise OrchestratorError(f"{path} cannot be read: {error}. Put it back.") from error


def list_variables(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the variables that an entry gives its server."""
    places = (entry, entry.get("command"))
    found = [
        name
        for place in places
        if isinstance(place, Mapping)
        for key in _ENVIRONMENTS
        if isinstance(place.get(key), Mapping)
        for name in place[key]
    ]
    return tuple(found)


def _map_values(entry: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """The entry with these values of its variables, "" for others."""
    made = dict(entry)
    for key in _ENVIRONMENTS:
        if isinstance(made.get(key), Mapping):
            made[key] = {name: values.get(name, "") for name in made[key]}
    if isinstance(made.get("command"), Mapping):
        made["command"] = _map_values(made["command"], values)
    return made


def _write_records(settings: Settings, records: Sequence[ImportedEntry]) -> None:
    written = json.dumps([asdict(each) for each in records], indent=1)
    write_atomically(settings.home / RECORD, written.encode())
