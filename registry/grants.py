"""What a person allowed by name: places to read documentation at, and hosts to send requests to."""

from __future__ import annotations

from sqlalchemy import Delete, delete, insert, select

from registry import schema
from registry.audit import Ledger
from registry.jsontext import clean
from registry.records import Grant, GrantKind, Source

_TEXT = 2_000


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
        by = clean(grant.granted_by, _TEXT)
        with self._database.write() as connection:
            connection.execute(_delete_grant(grant.origin, grant.kind))
            connection.execute(insert(schema.grants), {**vars(grant), "granted_by": by})
            payload = {"kind": grant.kind, "by": by}
            self._append(connection, "grant.added", grant.origin, payload, grant.granted)

    def remove_grant(self, origin: str, kind: GrantKind, by: str, now: float) -> bool:
        with self._database.write() as connection:
            removed = connection.execute(_delete_grant(origin, kind)).rowcount == 1
            if removed:
                payload = {"kind": kind, "by": clean(by, _TEXT)}
                self._append(connection, "grant.removed", origin, payload, now)
        return removed

    def permissions(self, server: str) -> frozenset[str]:
        """What a person granted a server: the texts of permissions, such as `fs:/data:ro`."""
        prefix = f"{server} "
        given = (grant.origin for grant in self.grants("permission"))
        return frozenset(each.removeprefix(prefix) for each in given if each.startswith(prefix))

    def grants(self, kind: GrantKind | None = None) -> tuple[Grant, ...]:
        """All grants, of one kind or of both, by origin."""
        grants = schema.grants
        query = select(grants).order_by(grants.c.origin, grants.c.kind)
        if kind is not None:
            query = query.where(grants.c.kind == kind)
        with self._database.read() as connection:
            return tuple(Grant(**row) for row in connection.execute(query).mappings())


def _delete_grant(origin: str, kind: GrantKind) -> Delete:
    grants = schema.grants
    return delete(grants).where(grants.c.origin == origin, grants.c.kind == kind)
