"""Is the audit what was written? The hash chains, from the archives and the database together."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sqlalchemy import Connection, RowMapping, select

from registry import schema
from registry.archives import Archived, ArchiveName, archives_since, read_archive
from registry.audit import (
    ARCHIVED,
    CALL,
    CONTENT,
    GENESIS,
    Broken,
    Head,
    audit_rows,
    content_digest,
    link,
)
from registry.errors import ArchiveUnusable
from registry.recordings import DROPPED, recording_problem
from registry.records import AuditRow

FEW = 25
"""How many rows with their recordings are held at once."""


def verify(
    connection: Connection, signed: Iterable[Head], directory: Path | None
) -> tuple[Broken | None, int]:
    """The first broken link, or None, and how many rows were checked.

    `directory` holds the archives; without it there is to be none.
    """
    try:
        names = () if directory is None else archives_since(directory, newest(connection))
        archives = [read_archive(directory, name) for name in names] if directory else []
        stored = (Archived(row) for row in audit_rows(connection))
        rows = heapq.merge(*archives, stored, key=lambda one: (one.row.chain, one.row.sequence))
        checked = _Checked(rows, {(head.chain, head.sequence): head.hash for head in signed})
        dropped = _dropped(connection)
        broken = checked.problem(lambda row: _moved_call(connection, row, dropped))
    except ArchiveUnusable as error:
        return Broken("archives", 0, str(error)), 0
    return broken or _check_contents(connection, dropped), checked.count


def newest(connection: Connection) -> ArchiveName | None:
    """The archive that the audit names last."""
    audit = schema.audit
    query = select(audit.c.payload).where(audit.c.kind == ARCHIVED).order_by(audit.c.id.desc())
    payload = connection.execute(query.limit(1)).scalar()
    if payload is None:
        return None
    named = json.loads(payload)
    return ArchiveName(str(named["file"]), str(named["sha256"]))


class _Checked:
    """Goes along all chains once; `count` is how many rows that were."""

    def __init__(self, rows: Iterable[Archived], signed: dict[tuple[str, int], str]) -> None:
        self.count = 0
        self._rows, self._missing = rows, dict(signed)

    def problem(self, call_problem: Callable[[Archived], str]) -> Broken | None:
        chain, sequence, previous = "", 0, GENESIS
        for archived in self._rows:
            row = archived.row
            if row.chain != chain:
                chain, sequence, previous = row.chain, 0, GENESIS
            sequence += 1
            self.count += 1
            reason = self._reason(row, sequence, previous) or call_problem(archived)
            if reason:
                return Broken(chain, sequence, reason)
            previous = row.hash
        if self._missing:
            chain, sequence = min(self._missing)
            return Broken(chain, sequence, "the row was signed and is missing")
        return None

    def _reason(self, row: AuditRow, sequence: int, previous: str) -> str:
        if row.sequence != sequence:
            return "the row is missing"
        if row.previous != previous:
            return "the row does not follow the one before it"
        if row.hash != link(row):
            return "the row was edited"
        if self._missing.pop((row.chain, sequence), row.hash) != row.hash:
            return "the row is not the one whose hash was signed"
        return ""


def _dropped(connection: Connection) -> int:
    """Up to which end recordings were dropped for their age."""
    audit = schema.audit
    payloads = connection.execute(select(audit.c.payload).where(audit.c.kind == DROPPED)).scalars()
    return max((int(json.loads(payload)["up_to"]) for payload in payloads), default=0)


def _moved_call(connection: Connection, archived: Archived, dropped: int) -> str:
    """What is wrong with the call that a row of an archive is about."""
    if archived.row.id or archived.row.kind != CALL:
        return ""
    call = archived.call or _call(connection, archived.row.subject)
    if call is None:
        return "the audited invocation is missing"
    said = json.loads(archived.row.payload)
    if content_digest(call) != said["content"]:
        return "the audited invocation was edited"
    if not archived.with_recording:
        return ""
    content = archived.recording
    return recording_problem(said, content, content is not None, dropped)


def _call(connection: Connection, id: str) -> RowMapping | None:
    invocations = schema.invocations
    query = select(*(invocations.c[name] for name in CONTENT)).where(invocations.c.id == id)
    return connection.execute(query).mappings().first()


def _check_contents(connection: Connection, dropped: int) -> Broken | None:
    """Each audited invocation must still be there, with the content that was audited, and with its
    recording, unless that was dropped for its age.
    """
    audit, invocations, recordings = schema.audit, schema.invocations, schema.recordings
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
            return Broken(row["chain"], row["sequence"], "the audited invocation is missing")
        said = json.loads(row["payload"])
        if content_digest(row) != said["content"]:
            return Broken(row["chain"], row["sequence"], "the audited invocation was edited")
        kept = row["recorded"] is not None
        problem = recording_problem(said, row["content"], kept, dropped)
        if problem:
            return Broken(row["chain"], row["sequence"], f"{problem}: {row['id']}")
    return None


def archived_rows(connection: Connection, directory: Path) -> Iterator[Archived]:
    """The rows of all archives, the oldest archive first. Raises ArchiveUnusable."""
    for name in reversed(archives_since(directory, newest(connection))):
        yield from read_archive(directory, name)
