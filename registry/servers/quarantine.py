"""Quarantine of servers: why one is in it, trying its own cases before, and lifting it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text
from registry.models import CALLABLE, Entry, EntryState
from registry.servers import standings
from registry.servers.entries import STATE, ServerTable, change_state
from registry.trust import TrustRecord, condemn_record, restart_record, vouch_for_record
from sandbox.bundle.launch import AUTHOR

TEXT = 2_000
BY_RECORD = ("trust", "cases")
"""Who quarantines by what calls came to; a proof that holds lifts it."""


@dataclass(frozen=True)
class Quarantine:
    """Why a server is quarantined. `by` is `trust` (its record), `cases` (its own cases fail),
    `guard` (its definitions changed) or `trial` (it did worse than the version before).
    """

    by: str
    reason: str


class QuarantineTable(Repository):
    """The states and records of servers that are suspected, quarantined and taken up again."""

    def vouch(self, name: str, version: int, now: float) -> None:
        """Note that the server's own cases pass: its unclear failures are not its own. Nothing
        where another version is current.
        """
        with self._database.write() as connection:
            if self._change_records(connection, name, version, vouch_for_record):
                self._append_audit_row(connection, "cases.pass", name, {"version": version}, now)

    def condemn(self, name: str, version: int, reason: str, now: float) -> bool:
        """Quarantine a server whose own cases fail. False where another version is current, or it
        is out of use already.
        """
        with self._database.write() as connection:
            before = standings.load_state(connection, name)
            if before not in CALLABLE:
                return False
            if not self._change_records(connection, name, version, condemn_record):
                return False
            change_state(connection, name, "quarantined")
            told = {"by": "cases", "reason": clean_text(reason, TEXT)}
            payload = {"state": "quarantined", "before": before, **told}
            self._append_audit_row(connection, STATE, name, payload, now)
        return True

    def lift(
        self, name: str, version: int, state: EntryState, by: str, reason: str, now: float
    ) -> bool:
        """Put a quarantined server back in use, with a ladder that starts again. False where
        another version is current, or it is not quarantined.
        """
        with self._database.write() as connection:
            if standings.load_state(connection, name) != "quarantined":
                return False
            restart = partial(restart_record, version=version)
            if not self._change_records(connection, name, version, restart):
                return False
            change_state(connection, name, state)
            told = {"by": by, "reason": clean_text(reason, TEXT)}
            payload = {"state": state, "before": "quarantined", **told}
            self._append_audit_row(connection, STATE, name, payload, now)
        return True

    def _change_records(
        self,
        connection: Connection,
        name: str,
        version: int,
        change: Callable[[TrustRecord], TrustRecord],
    ) -> bool:
        """Change the records of a server and its operations; False for another version's."""
        records = standings.load_records(connection, name)
        if records[standings.SERVER].version != version:
            return False
        for operation, record in records.items():
            standings.save_record(connection, name, operation, change(record), fresh=False)
        return True


def explain_quarantine(servers: ServerTable, name: str) -> str:
    """Why a server is quarantined and what lifts it, in a sentence each; "" where it is not.

    Raises Unknown.
    """
    entry = servers.get(name)
    if entry.state != "quarantined":
        return ""
    said = servers.get_last_state(name)
    why = Quarantine(str(said.get("by", "")), str(said.get("reason", "")))
    has_earlier = len(servers.find_versions(name)) > 1
    return render_quarantine(why, list_ways_out(entry, why, has_earlier))


def explain_archive(entry: Entry) -> str:
    """What brings an archived server back."""
    if entry.created_by == AUTHOR:
        return f"`toolwright add {entry.name} -- COMMAND` brings it back"
    if entry.created_by == "compiler" and entry.source:
        return f"`{render_forge_command(entry)}` brings it back"
    return "whoever forges it again brings it back"


def render_forge_command(entry: Entry) -> str:
    """What a person types to have a server made anew of its source."""
    return shlex.join(["toolwright", "forge", entry.source, "--name", entry.name])


def list_ways_out(entry: Entry, quarantine: Quarantine, has_earlier: bool) -> tuple[str, ...]:
    """The commands that put a quarantined server back in use."""
    if entry.created_by == AUTHOR:
        return (f"toolwright add {entry.name} -- COMMAND",)
    back = (f"toolwright rollback {entry.name}",) if has_earlier else ()
    if quarantine.by in BY_RECORD:
        return (f"toolwright reprove {entry.name}", *back)
    return back


def render_quarantine(quarantine: Quarantine, ways: tuple[str, ...]) -> str:
    """Why a server is quarantined and what lifts it."""
    typed = " or ".join(f"`{way}`" for way in ways)
    lifted = f"{typed} lifts that where it holds; so does its next version."
    lifted = lifted if ways else "Its next version lifts that."
    return f"quarantined by {quarantine.by or 'nobody'}: {quarantine.reason}. {lifted}"
