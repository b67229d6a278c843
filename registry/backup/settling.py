"""Settling in a restored database of all that was under way when it was backed up."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, delete, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.errors import BackupRefused

BY = "restore"
UNKNOWN, EXPIRED = "approval.unknown", "approval.expired"


@dataclass(frozen=True)
class Unsettled:
    """Ids of approvals that waited, of those that were approved or begun, and of processes."""

    expired: tuple[str, ...]
    unknown: tuple[str, ...]
    processes: tuple[str, ...]


class RestoredState(Repository):
    """Ends what was under way. Nothing of it is known to have stayed undone: the home from which
    the backup was made went on.
    """

    def settle_approvals(self, now: float, decided: Collection[str] = ()) -> Unsettled:
        """Requests that waited expire; approved ones that were not sent, and those that waited and
        were `decided` since, are `unknown` and never carried out. Those in mid-send are left to the
        recovery of their processes, which are returned, and which are forgotten.
        """
        approvals, invocations = tables.approvals, tables.invocations
        with self._database.write() as connection:
            found = connection.execute(select(approvals.c.id, approvals.c.state)).all()
            waiting = [row.id for row in found if row.state == "pending"]
            waited = tuple(id for id in waiting if id not in decided)
            begun_since = tuple(id for id in waiting if id in decided)
            approved = tuple(row.id for row in found if row.state in ("approved", "claimed"))
            approved += begun_since
            for ids, state, kind in ((waited, "expired", EXPIRED), (approved, "unknown", UNKNOWN)):
                for id in ids:
                    moved = update(approvals).where(approvals.c.id == id).values(state=state)
                    connection.execute(moved)
                    self._append_audit_row(connection, kind, id, {"by": BY}, now)
            sending = tuple(row.id for row in found if row.state == "sending")
            owners = select(approvals.c.claimed_by).where(approvals.c.state == "sending")
            begun = select(invocations.c.process).where(invocations.c.state == "intended")
            processes = {str(one) for one in connection.execute(owners.union(begun)).scalars()}
            connection.execute(delete(tables.processes))
        return Unsettled(waited, (*approved, *sending), tuple(sorted(processes)))

    def note_all(
        self, kind: str, notes: Iterable[tuple[str, Mapping[str, Any]]], now: float
    ) -> None:
        """Add an audit row for each (subject, payload), in one transaction."""
        with self._database.write() as connection:
            said = ((subject, {"by": BY, **payload}) for subject, payload in notes)
            self._append_audit_rows(connection, kind, said, now)


def check_database(file: str, path: Path) -> None:
    """Raises BackupRefused where a database is damaged, or has other tables, indices or triggers
    than ours: a trigger of somebody else would run with our own statements.
    """
    connection = sqlite3.connect(path)
    try:
        found = _describe_schema(connection)
        sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise BackupRefused(file, f"its database cannot be read: {error}") from error
    finally:
        connection.close()
    if found != _describe_own_schema():
        raise BackupRefused(file, "its database has other tables than this version's")
    if sound != "ok":
        raise BackupRefused(file, f"its database is damaged: {str(sound)[:200]}")


Schema = list[tuple[str, str, str]]


def _describe_own_schema() -> Schema:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        tables.metadata.create_all(connection)
        tables.alembic_version.create(connection)
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, sqlite3.Connection)
        found = _describe_schema(raw)
    engine.dispose()
    return found


def _describe_schema(connection: sqlite3.Connection) -> Schema:
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master")
    return sorted((str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in rows)
