"""What a person allowed by name: places to read documentation at, hosts to send requests to, and
what a server may have of this machine.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, Delete, delete, insert, select

from registry import schema
from registry.audit import SUBJECT, Ledger
from registry.errors import GrantStale
from registry.jsontext import clean
from registry.records import Grant, GrantKind, Source

REVOKED = "grant.removed"
_TEXT = 2_000
_COLUMNS = tuple(column.name for column in schema.grants.columns)


class Grants(Ledger):
    """Sources and grants. Adding one again replaces it; removing what is not there is False."""

    def add_source(self, source: Source, now: float) -> None:
        sources = schema.sources
        with self._database.write() as connection:
            connection.execute(delete(sources).where(sources.c.url == source.url))
            connection.execute(insert(sources), vars(source))
            payload = {"header": source.header, "secret": source.secret}
            self._append(connection, "source.added", source.url, payload, now)

    def remove_source(self, url: str, now: float) -> bool:
        with self._database.write() as connection:
            query = delete(schema.sources).where(schema.sources.c.url == url)
            removed = connection.execute(query).rowcount == 1
            if removed:
                self._append(connection, "source.removed", url, {}, now)
        return removed

    def sources(self) -> tuple[Source, ...]:
        """All registered sources, by URL."""
        query = select(schema.sources).order_by(schema.sources.c.url)
        with self._database.read() as connection:
            return tuple(Source(**row) for row in connection.execute(query).mappings())

    def add_grant(self, grant: Grant) -> None:
        """Store a signed grant in place of an earlier one. Raises GrantStale."""
        by = clean(grant.granted_by, _TEXT)
        row = {name: getattr(grant, name) for name in _COLUMNS} | {"granted_by": by}
        with self._database.write() as connection:
            if grant.serial != _ended(connection, (grant.origin,))[grant.origin, grant.kind] + 1:
                raise GrantStale(grant.origin)
            connection.execute(_delete_grant(grant.origin, grant.kind))
            connection.execute(insert(schema.grants), row)
            payload = {"kind": grant.kind, "by": by}
            if grant.detail:
                payload["detail"] = grant.detail
            self._append(connection, "grant.added", grant.origin, payload, grant.granted)

    def next_serial(self, origin: str, kind: GrantKind) -> int:
        """The serial that a grant has to be signed with."""
        with self._database.read() as connection:
            return _ended(connection, (origin,))[origin, kind] + 1

    def remove_grant(self, origin: str, kind: GrantKind, by: str, now: float) -> bool:
        """Take a grant away; whether there was one.

        The audit keeps which serial ended, also where the row is gone already: a copy of it that
        somebody puts back counts for nothing.
        """
        with self._database.write() as connection:
            removed = connection.execute(_delete_grant(origin, kind)).rowcount == 1
            ended = _ended(connection, (origin,))[origin, kind] + 1
            payload = {"kind": kind, "by": clean(by, _TEXT), "serial": ended}
            self._append(connection, REVOKED, origin, payload, now)
        return removed

    def grants(self, kind: GrantKind | None = None) -> tuple[Grant, ...]:
        """All grants as they are stored, of one kind or of all, by origin. Whether one counts is
        for who knows the key: `orchestrator.consents`.
        """
        grants = schema.grants
        query = select(grants).order_by(grants.c.origin, grants.c.kind)
        if kind is not None:
            query = query.where(grants.c.kind == kind)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            ended = _ended(connection, {row["origin"] for row in rows})
        return tuple(Grant(**row, revoked=ended[row["origin"], row["kind"]]) for row in rows)


def _delete_grant(origin: str, kind: GrantKind) -> Delete:
    grants = schema.grants
    return delete(grants).where(grants.c.origin == origin, grants.c.kind == kind)


def _ended(connection: Connection, origins: Collection[str]) -> Mapping[tuple[str, str], int]:
    """By origin and kind, the newest serial that was taken away; 0 where none was."""
    audit = schema.audit
    ended: dict[tuple[str, str], int] = defaultdict(int)
    subjects = {clean(origin, SUBJECT): origin for origin in origins}
    query = select(audit.c.subject, audit.c.payload).where(
        audit.c.subject.in_(subjects), audit.c.kind == REVOKED
    )
    for subject, payload in connection.execute(query) if subjects else ():
        said = json.loads(payload)
        of = subjects[subject], said["kind"]
        # Rows from before there were serials ended the grant of that time, which had none.
        ended[of] = max(ended[of], int(said.get("serial", 0)))
    return ended
