"""What servers are registered, in which version, with which tools and reports."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, update

from registry import jobs, schema, search, standings, trust
from registry.audit import Ledger
from registry.errors import Unknown, VersionConflict
from registry.jsontext import clean, compact
from registry.lineage import Line
from registry.records import Entry, EntryState, Summary, Tool
from registry.trust import Standing, TrustRecord
from sandbox import report as stage_report
from sandbox.report import StageReport

TEXT = 20_000


_SUMMARIES = (
    select(
        schema.entries.c.name,
        schema.entries.c.version,
        schema.entries.c.state,
        schema.versions.c.title,
        func.count(schema.tools.c.name).label("tools"),
    )
    .join(
        schema.versions,
        (schema.versions.c.entry == schema.entries.c.name)
        & (schema.versions.c.version == schema.entries.c.version),
    )
    .outerjoin(
        schema.tools,
        (schema.tools.c.entry == schema.entries.c.name)
        & (schema.tools.c.version == schema.entries.c.version),
    )
    .group_by(
        schema.entries.c.name,
        schema.entries.c.version,
        schema.entries.c.state,
        schema.versions.c.title,
    )
    .order_by(schema.entries.c.name)
)


class Entries(Ledger):
    """The registered servers. All versions are kept; one of them is current."""

    def publish(
        self,
        entry: Entry,
        reports: tuple[StageReport, ...] = (),
        *,
        now: float,
        job: tuple[str, int] | None = None,
    ) -> Entry:
        """Register a version, with its tools, reports, trust and search rows, all or nothing.

        `entry.state` becomes the server's state. Publishing the current digest again changes
        nothing but that an archived server is in use again, and returns what is registered. `job`
        is the id and attempt on whose behalf it happens. Raises VersionConflict, JobLost.
        """
        with self._database.write() as connection:
            if job is not None:
                jobs.held(connection, *job)
            current = _find(connection, _current().where(schema.entries.c.name == entry.name))
            if current is not None and current.digest == entry.digest:
                return self._revived(connection, current, now)
            if current is not None and entry.version <= current.version:
                raise VersionConflict(entry.name, entry.version, current.version)
            _insert(connection, entry, reports, exists=current is not None)
            standings.start(connection, entry.name, entry.version)
            search.index(connection, entry)
            payload = {
                "version": entry.version,
                "digest": entry.digest,
                "state": entry.state,
                "verdicts": {report.stage: report.verdict for report in reports},
            }
            self._append(connection, "publish", entry.name, payload, now)
        return entry

    def _revived(self, connection: Connection, current: Entry, now: float) -> Entry:
        """An archived server that is published again as it was is in use again."""
        if current.state != "archived":
            return current
        change_state(connection, current.name, "active")
        payload = {"state": "active", "by": "publish", "reason": "published again"}
        self._append(connection, "state", current.name, payload, now)
        return replace(current, state="active")

    def entries(self, states: tuple[EntryState, ...] | None = None) -> tuple[Entry, ...]:
        """All servers in their current version, by name; only those in `states` where given."""
        query = _current().order_by(schema.entries.c.name)
        if states is not None:
            query = query.where(schema.entries.c.state.in_(states))
        with self._database.read() as connection:
            return _load(connection, query)

    def summaries(self) -> tuple[Summary, ...]:
        """All servers in a line each, by name: what costs nothing but the lines."""
        with self._database.read() as connection:
            records = standings.servers(connection)
            return tuple(
                Summary(**row, standing=standing_of(records[row["name"]], row["state"]))
                for row in connection.execute(_SUMMARIES).mappings()
            )

    def entry(self, name: str) -> Entry:
        """The current version of a server. Raises Unknown."""
        with self._database.read() as connection:
            found = _find(connection, _current().where(schema.entries.c.name == name))
        if found is None:
            raise Unknown("server", name)
        return found

    def versions(self, name: str) -> tuple[Entry, ...]:
        """All versions of a server, newest first. Their `state` is the server's. Raises Unknown."""
        versions = schema.versions
        query = _all().where(versions.c.entry == name).order_by(versions.c.version.desc())
        with self._database.read() as connection:
            found = _load(connection, query)
        if not found:
            raise Unknown("server", name)
        return found

    def lineage(self) -> tuple[Line, ...]:
        """Every version of every server, in a line each, by name and version."""
        versions, entries = schema.versions, schema.entries
        query = (
            select(versions, entries.c.state, entries.c.version.label("newest"))
            .join(entries)
            .order_by(versions.c.entry, versions.c.version)
        )
        with self._database.read() as connection:
            return tuple(_line(row) for row in connection.execute(query).mappings())

    def reports(self, name: str, version: int) -> tuple[StageReport, ...]:
        """The stage reports of a version, in the order the stages ran."""
        reports = schema.reports
        query = (
            select(reports.c.report)
            .where((reports.c.entry == name) & (reports.c.version == version))
            .order_by(reports.c.position)
        )
        with self._database.read() as connection:
            texts = connection.execute(query).scalars().all()
        return tuple(stage_report.from_json(json.loads(text)) for text in texts)

    def set_state(
        self, name: str, state: EntryState, now: float, by: str, reason: str = ""
    ) -> None:
        """Put a server into a state, for all its versions. Raises Unknown."""
        with self._database.write() as connection:
            change_state(connection, name, state)
            payload = {"state": state, "by": clean(by, TEXT), "reason": clean(reason, TEXT)}
            self._append(connection, "state", name, payload, now)

    def last_state(self, name: str) -> Mapping[str, Any]:
        """What the audit says of a server's last change of state: `state`, `by`, `reason`."""
        audit = schema.audit
        query = (
            select(audit.c.payload)
            .where((audit.c.subject == name) & (audit.c.kind == "state"))
            .order_by(audit.c.id.desc())
            .limit(1)
        )
        with self._database.read() as connection:
            payload = connection.execute(query).scalar()
        said: Mapping[str, Any] = json.loads(payload) if payload else {}
        return said

    def archive(self, name: str, now: float, by: str, reason: str = "") -> None:
        """Take a server out of use; its rows and files stay. Raises Unknown."""
        self.set_state(name, "archived", now, by, reason)


def standing_of(record: TrustRecord, state: EntryState) -> Standing:
    return trust.standing_of(record, experimental=state == "experimental")


def change_state(connection: Connection, name: str, state: EntryState) -> None:
    entries = schema.entries
    query = update(entries).where(entries.c.name == name).values(state=state)
    if connection.execute(query).rowcount == 0:
        raise Unknown("server", name)


def _insert(
    connection: Connection, entry: Entry, reports: tuple[StageReport, ...], exists: bool
) -> None:
    entries = schema.entries
    head = {"version": entry.version, "state": entry.state}
    if exists:
        connection.execute(update(entries).where(entries.c.name == entry.name).values(head))
    else:
        connection.execute(insert(entries).values(name=entry.name, **head))
    connection.execute(insert(schema.versions), _version_row(entry))
    key = {"entry": entry.name, "version": entry.version}
    tools = [{**key, "position": i, **vars(tool)} for i, tool in enumerate(entry.tools)]
    if tools:
        connection.execute(insert(schema.tools), tools)
    rows = [
        {**key, "position": i, "report": compact(stage_report.to_json(report))}
        for i, report in enumerate(reports)
    ]
    if rows:
        connection.execute(insert(schema.reports), rows)


def _version_row(entry: Entry) -> dict[str, Any]:
    texts = ("title", "description", "created_by", "source", "base_url", "base_image", "parent")
    return {
        "entry": entry.name,
        "version": entry.version,
        "digest": entry.digest,
        "created": entry.created,
        "permissions": compact(entry.permissions),
        **{name: clean(getattr(entry, name), TEXT) for name in texts},
    }


def _all() -> Select[Any]:
    return select(schema.versions, schema.entries.c.state).join(schema.entries)


def _current() -> Select[Any]:
    return _all().where(schema.versions.c.version == schema.entries.c.version)


def _find(connection: Connection, query: Select[Any]) -> Entry | None:
    return next(iter(_load(connection, query)), None)


def _load(connection: Connection, query: Select[Any]) -> tuple[Entry, ...]:
    rows = connection.execute(query).mappings().all()
    tools = _tools(connection, query) if rows else {}
    return tuple(_entry(row, tuple(tools[row["entry"], row["version"]])) for row in rows)


def _tools(connection: Connection, query: Select[Any]) -> dict[tuple[str, int], list[Tool]]:
    wanted = query.order_by(None).subquery()
    columns = (schema.tools.c[name] for name in ("name", "access", "destructive", "listed"))
    rows = connection.execute(
        select(schema.tools.c.entry, schema.tools.c.version, *columns)
        .join(
            wanted,
            (schema.tools.c.entry == wanted.c.entry) & (schema.tools.c.version == wanted.c.version),
        )
        .order_by(schema.tools.c.entry, schema.tools.c.version, schema.tools.c.position)
    )
    found: dict[tuple[str, int], list[Tool]] = defaultdict(list)
    for entry, version, *values in rows:
        found[entry, version].append(Tool(*values))
    return found


def _line(row: RowMapping) -> Line:
    told = ("version", "digest", "created", "created_by", "parent", "state")
    values = {name: row[name] for name in told}
    return Line(name=row["entry"], current=row["version"] == row["newest"], **values)


def _entry(row: RowMapping, tools: tuple[Tool, ...]) -> Entry:
    return Entry(
        **{
            **{name: value for name, value in row.items() if name != "entry"},
            "name": row["entry"],
            "permissions": tuple(json.loads(row["permissions"])),
            "tools": tools,
        }
    )
