"""Verification of the audit's hash chains over the archives and the database together."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sqlalchemy import Connection, RowMapping, select

from registry.approvals.approvals import OPEN, SENDING
from registry.audit.archives import ArchivedRow, ArchiveName, list_archives, read_archive
from registry.calls.recordings import DROPPED, find_recording_problem
from registry.database import tables
from registry.database.audit_chain import (
    ACCOUNTED,
    ARCHIVED,
    CALL,
    CONTENT,
    COUNTED,
    GENESIS,
    BrokenLink,
    ChainHead,
    hash_call_content,
    hash_row,
    read_audit_rows,
)
from registry.errors import ArchiveUnusable
from registry.models import AuditRow

FEW = 25
"""Rows, with their recordings, that are held in memory at once."""


def verify_audit_chains(
    connection: Connection, signed: Iterable[ChainHead], directory: Path | None
) -> tuple[BrokenLink | None, int]:
    """The first broken link, or None, and the number of rows that were checked.

    `directory` holds the archives; None where there are none.
    """
    try:
        names = (
            () if directory is None else list_archives(directory, find_newest_archive(connection))
        )
        archives = [read_archive(directory, name) for name in names] if directory else []
        stored = (ArchivedRow(row) for row in read_audit_rows(connection))
        rows = heapq.merge(*archives, stored, key=lambda one: (one.row.chain, one.row.sequence))
        checked = _ChainChecker(rows, {(head.chain, head.sequence): head.hash for head in signed})
        dropped = _find_dropped_end(connection)
        broken = checked.find_break(lambda row: _check_moved_call(connection, row, dropped))
    except ArchiveUnusable as error:
        return BrokenLink("archives", 0, str(error)), 0
    broken = broken or _check_contents(connection, dropped)
    return broken or _check_spent_approvals(connection, checked.spent), checked.count


def find_newest_archive(connection: Connection) -> ArchiveName | None:
    """The archive that the audit names last, or None."""
    audit = tables.audit
    query = select(audit.c.payload).where(audit.c.kind == ARCHIVED).order_by(audit.c.id.desc())
    payload = connection.execute(query.limit(1)).scalar()
    if payload is None:
        return None
    named = json.loads(payload)
    return ArchiveName(str(named["file"]), str(named["sha256"]))


class _CallCounter:
    """Compares the calls of one chain with its process's own count of them."""

    def __init__(self) -> None:
        self._all_up_to, self._beyond = 0, set[int]()

    def find_problem(self, row: AuditRow) -> str:
        """Take up a row; what it says of calls without a row, or ""."""
        if row.kind not in (CALL, ACCOUNTED, COUNTED):
            return ""
        said = json.loads(row.payload)
        if said.get("complete", 0) > self._all_up_to + 1:
            return f"the process began a call, its number {self._all_up_to + 1}, that has no row"
        self._beyond.add(int(said.get("serial", 0)))
        while self._all_up_to + 1 in self._beyond:
            self._all_up_to += 1
            self._beyond.remove(self._all_up_to)
        return ""


class _ChainChecker:
    """Checks the rows of all chains in one pass; `count` is the number of rows so far, `spent` the
    rows about approvals that were spent.
    """

    def __init__(self, rows: Iterable[ArchivedRow], signed: dict[tuple[str, int], str]) -> None:
        self.count = 0
        self.spent: list[AuditRow] = []
        self._rows, self._missing = rows, dict(signed)

    def find_break(self, call_problem: Callable[[ArchivedRow], str]) -> BrokenLink | None:
        chain, sequence, previous, counter = "", 0, GENESIS, _CallCounter()
        for archived in self._rows:
            row = archived.row
            if row.chain != chain:
                chain, sequence, previous, counter = row.chain, 0, GENESIS, _CallCounter()
            sequence += 1
            self.count += 1
            reason = (
                self._find_row_problem(row, sequence, previous)
                or counter.find_problem(row)
                or call_problem(archived)
            )
            if reason:
                return BrokenLink(chain, sequence, reason)
            previous = row.hash
            if row.kind == SENDING:
                self.spent.append(row)
        if self._missing:
            chain, sequence = min(self._missing)
            return BrokenLink(chain, sequence, "the row was signed and is missing")
        return None

    def _find_row_problem(self, row: AuditRow, sequence: int, previous: str) -> str:
        if row.sequence != sequence:
            return "the row is missing"
        if row.previous != previous:
            return "the row does not follow the one before it"
        if row.hash != hash_row(row):
            return "the row was edited"
        if self._missing.pop((row.chain, sequence), row.hash) != row.hash:
            return "the row is not the one whose hash was signed"
        return ""


def _find_dropped_end(connection: Connection) -> int:
    """The highest `end` up to which old recordings were dropped; 0 for none."""
    audit = tables.audit
    payloads = connection.execute(select(audit.c.payload).where(audit.c.kind == DROPPED)).scalars()
    return max((int(json.loads(payload)["up_to"]) for payload in payloads), default=0)


def _check_moved_call(connection: Connection, archived: ArchivedRow, dropped: int) -> str:
    """The problem with the call that an archived row is about; "" for none."""
    if archived.row.id or archived.row.kind != CALL:
        return ""
    call = archived.call or _find_call(connection, archived.row.subject)
    if call is None:
        return "the audited invocation is missing"
    said = json.loads(archived.row.payload)
    if hash_call_content(call) != said["content"]:
        return "the audited invocation was edited"
    if not archived.with_recording:
        return ""
    content = archived.recording
    return find_recording_problem(said, content, content is not None, dropped)


def _find_call(connection: Connection, id: str) -> RowMapping | None:
    invocations = tables.invocations
    query = select(*(invocations.c[name] for name in CONTENT)).where(invocations.c.id == id)
    return connection.execute(query).mappings().first()


def _check_contents(connection: Connection, dropped: int) -> BrokenLink | None:
    """Each audited invocation must still be there, with the content that was audited, and with its
    recording, unless that was dropped for its age.
    """
    audit, invocations, recordings = tables.audit, tables.invocations, tables.recordings
    query = (
        select(audit.c.chain, audit.c.sequence, audit.c.payload)
        .add_columns(*(invocations.c[name] for name in CONTENT))
        .add_columns(recordings.c.invocation.label("recorded"), recordings.c.content)
        .join_from(audit, invocations, invocations.c.id == audit.c.subject, isouter=True)
        .join(recordings, recordings.c.invocation == audit.c.subject, isouter=True)
        .where(audit.c.kind == CALL)
        .order_by(audit.c.id)
    )
    for row in connection.execution_options(yield_per=FEW).execute(query).mappings():
        if row["id"] is None:
            return BrokenLink(row["chain"], row["sequence"], "the audited invocation is missing")
        said = json.loads(row["payload"])
        if hash_call_content(row) != said["content"]:
            return BrokenLink(row["chain"], row["sequence"], "the audited invocation was edited")
        kept = row["recorded"] is not None
        problem = find_recording_problem(said, row["content"], kept, dropped)
        if problem:
            return BrokenLink(row["chain"], row["sequence"], f"{problem}: {row['id']}")
    return None


def _check_spent_approvals(connection: Connection, spent: Iterable[AuditRow]) -> BrokenLink | None:
    """An approval that the audit calls spent must say so itself, with the same call and serial, and
    so must its call, and the other way round.
    """
    approvals, calls = tables.approvals, tables.invocations
    query = select(approvals.c.id, approvals.c.state, approvals.c.invocation, approvals.c.serial)
    named = query.add_columns(calls.c.approval).outerjoin(
        calls, calls.c.id == approvals.c.invocation
    )
    rows = {row.id: row for row in connection.execute(named)}
    for said in spent:
        row, payload = rows.pop(said.subject, None), json.loads(said.payload)
        if row is None:
            # Of one that was archived and said again, the earlier row has been looked at.
            problem = _find_missing_approval(connection, said.subject)
        elif (row.invocation, row.serial) != (payload["invocation"], payload["serial"]):
            problem = "the approval names another call than the one it was spent on"
        elif row.state in OPEN:
            problem = f"the approval was spent, and its row says {row.state}"
        else:
            problem = "" if row.approval == row.id else "its call names another approval"
        if problem:
            return BrokenLink(said.chain, said.sequence, f"{problem}: {said.subject}")
    for row in rows.values():
        if row.serial or row.invocation:
            reason = f"nothing in the audit says that the approval was spent: {row.id}"
            return BrokenLink("approvals", 0, reason)
    return None


def _find_missing_approval(connection: Connection, id: str) -> str:
    query = select(tables.approvals.c.id).where(tables.approvals.c.id == id)
    return "" if connection.execute(query).first() else "the approval that was spent is missing"


def read_archived_rows(connection: Connection, directory: Path) -> Iterator[ArchivedRow]:
    """The rows of all archives, the oldest archive first. Raises ArchiveUnusable."""
    for name in reversed(list_archives(directory, find_newest_archive(connection))):
        yield from read_archive(directory, name)
