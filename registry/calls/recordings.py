"""Table of recordings: the external input of calls, up to a size limit, oldest dropped first."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from sqlalchemy import Column, Connection, bindparam, delete, func, select

from registry.database import tables
from registry.database.audit_chain import ARCHIVED, Repository
from registry.database.engine import Database
from registry.database.rows import fetch_rows, insert_rows
from registry.errors import RecordingMissing
from registry.models import Invocation
from sandbox.session.recording import CallRecording, pack_recording, unpack_recording

KEPT_BYTES = 256 * 1024 * 1024
ROW_BYTES = 200
"""Approximate bytes of a row besides its content."""
DROPPED = "recordings.dropped"
SLICES = 64
"""The oldest are dropped each time that 1/SLICES of the limit was written."""

Packed = Mapping[str, bytes | None]
"""Packed recordings by invocation id; None for one that is too large to keep."""

# Built once: building these statements costs more than running them.
_END = select(func.coalesce(func.max(tables.recordings.c.end), 0))
_DROP = delete(tables.recordings).where(tables.recordings.c.end <= bindparam("up_to"))
_NEWEST_ARCHIVE = (
    select(tables.audit.c.payload)
    .where(tables.audit.c.kind == ARCHIVED)
    .order_by(tables.audit.c.id.desc())
    .limit(1)
)


@dataclass(frozen=True)
class StoredRecording:
    """A stored recording. `intact` is whether its digest is the one in the audit."""

    recording: CallRecording
    intact: bool


@dataclass(frozen=True)
class IdMatch:
    """The job or call that has an id."""

    kind: Literal["job", "call"]
    id: str


class RecordingTable(Repository):
    """Recordings by call id. `recordings_bytes` is about how much is kept; 0 keeps none."""

    def __init__(
        self, database: Database, process: str = "", recordings_bytes: int = KEPT_BYTES
    ) -> None:
        super().__init__(database, process)
        self.recordings_bytes = recordings_bytes
        # Bytes since the oldest were dropped last. A process that has just begun drops first.
        self._written = math.inf

    def _enter_recordings(
        self, connection: Connection, content: Packed, begin: int, now: float
    ) -> None:
        self._written += insert_recordings(connection, content, begin)
        if content and self._written * SLICES >= self.recordings_bytes:
            up_to, dropped = drop_oldest(connection, self.recordings_bytes)
            self._written = 0.0
            if dropped:
                # Without this row a recording that is gone was taken away.
                payload = {"up_to": up_to, "recordings": dropped}
                self._append_audit_row(connection, DROPPED, "recordings", payload, now)

    def get_recording(self, id: str) -> StoredRecording:
        """The recording of a call. Raises NotRecorded."""
        recordings, audit = tables.recordings, tables.audit
        said = select(audit.c.payload).where(audit.c.subject == id, audit.c.kind == "invocation")
        with self._database.read() as connection:
            query = select(recordings.c.content).where(recordings.c.invocation == id)
            row = connection.execute(query).first()
            payloads = connection.execute(said).scalars().all()
        if row is None:
            raise RecordingMissing(id, "it is not kept any more, or was made before there were any")
        if row.content is None:
            raise RecordingMissing(id, "what it took in was too large to keep")
        try:
            recording = unpack_recording(row.content)
        except ValueError as error:
            raise RecordingMissing(id, f"it is damaged ({error})") from error
        digests = {json.loads(payload).get("recording") for payload in payloads}
        return StoredRecording(recording, digests == {hash_recording(row.content)})

    def find_by_prefix(self, prefix: str) -> tuple[IdMatch, ...]:
        """The job or call with this id, or else those whose ids begin with it; at most ten.

        A job's own calls, whose ids begin with the job's id, are not listed beside it.
        """
        with self._database.read() as connection:
            jobs = _find_ids_starting(connection, tables.jobs.c.id, prefix)
            calls = _find_ids_starting(connection, tables.invocations.c.id, prefix)
        if prefix in jobs or prefix in calls:
            return (IdMatch("job" if prefix in jobs else "call", prefix),)
        others = [id for id in calls if id.partition("-")[0] not in jobs]
        found = [*(IdMatch("job", id) for id in jobs), *(IdMatch("call", id) for id in others)]
        return tuple(found[:10])

    def find_run_ids(self, job: str, approval: str) -> tuple[str, ...]:
        """The ids of the calls of a task run, and of the call that ran on its approval,
        in order.
        """
        calls = tables.invocations
        own = calls.c.id.startswith(f"{job}-", autoescape=True)
        query = select(calls.c.id).where(own | (calls.c.approval == approval))
        with self._database.read() as connection:
            return tuple(connection.execute(query.order_by(calls.c.sequence)).scalars())


def _find_ids_starting(connection: Connection, column: Column[str], prefix: str) -> Sequence[str]:
    query = select(column).where(column.startswith(prefix, autoescape=True)).limit(100)
    return connection.execute(query).scalars().all()


def pack_recordings(invocations: Iterable[Invocation]) -> Packed:
    """Pack the invocations' recordings. Slow (it compresses), so do not call it under a lock."""
    return {i.id: pack_recording(i.recording) for i in invocations if i.recording is not None}


def hash_recording(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def insert_recordings(connection: Connection, content: Packed, begin: int) -> int:
    """Store recordings from `begin` on (`find_last_end`). Returns the bytes that they count for."""
    sizes = {id: count_bytes(recording) for id, recording in content.items()}
    if content:
        ends = accumulate(sizes.values(), initial=begin)
        next(ends)
        rows = [
            {"invocation": id, "end": end, "content": content[id]}
            for id, end in zip(content, ends, strict=True)
        ]
        insert_rows(connection, tables.recordings, rows)
    return sum(sizes.values())


def count_bytes(content: bytes | None) -> int:
    """The bytes that a recording counts for."""
    return ROW_BYTES + len(content or b"")


def find_last_end(connection: Connection) -> int:
    """The `end` of the newest recording, where the next one begins; taken from the newest archive
    where no recording is left in the database.
    """
    end = int(fetch_rows(connection, _END, {})[0][0])
    if end:
        return end
    said = connection.execute(_NEWEST_ARCHIVE).scalar()
    return 0 if said is None else int(json.loads(said).get("recordings_end", 0))


def drop_oldest(connection: Connection, limit: int) -> tuple[int, int]:
    """Drop the oldest recordings, keeping the newest `limit` bytes. Returns the `end` up to which
    they were dropped and their number.
    """
    up_to = int(fetch_rows(connection, _END, {})[0][0]) - limit
    return up_to, connection.execute(_DROP, {"up_to": up_to}).rowcount


def find_recording_problem(
    said: Mapping[str, Any], content: bytes | None, kept: bool, dropped: int
) -> str:
    """The problem with the recording of an audited call; "" for none. `said` is the payload of its
    audit row, `kept` whether there is a row for the recording, `content` None where it was too
    large. Recordings that end at or before `dropped` were dropped for their age.
    """
    if not kept:
        gone = said.get("recording") is not None and said.get("recording_end", 0) > dropped
        return "the recording of the call is missing" if gone else ""
    if "recording" not in said:
        return "the call has a recording that was put in"
    same = (content and hash_recording(content)) == said["recording"]
    return "" if same else "the recording of the call was edited"
