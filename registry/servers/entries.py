"""Table of registered servers with their versions, tools and reports."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, func, insert, select, update

from registry import trust
from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_compact_json
from registry.database.rows import AnyConnection, fetch_mappings, fetch_rows
from registry.errors import RowNotFound, VersionConflict
from registry.jobs import jobs
from registry.models import CALLABLE, Entry, EntryState, RegisteredTool, ServerSummary
from registry.search import index
from registry.servers import standings
from registry.servers.lineage import LineageEntry
from registry.servers.standings import SERVER
from registry.trust import Standing, TrustRecord
from sandbox.bundle import report as stage_report
from sandbox.bundle.report import StageReport
from sandbox.wire.policy import SAFE_METHODS

PUBLISHED, STATE = "publish", "state"
EDIT_REFUSED = "edit.refused"
"""Kinds of audit rows about a server."""
TEXT = 20_000
_TOOL_COLUMNS = ("name", "access", "destructive", "listed", "operation_digest", "self_evident")


_PUBLISHED = select(tables.audit.c.payload).where(
    (tables.audit.c.subject == bindparam("name")) & (tables.audit.c.kind == bindparam("kind"))
)
_STATES = select(tables.entries.c.name, tables.entries.c.state).order_by(tables.entries.c.name)
_SUMMARIES = (
    select(
        tables.entries.c.name,
        tables.entries.c.version,
        tables.entries.c.state,
        tables.versions.c.title,
        func.count(tables.tools.c.name).label("tools"),
    )
    .join(
        tables.versions,
        (tables.versions.c.entry == tables.entries.c.name)
        & (tables.versions.c.version == tables.entries.c.version),
    )
    .outerjoin(
        tables.tools,
        (tables.tools.c.entry == tables.entries.c.name)
        & (tables.tools.c.version == tables.entries.c.version),
    )
    .group_by(
        tables.entries.c.name,
        tables.entries.c.version,
        tables.entries.c.state,
        tables.versions.c.title,
    )
    .order_by(tables.entries.c.name)
)


@dataclass(frozen=True)
class StateChange:
    """A server's change to a state, at a time (epoch seconds), and why."""

    at: float
    state: str
    reason: str


class ServerTable(Repository):
    """Registered servers by name. All versions are kept; one of them is current."""

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
                jobs.get_held_job(connection, *job)
            current = _load_current(connection, entry.name)
            if current is not None and current.digest == entry.digest:
                return self._revive_archived(connection, current, now)
            if current is not None and entry.version <= current.version:
                raise VersionConflict(entry.name, entry.version, current.version)
            _insert_version(connection, entry, reports, exists=current is not None)
            lifted = current is not None and current.state == "quarantined"
            standings.start_records(connection, entry.name, entry.version, lifted)
            index.index_entry(connection, entry)
            payload = {
                "version": entry.version,
                "digest": entry.digest,
                "state": entry.state,
                "verdicts": {report.stage: report.verdict for report in reports},
                "reads": sorted(_find_unsafe_reads(entry)),
            }
            self._append_audit_row(connection, PUBLISHED, entry.name, payload, now)
        return entry

    def _revive_archived(self, connection: Connection, current: Entry, now: float) -> Entry:
        """Reactivate an archived server whose current digest is published again."""
        if current.state != "archived":
            return current
        change_state(connection, current.name, "active")
        payload = {"state": "active", "by": "publish", "reason": "published again"}
        self._append_audit_row(connection, STATE, current.name, payload, now)
        return replace(current, state="active")

    def find(self, states: tuple[EntryState, ...] | None = None) -> tuple[Entry, ...]:
        """All servers in their current version, by name; only those in `states` where given."""
        query = _select_current().order_by(tables.entries.c.name)
        if states is not None:
            query = query.where(tables.entries.c.state.in_(states))
        with self._database.read() as connection:
            return _load_entries(connection, query)

    def find_summaries(self) -> tuple[ServerSummary, ...]:
        """The summaries of all servers, by name, without loading their tools."""
        with self._database.read() as connection:
            records = standings.load_server_records(connection)
            refusing = standings.find_refusing_tools(connection)
            return tuple(
                ServerSummary(
                    **row,
                    standing=compute_server_standing(records[row["name"]], row["state"]),
                    refusing=refusing.get(row["name"], ()),
                )
                for row in connection.execute(_SUMMARIES).mappings()
            )

    def find_most_called(self, limit: int) -> tuple[tuple[str, ...], int]:
        """The names of the servers that can be called, those that were called most first, at most
        `limit` of them; and how many there are.
        """
        entries, records = tables.entries, tables.trust
        callable_now = entries.c.state.in_(CALLABLE)
        query = (
            select(entries.c.name)
            .join(records, (records.c.entry == entries.c.name) & (records.c.operation == SERVER))
            .where(callable_now)
            .order_by(records.c.total.desc(), entries.c.name)
            .limit(limit)
        )
        count = select(func.count()).select_from(entries).where(callable_now)
        with self._database.read() as connection:
            names = tuple(connection.execute(query).scalars())
            return names, int(connection.execute(count).scalar_one())

    def find_states(self) -> dict[str, EntryState]:
        """The state of each server by its name, without anything else of it."""
        with self._database.read() as connection:
            return dict(fetch_rows(connection, _STATES, {}))

    def find_permissions(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The permissions of these servers' current versions, in the order of the names."""
        wanted = tuple(names)
        versions, entries = tables.versions, tables.entries
        query = (
            select(entries.c.name, versions.c.permissions)
            .join(versions, versions.c.entry == entries.c.name)
            .where(versions.c.version == entries.c.version, entries.c.name.in_(wanted))
        )
        with self._database.read() as connection:
            found = {
                row.name: tuple(json.loads(row.permissions)) for row in connection.execute(query)
            }
        return {name: found[name] for name in wanted if name in found}

    def get(self, name: str) -> Entry:
        """The current version of a server. Raises Unknown."""
        with self._database.look() as connection:
            found = _load_current(connection, name)
        if found is None:
            raise RowNotFound("server", name)
        return found

    def find_current(self, name: str) -> tuple[int, str] | None:
        """The number and the digest of a server's current version, without anything else of it;
        None where there is no such server.
        """
        with self._database.look() as connection:
            rows = fetch_rows(connection, _CURRENT_DIGEST, {"name": name})
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def find_versions(self, name: str) -> tuple[Entry, ...]:
        """All versions of a server, newest first. Their `state` is the server's. Raises Unknown."""
        versions = tables.versions
        query = _select_all().where(versions.c.entry == name).order_by(versions.c.version.desc())
        with self._database.read() as connection:
            found = _load_entries(connection, query)
        if not found:
            raise RowNotFound("server", name)
        return found

    def find_lineage(self) -> tuple[LineageEntry, ...]:
        """The lineage of every version of every server, by name and version."""
        versions, entries = tables.versions, tables.entries
        query = (
            select(versions, entries.c.state, entries.c.version.label("newest"))
            .join(entries)
            .order_by(versions.c.entry, versions.c.version)
        )
        with self._database.read() as connection:
            return tuple(_parse_line(row) for row in connection.execute(query).mappings())

    def get_reports(self, name: str, version: int) -> tuple[StageReport, ...]:
        """The stage reports of a version, in the order the stages ran."""
        reports = tables.reports
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
            before = connection.execute(
                select(tables.entries.c.state).where(tables.entries.c.name == name)
            ).scalar()
            change_state(connection, name, state)
            told = {"by": clean_text(by, TEXT), "reason": clean_text(reason, TEXT)}
            self._append_audit_row(
                connection, STATE, name, {"state": state, "before": before, **told}, now
            )

    def get_last_state(self, name: str) -> Mapping[str, Any]:
        """What the audit says of a server's last change of state: `state`, the one
        `before`, `by`, `reason`."""
        return self._read_last_note(name, STATE, 0.0)

    def get_last_refusal(self, entry: Entry) -> str:
        """Why the last change of a server's files was refused since this version was made; "" where
        none was.
        """
        said = self._read_last_note(entry.name, EDIT_REFUSED, entry.created)
        return str(said.get("reason", ""))

    def _read_last_note(self, name: str, kind: str, since: float) -> Mapping[str, Any]:
        audit = tables.audit
        query = (
            select(audit.c.payload)
            .where((audit.c.subject == name) & (audit.c.kind == kind) & (audit.c.time >= since))
            .order_by(audit.c.id.desc())
            .limit(1)
        )
        with self._database.read() as connection:
            payload = connection.execute(query).scalar()
        said: Mapping[str, Any] = json.loads(payload) if payload else {}
        return said

    def find_state_changes(self, name: str, limit: int) -> tuple[StateChange, ...]:
        """What the audit says of a server's last changes of state, oldest first."""
        audit = tables.audit
        query = (
            select(audit.c.time, audit.c.payload)
            .where((audit.c.subject == name) & (audit.c.kind == STATE))
            .order_by(audit.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            rows = [(row.time, json.loads(row.payload)) for row in connection.execute(query)]
        return tuple(
            StateChange(at, str(said.get("state", "")), str(said.get("reason", "")))
            for at, said in reversed(rows)
        )

    def get_published_digest(self, name: str, version: int) -> str | None:
        """The digest with which the audit says that a version was published; None where it says
        none, or more than one.
        """
        with self._database.look() as connection:
            rows = fetch_rows(connection, _PUBLISHED, {"name": name, "kind": PUBLISHED})
        said = (json.loads(payload) for (payload,) in rows)
        found = {str(one["digest"]) for one in said if one["version"] == version}
        return found.pop() if len(found) == 1 else None

    def archive(self, name: str, now: float, by: str, reason: str = "") -> None:
        """Take a server out of use; its rows and files stay. Raises Unknown."""
        self.set_state(name, "archived", now, by, reason)


def _find_unsafe_reads(entry: Entry) -> Iterator[str]:
    """The digests of the operations that read by a method that is made for writing."""
    for tool in entry.tools:
        method = tool.definition.get("_meta", {}).get("toolwright", {}).get("method", "GET")
        if tool.access == "read" and method not in SAFE_METHODS:
            yield tool.operation_digest


def compute_server_standing(record: TrustRecord, state: EntryState) -> Standing:
    return trust.compute_standing(record, experimental=state == "experimental")


def change_state(connection: Connection, name: str, state: EntryState) -> None:
    entries = tables.entries
    query = update(entries).where(entries.c.name == name).values(state=state)
    if connection.execute(query).rowcount == 0:
        raise RowNotFound("server", name)
    index.mark_changed(connection, name)


def _insert_version(
    connection: Connection, entry: Entry, reports: tuple[StageReport, ...], exists: bool
) -> None:
    entries = tables.entries
    head = {"version": entry.version, "state": entry.state}
    if exists:
        connection.execute(update(entries).where(entries.c.name == entry.name).values(head))
    else:
        connection.execute(insert(entries).values(name=entry.name, **head))
    connection.execute(insert(tables.versions), _build_version_row(entry))
    key = {"entry": entry.name, "version": entry.version}
    tools = [{**key, "position": i, **vars(tool)} for i, tool in enumerate(entry.tools)]
    if tools:
        connection.execute(insert(tables.tools), tools)
    rows = [
        {**key, "position": i, "report": to_compact_json(stage_report.to_json(report))}
        for i, report in enumerate(reports)
    ]
    if rows:
        connection.execute(insert(tables.reports), rows)


def _build_version_row(entry: Entry) -> dict[str, Any]:
    texts = ("title", "description", "created_by", "source", "base_url", "base_image", "parent")
    return {
        "entry": entry.name,
        "version": entry.version,
        "digest": entry.digest,
        "created": entry.created,
        "permissions": to_compact_json(entry.permissions),
        **{name: clean_text(getattr(entry, name), TEXT) for name in texts},
    }


def _select_all() -> Select[Any]:
    return select(tables.versions, tables.entries.c.state).join(tables.entries)


def _select_current() -> Select[Any]:
    return _select_all().where(tables.versions.c.version == tables.entries.c.version)


def _load_current(connection: AnyConnection, name: str) -> Entry | None:
    rows = fetch_mappings(connection, _CURRENT, {"name": name})
    if not rows:
        return None
    (row,) = rows
    tools = fetch_mappings(connection, _TOOLS, {"name": name, "version": row["version"]})
    made = (RegisteredTool(**{**tool, **_read_flags(tool)}) for tool in tools)
    return _parse_entry(row, tuple(made))


def _read_flags(row: Mapping[str, Any]) -> dict[str, bool]:
    return {name: bool(row[name]) for name in ("destructive", "self_evident")}


# Built once: to build a query takes longer than to run it.
_CURRENT = _select_current().where(tables.entries.c.name == bindparam("name"))
_CURRENT_DIGEST = (
    select(tables.versions.c.version, tables.versions.c.digest)
    .join(tables.entries)
    .where(
        tables.versions.c.version == tables.entries.c.version,
        tables.entries.c.name == bindparam("name"),
    )
)
_TOOLS = (
    select(*(tables.tools.c[name] for name in _TOOL_COLUMNS))
    .where(
        (tables.tools.c.entry == bindparam("name"))
        & (tables.tools.c.version == bindparam("version"))
    )
    .order_by(tables.tools.c.position)
)


def _load_entries(connection: Connection, query: Select[Any]) -> tuple[Entry, ...]:
    rows = connection.execute(query).mappings().all()
    tools = _load_tools(connection, query) if rows else {}
    return tuple(_parse_entry({**row}, tuple(tools[row["entry"], row["version"]])) for row in rows)


def _load_tools(
    connection: Connection, query: Select[Any]
) -> dict[tuple[str, int], list[RegisteredTool]]:
    wanted = query.order_by(None).subquery()
    columns = (tables.tools.c[name] for name in _TOOL_COLUMNS)
    rows = connection.execute(
        select(tables.tools.c.entry, tables.tools.c.version, *columns)
        .join(
            wanted,
            (tables.tools.c.entry == wanted.c.entry) & (tables.tools.c.version == wanted.c.version),
        )
        .order_by(tables.tools.c.entry, tables.tools.c.version, tables.tools.c.position)
    )
    found: dict[tuple[str, int], list[RegisteredTool]] = defaultdict(list)
    for entry, version, *values in rows:
        found[entry, version].append(RegisteredTool(*values))
    return found


def _parse_line(row: RowMapping) -> LineageEntry:
    told = ("version", "digest", "created", "created_by", "parent", "state")
    values = {name: row[name] for name in told}
    return LineageEntry(name=row["entry"], current=row["version"] == row["newest"], **values)


def _parse_entry(row: Mapping[str, Any], tools: tuple[RegisteredTool, ...]) -> Entry:
    return Entry(
        **{
            **{name: value for name, value in row.items() if name != "entry"},
            "name": row["entry"],
            "permissions": tuple(json.loads(row["permissions"])),
            "tools": tools,
        }
    )
