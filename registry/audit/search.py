"""Table of audit rows: searching, exporting, verifying, and archiving the oldest."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, delete, func, or_, select

from registry.approvals.approvals import PENDING, SENDING
from registry.approvals.grants import REVOKED as GRANT_REVOKED
from registry.approvals.rules import REVOKED as RULE_REVOKED
from registry.audit.archives import ArchivedRow, write_archive
from registry.audit.verify import find_newest_archive, read_archived_rows, verify_audit_chains
from registry.calls.recordings import DROPPED, find_last_end
from registry.database import tables
from registry.database.audit_chain import (
    ARCHIVED,
    CALL,
    COLUMNS,
    CONTENT,
    NOTE,
    BrokenLink,
    ChainHead,
    Repository,
    find_heads,
)
from registry.database.canonical import to_bounded_json
from registry.errors import RegistryError
from registry.models import AuditRow
from registry.processes import FROZE
from registry.servers.classifications import CLASSIFIED
from registry.servers.entries import PUBLISHED, STATE

BATCH = 5_000
"""Rows per archive. They are moved in one transaction, during which other writers wait."""
RECORDED_BYTES = 32 * 1024 * 1024
"""Approximate bytes of recordings per archive."""
MIN_AGE = 7 * 86400.0
"""Seconds. Younger rows may still be needed to see that an approval was used already."""


@dataclass(frozen=True)
class AuditQuery:
    """Filters of a search; empty strings and None do not filter. `text` may occur in any column of
    a row or its call; `tool` is `server.tool` or a server; times are epoch seconds. With `newest`
    only so many of the newest rows are looked through.
    """

    text: str = ""
    task: str = ""
    tool: str = ""
    since: float | None = None
    until: float | None = None
    newest: int | None = None


@dataclass(frozen=True)
class AuditMatch:
    """A row with server, tool and task of the call that it is about; "" where it is about none."""

    row: AuditRow
    server: str = ""
    tool: str = ""
    task: str = ""


@dataclass(frozen=True)
class ArchiveResult:
    """The file name of a new archive, and the numbers of rows and calls moved into it."""

    file: str
    rows: int
    calls: int


class AuditTable(Repository):
    """Audit rows of all chains."""

    def find(self, limit: int = 100, since: int | None = None) -> tuple[AuditRow, ...]:
        """The newest rows, newest first; with `since`, the first ones after that id, in order."""
        query = select(*COLUMNS).limit(limit)
        if since is None:
            query = query.order_by(tables.audit.c.id.desc())
        else:
            query = query.where(tables.audit.c.id > since).order_by(tables.audit.c.id)
        with self._database.read() as connection:
            return tuple(AuditRow(**row) for row in connection.execute(query).mappings())

    def get_heads(self) -> tuple[ChainHead, ...]:
        """The newest row of every chain, by chain."""
        with self._database.read() as connection:
            return find_heads(connection)

    def read_data_version(self) -> int:
        """As `SignalReader.read_data_version`."""
        return int(self._database.query_row("PRAGMA data_version")[0])

    def read_page(self, after: int, limit: int) -> list[AuditRow]:
        """The first rows after an id, in order."""
        return [AuditRow(*row) for row in self._database.query_rows(_PAGE, after, limit)]

    def add_note(self, kind: str, subject: str, payload: Mapping[str, Any], now: float) -> None:
        """Add a row for something that happened outside the registry.

        A payload of more than 20,000 characters of JSON is kept by its hash.
        """
        kept = json.loads(to_bounded_json(payload, NOTE))
        with self._database.write() as connection:
            self._append_audit_row(connection, kind, subject, kept, now)

    def verify_chains(
        self, signed: Iterable[ChainHead] = (), archives: Path | None = None
    ) -> BrokenLink | None:
        """The first broken link, or None.

        Finds edited, removed, added and reordered rows, invocations whose stored content is not
        what was audited, and, given heads that were `signed` outside the database (see
        `registry.audit.heads`), chains that were cut short, replaced or removed. `archives` is the
        directory of the archives, where there are any.
        """
        with self._database.read() as connection:
            return verify_audit_chains(connection, signed, archives)[0]

    def verify_and_count(
        self, signed: Iterable[ChainHead], archives: Path
    ) -> tuple[BrokenLink | None, int]:
        """The first broken link, or None, and the number of rows that were checked."""
        with self._database.read() as connection:
            return verify_audit_chains(connection, signed, archives)

    def search(self, wanted: AuditQuery, limit: int = 100) -> tuple[AuditMatch, ...]:
        """The newest rows that pass all filters, newest first. Archives are not searched.

        Texts are compared without regard to the case of ASCII letters.
        """
        audit, calls, approvals = tables.audit, tables.invocations, tables.approvals
        query = (
            select(*(audit.c[name] for name in _ROW))
            .add_columns(
                func.coalesce(calls.c.entry, approvals.c.entry, "").label("server"),
                func.coalesce(calls.c.tool, approvals.c.tool, "").label("of_tool"),
                func.coalesce(calls.c.task, approvals.c.task, "").label("task"),
            )
            .join_from(audit, calls, calls.c.id == audit.c.subject, isouter=True)
            .join(approvals, approvals.c.id == audit.c.subject, isouter=True)
            .where(*_build_conditions(wanted))
            .order_by(audit.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(_build_match(row) for row in connection.execute(query).mappings())

    def find_rows_about(self, id: str) -> tuple[AuditRow, ...]:
        """The rows whose subject is this id or whose payload contains it, in order."""
        audit = tables.audit
        named = or_(audit.c.subject == id, audit.c.payload.contains(f'"{id}"', autoescape=True))
        query = select(*(audit.c[name] for name in _ROW)).where(named).order_by(audit.c.id)
        with self._database.read() as connection:
            return tuple(AuditRow(**row) for row in connection.execute(query).mappings())

    def has_note(self, kind: str, subject: str) -> bool:
        """Whether there is a row of that kind about that subject."""
        audit = tables.audit
        query = select(audit.c.id).where(audit.c.subject == subject, audit.c.kind == kind)
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def read_all_rows(self, archives: Path | None = None) -> Iterator[Mapping[str, Any]]:
        """Every row as plain JSON values, oldest first, with the row of its call as `call`.

        Archived rows come first. Raises ArchiveUnusable.
        """
        with self._database.read() as connection:
            for archived in read_archived_rows(connection, archives) if archives else ():
                yield _to_json_row(archived.row, archived.call)
            audit, calls = tables.audit, tables.invocations
            query = (
                select(audit, *(calls.c[name].label(f"call_{name}") for name in CONTENT))
                .join_from(audit, calls, _match_own_call(), isouter=True)
                .order_by(audit.c.id)
            )
            rows = connection.execution_options(yield_per=1000).execute(query).mappings()
            for row in rows:
                call = {name: row[f"call_{name}"] for name in CONTENT}
                told = AuditRow(**{name: row[name] for name in _ROW})
                yield _to_json_row(told, call if call["id"] is not None else None)

    def archive_rows(self, directory: Path, before: float, now: float) -> ArchiveResult | None:
        """Move up to 5,000 rows from before a time into an archive; None where there are none.

        The newest row of each chain stays, and so does every call that ran on an approval.
        Raises RegistryError where `before` is less than a week ago.
        """
        if before > now - MIN_AGE:
            raise RegistryError("the last seven days stay in the database; name an earlier date.")
        with self._database.write() as connection:
            rows = _select_movable_rows(connection, before)
            if not rows:
                return None
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            file = f"archive-{stamp}-{secrets.token_hex(4)}.jsonl.gz"
            recorded = (_attach_recording(connection, row) for row in rows)
            name = write_archive(directory, file, find_newest_archive(connection), recorded)
            end = find_last_end(connection)
            moved = ArchiveResult(file, len(rows), sum(1 for row in rows if row.call is not None))
            _delete_rows(connection, rows)
            payload = {
                **vars(name),
                "rows": moved.rows,
                "calls": moved.calls,
                "before": before,
                "recordings_end": end,
                "through": {row.chain: [row.sequence, row.hash] for row in (r.row for r in rows)},
            }
            self._append_audit_row(connection, ARCHIVED, file, payload, now)
            for row in _select_lasting_rows(rows, now):
                if row.kind == STATE and _find_last_row(connection, STATE, row.subject):
                    continue
                said = {"moved_from": row.time, **json.loads(row.payload)}
                self._append_audit_row(connection, row.kind, row.subject, said, now)
        return moved


_PAGE = (
    f"SELECT {', '.join(field.name for field in fields(AuditRow))} FROM audit "
    "WHERE id > ? ORDER BY id LIMIT ?"
)
_ROW = ("id", "chain", "sequence", "time", "kind", "subject", "payload", "previous", "hash")


def _match_own_call() -> ColumnElement[bool]:
    audit, calls = tables.audit, tables.invocations
    return (calls.c.id == audit.c.subject) & (audit.c.kind == CALL)


def _match_own_recording() -> ColumnElement[bool]:
    audit, recordings = tables.audit, tables.recordings
    return (recordings.c.invocation == audit.c.subject) & (audit.c.kind == CALL)


def _build_conditions(wanted: AuditQuery) -> Iterator[ColumnElement[bool]]:
    audit, calls, approvals = tables.audit, tables.invocations, tables.approvals
    about = (calls, approvals)
    if wanted.newest is not None:
        yield audit.c.id > select(func.max(audit.c.id)).scalar_subquery() - wanted.newest
    if wanted.since is not None:
        yield audit.c.time >= wanted.since
    if wanted.until is not None:
        yield audit.c.time < wanted.until
    if wanted.task:
        yield or_(*(table.c.task.icontains(wanted.task, autoescape=True) for table in about))
    if wanted.text:
        own = (audit.c.kind, audit.c.subject, audit.c.payload)
        of_call = [calls.c[name] for name in ("task", "reason", "arguments", "result", "exchanges")]
        of_approval = [approvals.c[name] for name in ("task", "reason", "arguments", "wire")]
        places = (*own, *of_call, *of_approval)
        yield or_(*(place.icontains(wanted.text, autoescape=True) for place in places))
    if wanted.tool:
        server, _, tool = wanted.tool.partition(".")
        same = [
            (table.c.entry == server) & (table.c.tool == (tool or table.c.tool)) for table in about
        ]
        yield or_(*same, audit.c.subject == wanted.tool)


def _build_match(row: Any) -> AuditMatch:
    own = AuditRow(**{name: row[name] for name in _ROW})
    return AuditMatch(own, row["server"], row["of_tool"], row["task"])


def _to_json_row(row: AuditRow, call: Mapping[str, Any] | None) -> dict[str, Any]:
    told = {**vars(row), "payload": json.loads(row.payload)}
    del told["id"]
    return told if call is None else {**told, "call": _parse_call(call)}


def _parse_call(call: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("arguments", "result", "exchanges")
    return {name: json.loads(call[name]) if name in texts else call[name] for name in CONTENT}


def _select_movable_rows(connection: Connection, before: float) -> list[ArchivedRow]:
    """The oldest rows of every chain, up to one archive's worth, with their calls that may move."""
    audit, calls, recordings = tables.audit, tables.invocations, tables.recordings
    late = case((audit.c.time >= before, audit.c.sequence))
    ends = select(
        audit.c.chain,
        func.coalesce(func.min(late), func.max(audit.c.sequence)).label("end"),
    )
    cut = ends.group_by(audit.c.chain).subquery()
    query = (
        select(*(audit.c[name] for name in _ROW))
        .add_columns(*(calls.c[name].label(f"call_{name}") for name in (*CONTENT, "state")))
        .join_from(audit, cut, (audit.c.chain == cut.c.chain) & (audit.c.sequence < cut.c.end))
        .add_columns(func.length(recordings.c.content).label("recording_bytes"))
        .join(calls, _match_own_call(), isouter=True)
        .join(recordings, _match_own_recording(), isouter=True)
        .order_by(audit.c.chain, audit.c.sequence)
        .limit(BATCH)
    )
    rows = connection.execute(query).mappings().all()
    sizes = accumulate(row["recording_bytes"] or 0 for row in rows)
    fits = sum(size <= RECORDED_BYTES for size in sizes)
    return [_build_archived_row(row) for row in rows[: max(1, fits)]]


def _attach_recording(connection: Connection, archived: ArchivedRow) -> ArchivedRow:
    if archived.row.kind != CALL:
        return archived
    recordings = tables.recordings
    query = select(recordings.c.content).where(recordings.c.invocation == archived.row.subject)
    return replace(archived, recording=connection.execute(query).scalar())


def _build_archived_row(row: Any) -> ArchivedRow:
    # Without an id, which only orders the rows of a database.
    own = AuditRow(**{**{name: row[name] for name in _ROW}, "id": 0})
    call = {name: row[f"call_{name}"] for name in CONTENT}
    moves = call["id"] is not None and call["approval"] is None and row["call_state"] == "done"
    return ArchivedRow(own, call if moves else None)


_LASTING = {
    GRANT_REVOKED: "kind",
    RULE_REVOKED: "",
    DROPPED: "",
    CLASSIFIED: "operation",
    PUBLISHED: "version",
    STATE: "",
    FROZE: "",
    PENDING: "",
    SENDING: "",
}
"""Kinds of rows that later checks need, and the field that tells two of one subject apart."""


def _find_last_row(connection: Connection, kind: str, subject: str) -> int | None:
    audit = tables.audit
    query = select(func.max(audit.c.id)).where(audit.c.subject == subject, audit.c.kind == kind)
    return connection.execute(query).scalar()


def _select_lasting_rows(rows: Iterable[ArchivedRow], now: float) -> Iterator[AuditRow]:
    """Archived rows that later checks need (`registry.audit.trail`), up to where recordings were
    dropped, and what was asked for and spent of approvals that have not expired. The newest of each
    kind and subject; they are appended to the audit again, with the time at which they were written
    first.
    """
    said: dict[tuple[str, str, Any], AuditRow] = {}
    for archived in rows:
        row = archived.row
        if row.kind in _LASTING:
            payload = json.loads(row.payload)
            if row.kind in (PENDING, SENDING) and payload["expires"] <= now:
                continue
            about = payload.get(_LASTING[row.kind])
            known = said.get((row.kind, row.subject, about))
            if known is None or row.time >= known.time:
                said[row.kind, row.subject, about] = row
    yield from said.values()


def _delete_rows(connection: Connection, rows: Iterable[ArchivedRow]) -> None:
    """Delete archived rows in the caller's transaction, without the trigger that forbids it."""
    audit, calls, recordings = tables.audit, tables.invocations, tables.recordings
    ends = {archived.row.chain: archived.row.sequence for archived in rows}
    connection.exec_driver_sql("DROP TRIGGER IF EXISTS audit_is_not_deleted")
    for chain, end in ends.items():
        moved = (audit.c.chain == chain) & (audit.c.sequence <= end)
        about = select(audit.c.subject).where(moved, audit.c.kind == CALL)
        own = calls.c.id.in_(about) & calls.c.approval.is_(None) & (calls.c.state == "done")
        connection.execute(delete(recordings).where(recordings.c.invocation.in_(about)))
        connection.execute(delete(calls).where(own))
        connection.execute(delete(audit).where(moved))
    for guard in tables.AUDIT_GUARDS:
        if "audit_is_not_deleted" in guard:
            connection.exec_driver_sql(guard)
