"""Reading the audit: verified, searched, told whole; and moving its older part into archives."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, delete, func, or_, select

from registry import schema
from registry.archives import Archived, write_archive
from registry.audit import ARCHIVED, CALL, CONTENT, Broken, Head, Ledger
from registry.errors import RegistryError
from registry.grants import REVOKED as GRANT_REVOKED
from registry.recordings import DROPPED, last_end
from registry.records import AuditRow
from registry.rules import REVOKED as RULE_REVOKED
from registry.verification import archived_rows, newest, verify

BATCH = 5_000
"""Rows of one archive: what is moved in one transaction, while others wait to write."""
RECORDED_BYTES = 32 * 1024 * 1024
"""How much of recordings goes into one archive, about."""
MIN_AGE = 7 * 86400.0
"""Seconds. What is younger may still be needed to see that an approval was used already."""


@dataclass(frozen=True)
class Wanted:
    """What to look for. Empty and None ask for nothing; `text` may be anywhere, `tool` is
    `server.tool` or a server; times are epoch seconds.
    """

    text: str = ""
    task: str = ""
    tool: str = ""
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True)
class Found:
    """A row and what it is about. `server`, `tool` and `task` are "" where that is no call."""

    row: AuditRow
    server: str = ""
    tool: str = ""
    task: str = ""


@dataclass(frozen=True)
class Moved:
    """What went into an archive."""

    file: str
    rows: int
    calls: int


class Trail(Ledger):
    def verify_audit(
        self, signed: Iterable[Head] = (), archives: Path | None = None
    ) -> Broken | None:
        """The first broken link, or None.

        Finds edited, removed, added and reordered rows, invocations whose stored content is not
        what was audited, and, given heads that were `signed` outside the database (see
        `registry.notary`), chains that were cut short, replaced or removed. `archives` is the
        directory of the archives, where there are any.
        """
        with self._database.read() as connection:
            return verify(connection, signed, archives)[0]

    def count_verified(self, signed: Iterable[Head], archives: Path) -> tuple[Broken | None, int]:
        """`verify_audit`, and how many rows were checked."""
        with self._database.read() as connection:
            return verify(connection, signed, archives)

    def search_audit(self, wanted: Wanted, limit: int = 100) -> tuple[Found, ...]:
        """The newest rows that fit everything that is wanted, newest first; archives are left out.

        Texts are compared without regard to the case of ASCII letters.
        """
        audit, calls, approvals = schema.audit, schema.invocations, schema.approvals
        query = (
            select(*(audit.c[name] for name in _ROW))
            .add_columns(
                func.coalesce(calls.c.entry, approvals.c.entry, "").label("server"),
                func.coalesce(calls.c.tool, approvals.c.tool, "").label("of_tool"),
                func.coalesce(calls.c.task, approvals.c.task, "").label("task"),
            )
            .join_from(audit, calls, calls.c.id == audit.c.subject, isouter=True)
            .join(approvals, approvals.c.id == audit.c.subject, isouter=True)
            .where(*_conditions(wanted))
            .order_by(audit.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(_found(row) for row in connection.execute(query).mappings())

    def about(self, id: str) -> tuple[AuditRow, ...]:
        """The rows about an id, or that name it, in their order."""
        audit = schema.audit
        named = or_(audit.c.subject == id, audit.c.payload.contains(f'"{id}"', autoescape=True))
        query = select(*(audit.c[name] for name in _ROW)).where(named).order_by(audit.c.id)
        with self._database.read() as connection:
            return tuple(AuditRow(**row) for row in connection.execute(query).mappings())

    def noted(self, kind: str, subject: str) -> bool:
        """Whether there is a row of that kind about that subject."""
        audit = schema.audit
        query = select(audit.c.id).where(audit.c.subject == subject, audit.c.kind == kind)
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def whole_audit(self, archives: Path | None = None) -> Iterator[Mapping[str, Any]]:
        """Every row as plain JSON values, oldest first, with the whole call that it is about.

        Those of the archives come first. Raises ArchiveUnusable.
        """
        with self._database.read() as connection:
            for archived in archived_rows(connection, archives) if archives else ():
                yield _told(archived.row, archived.call)
            audit, calls = schema.audit, schema.invocations
            query = (
                select(audit, *(calls.c[name].label(f"call_{name}") for name in CONTENT))
                .join_from(audit, calls, _own_call(), isouter=True)
                .order_by(audit.c.id)
            )
            rows = connection.execution_options(yield_per=1000).execute(query).mappings()
            for row in rows:
                call = {name: row[f"call_{name}"] for name in CONTENT}
                told = AuditRow(**{name: row[name] for name in _ROW})
                yield _told(told, call if call["id"] is not None else None)

    def archive_audit(self, directory: Path, before: float, now: float) -> Moved | None:
        """Move up to 5,000 rows from before a time into an archive; None where there are none.

        The newest row of each chain stays, and so does every call that an approval was used for.
        Raises RegistryError where `before` is less than a week ago.
        """
        if before > now - MIN_AGE:
            raise RegistryError("the last seven days stay in the database; name an earlier date.")
        with self._database.write() as connection:
            rows = _movable(connection, before)
            if not rows:
                return None
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            file = f"archive-{stamp}-{secrets.token_hex(4)}.jsonl.gz"
            recorded = (_with_recording(connection, row) for row in rows)
            name = write_archive(directory, file, newest(connection), recorded)
            end = last_end(connection)
            moved = Moved(file, len(rows), sum(1 for row in rows if row.call is not None))
            _remove(connection, rows)
            payload = {
                **vars(name),
                "rows": moved.rows,
                "calls": moved.calls,
                "before": before,
                "recordings_end": end,
            }
            self._append(connection, ARCHIVED, file, payload, now)
            for row in _lasting(rows):
                self._append(connection, row.kind, row.subject, json.loads(row.payload), now)
        return moved


_ROW = ("id", "chain", "sequence", "time", "kind", "subject", "payload", "previous", "hash")


def _own_call() -> ColumnElement[bool]:
    audit, calls = schema.audit, schema.invocations
    return (calls.c.id == audit.c.subject) & (audit.c.kind == CALL)


def _own_recording() -> ColumnElement[bool]:
    audit, recordings = schema.audit, schema.recordings
    return (recordings.c.invocation == audit.c.subject) & (audit.c.kind == CALL)


def _conditions(wanted: Wanted) -> Iterator[ColumnElement[bool]]:
    audit, calls, approvals = schema.audit, schema.invocations, schema.approvals
    about = (calls, approvals)
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


def _found(row: Any) -> Found:
    own = AuditRow(**{name: row[name] for name in _ROW})
    return Found(own, row["server"], row["of_tool"], row["task"])


def _told(row: AuditRow, call: Mapping[str, Any] | None) -> dict[str, Any]:
    told = {**vars(row), "payload": json.loads(row.payload)}
    del told["id"]
    return told if call is None else {**told, "call": _read_call(call)}


def _read_call(call: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("arguments", "result", "exchanges")
    return {name: json.loads(call[name]) if name in texts else call[name] for name in CONTENT}


def _movable(connection: Connection, before: float) -> list[Archived]:
    """The oldest rows of the chains, each a chain's beginning, with the calls that may move."""
    audit, calls, recordings = schema.audit, schema.invocations, schema.recordings
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
        .join(calls, _own_call(), isouter=True)
        .join(recordings, _own_recording(), isouter=True)
        .order_by(audit.c.chain, audit.c.sequence)
        .limit(BATCH)
    )
    rows = connection.execute(query).mappings().all()
    sizes = accumulate(row["recording_bytes"] or 0 for row in rows)
    fits = sum(size <= RECORDED_BYTES for size in sizes)
    return [_archived(row) for row in rows[: max(1, fits)]]


def _with_recording(connection: Connection, archived: Archived) -> Archived:
    if archived.row.kind != CALL:
        return archived
    recordings = schema.recordings
    query = select(recordings.c.content).where(recordings.c.invocation == archived.row.subject)
    return replace(archived, recording=connection.execute(query).scalar())


def _archived(row: Any) -> Archived:
    # Without an id, which only orders the rows of a database.
    own = AuditRow(**{**{name: row[name] for name in _ROW}, "id": 0})
    call = {name: row[f"call_{name}"] for name in CONTENT}
    moves = call["id"] is not None and call["approval"] is None and row["call_state"] == "done"
    return Archived(own, call if moves else None)


def _lasting(rows: Iterable[Archived]) -> Iterator[AuditRow]:
    """What of archived rows has to be known later: that something was revoked, and up to where
    recordings were dropped. They are said again, each the last time that it was said.
    """
    said: dict[tuple[str, str, str | None], AuditRow] = {}
    for archived in rows:
        row = archived.row
        if row.kind in (GRANT_REVOKED, RULE_REVOKED, DROPPED):
            about = json.loads(row.payload).get("kind")
            known = said.get((row.kind, row.subject, about))
            if known is None or row.time >= known.time:
                said[row.kind, row.subject, about] = row
    yield from said.values()


def _remove(connection: Connection, rows: Iterable[Archived]) -> None:
    """Take archived rows out of the database, past the guards, in the caller's transaction."""
    audit, calls, recordings = schema.audit, schema.invocations, schema.recordings
    ends = {archived.row.chain: archived.row.sequence for archived in rows}
    connection.exec_driver_sql("DROP TRIGGER IF EXISTS audit_is_not_deleted")
    for chain, end in ends.items():
        moved = (audit.c.chain == chain) & (audit.c.sequence <= end)
        about = select(audit.c.subject).where(moved, audit.c.kind == CALL)
        own = calls.c.id.in_(about) & calls.c.approval.is_(None) & (calls.c.state == "done")
        connection.execute(delete(recordings).where(recordings.c.invocation.in_(about)))
        connection.execute(delete(calls).where(own))
        connection.execute(delete(audit).where(moved))
    for guard in schema.AUDIT_GUARDS:
        if "audit_is_not_deleted" in guard:
            connection.exec_driver_sql(guard)
