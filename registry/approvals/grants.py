"""Tables of documentation sources and of grants: hosts, permissions, budgets and the other things
that a person allows by name.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Delete, delete, insert, select

from registry.database import tables
from registry.database.audit_chain import ARCHIVED, SUBJECT, Repository
from registry.database.canonical import clean_text
from registry.database.rows import fetch_mappings
from registry.errors import GrantStale
from registry.models import DocumentationSource, Grant, GrantKind

ADDED = "grant.added"
REVOKED = "grant.removed"
_TEXT = 2_000
_COLUMNS = tuple(column.name for column in tables.grants.columns)
# Built once: every server that is looked up asks for them.
_SOURCES = select(tables.sources).order_by(tables.sources.c.url)


class GrantTable(Repository):
    """Sources by URL, and grants by origin and kind. Adding one again replaces it; removing one
    that does not exist returns False.
    """

    def add_source(self, source: DocumentationSource, now: float) -> None:
        sources = tables.sources
        with self._database.write() as connection:
            connection.execute(delete(sources).where(sources.c.url == source.url))
            connection.execute(insert(sources), vars(source))
            payload = {"header": source.header, "secret": source.secret}
            self._append_audit_row(connection, "source.added", source.url, payload, now)

    def remove_source(self, url: str, now: float) -> bool:
        with self._database.write() as connection:
            query = delete(tables.sources).where(tables.sources.c.url == url)
            removed = connection.execute(query).rowcount == 1
            if removed:
                self._append_audit_row(connection, "source.removed", url, {}, now)
        return removed

    def find_sources(self) -> tuple[DocumentationSource, ...]:
        """All registered sources, by URL."""
        with self._database.look() as connection:
            rows = fetch_mappings(connection, _SOURCES, {})
        return tuple(DocumentationSource(**row) for row in rows)

    def add_grant(self, grant: Grant) -> None:
        """Store a signed grant in place of an earlier one. Raises GrantStale."""
        by = clean_text(grant.granted_by, _TEXT)
        row = {name: getattr(grant, name) for name in _COLUMNS} | {"granted_by": by}
        with self._database.write() as connection:
            last = _find_last_serial(connection, grant.origin, grant.kind)
            if grant.serial != last.next:
                raise GrantStale(grant.origin)
            connection.execute(_delete_grant(grant.origin, grant.kind))
            if last.next > last.ended + 1:
                # A copy of the row that is replaced counts for nothing from here on.
                replaced = {"kind": grant.kind, "by": by, "serial": grant.serial - 1}
                self._append_audit_row(connection, REVOKED, grant.origin, replaced, grant.granted)
            connection.execute(insert(tables.grants), row)
            payload = {"kind": grant.kind, "by": by}
            if grant.detail:
                payload["detail"] = grant.detail
            self._append_audit_row(connection, ADDED, grant.origin, payload, grant.granted)

    def get_next_serial(self, origin: str, kind: GrantKind) -> int:
        """The serial number that a new grant has to be signed with."""
        with self._database.read() as connection:
            return _find_last_serial(connection, origin, kind).next

    def remove_grant(self, origin: str, kind: GrantKind, by: str, now: float) -> bool:
        """Revoke a grant; True where there was one.

        The audit records the revoked serial even where the row is gone already, so that a copy of
        the row that somebody inserts again is not valid. Of a grant that never was it records
        nothing.
        """
        with self._database.write() as connection:
            last = _find_last_serial(connection, origin, kind)
            removed = connection.execute(_delete_grant(origin, kind)).rowcount == 1
            # An archive may hold the row that added it.
            if last.next > last.ended + 1 or _has_archive(connection):
                payload = {"kind": kind, "by": clean_text(by, _TEXT), "serial": last.ended + 1}
                self._append_audit_row(connection, REVOKED, origin, payload, now)
        return removed

    def find_grants(self, kind: GrantKind | None = None) -> tuple[Grant, ...]:
        """All stored grants, of one kind or of all, by origin. Their signatures are not verified
        here but in `orchestrator.approvals.grants`, which knows the key.
        """
        grants = tables.grants
        query = select(grants).order_by(grants.c.origin, grants.c.kind)
        if kind is not None:
            query = query.where(grants.c.kind == kind)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            ended = _find_ended_serials(connection, {row["origin"] for row in rows})
        return tuple(Grant(**row, revoked=ended[row["origin"], row["kind"]]) for row in rows)


@dataclass(frozen=True)
class _LastSerial:
    """The newest revoked serial of a grant, and the one that the next grant has."""

    ended: int
    next: int


def _find_last_serial(connection: Connection, origin: str, kind: GrantKind) -> _LastSerial:
    """The serials of a grant. The serial of a row that lies there is not believed: whoever wrote it
    may have chosen it. A grant that counts has the one after the newest revoked.
    """
    grants, audit = tables.grants, tables.audit
    ended = _find_ended_serials(connection, (origin,))[origin, kind]
    stored = select(grants.c.kind).where(grants.c.origin == origin, grants.c.kind == kind)
    told = (
        select(audit.c.kind, audit.c.payload)
        .where(audit.c.subject == clean_text(origin, SUBJECT), audit.c.kind.in_((ADDED, REVOKED)))
        .order_by(audit.c.id)
    )
    rows = [row for row in connection.execute(told) if json.loads(row.payload)["kind"] == kind]
    # Also where somebody deleted the row: its copy is to count for nothing.
    there = connection.execute(stored).first() is not None or bool(rows and rows[-1].kind == ADDED)
    return _LastSerial(ended, ended + 2 if there else ended + 1)


def _has_archive(connection: Connection) -> bool:
    audit = tables.audit
    query = select(audit.c.id).where(audit.c.kind == ARCHIVED).limit(1)
    return connection.execute(query).first() is not None


def _delete_grant(origin: str, kind: GrantKind) -> Delete:
    grants = tables.grants
    return delete(grants).where(grants.c.origin == origin, grants.c.kind == kind)


def _find_ended_serials(
    connection: Connection, origins: Collection[str]
) -> Mapping[tuple[str, str], int]:
    """The newest revoked serial by (origin, kind); 0 where none was revoked."""
    audit = tables.audit
    ended: dict[tuple[str, str], int] = defaultdict(int)
    subjects = {clean_text(origin, SUBJECT): origin for origin in origins}
    query = select(audit.c.subject, audit.c.payload).where(
        audit.c.subject.in_(subjects), audit.c.kind == REVOKED
    )
    for subject, payload in connection.execute(query) if subjects else ():
        said = json.loads(payload)
        of = subjects[subject], said["kind"]
        # Rows from before there were serials ended the grant of that time, which had none.
        ended[of] = max(ended[of], int(said.get("serial", 0)))
    return ended
