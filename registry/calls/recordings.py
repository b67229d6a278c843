"""What calls took in, kept beside them up to a limit; the oldest are dropped first."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from sqlalchemy import Column, Connection, bindparam, delete, func, insert, select

from registry import schema
from registry.audit import ARCHIVED, Ledger
from registry.errors import NotRecorded
from registry.records import Invocation
from sandbox.recording import Recording, pack, unpack

KEPT_BYTES = 256 * 1024 * 1024
ROW_BYTES = 200
"""What a recording takes beside its content, about."""
DROPPED = "recordings.dropped"
SLICES = 64
"""How often the oldest are dropped: whenever so large a part of the limit was written."""

Packed = Mapping[str, bytes | None]
"""By invocation id; None for a recording that is too large to keep."""

# Built once: building these statements costs more than running them.
_END = select(func.coalesce(func.max(schema.recordings.c.end), 0)).scalar_subquery()
_INSERT = insert(schema.recordings)
_DROP = delete(schema.recordings).where(schema.recordings.c.end <= bindparam("up_to"))
_NEWEST_ARCHIVE = (
    select(schema.audit.c.payload)
    .where(schema.audit.c.kind == ARCHIVED)
    .order_by(schema.audit.c.id.desc())
    .limit(1)
)


@dataclass(frozen=True)
class Kept:
    """A stored recording. It is `intact` if it is what the audit says was stored."""

    recording: Recording
    intact: bool


@dataclass(frozen=True)
class Named:
    """Something that an id stands for."""

    kind: Literal["job", "call"]
    id: str


class Recordings(Ledger):
    """The recordings. `recordings_bytes` is how much of them is kept, about; 0 keeps none."""

    recordings_bytes: int = KEPT_BYTES
    _written: float = math.inf
    """Since the oldest were dropped last, in bytes. A process that has just begun drops first."""

    def _enter(self, connection: Connection, content: Packed, now: float) -> None:
        self._written += enter(connection, content)
        if content and self._written * SLICES >= self.recordings_bytes:
            up_to, dropped = drop(connection, self.recordings_bytes)
            self._written = 0.0
            if dropped:
                # Without this row a recording that is gone was taken away.
                payload = {"up_to": up_to, "recordings": dropped}
                self._append(connection, DROPPED, "recordings", payload, now)

    def recording(self, id: str) -> Kept:
        """What a call took in. Raises NotRecorded."""
        recordings, audit = schema.recordings, schema.audit
        said = select(audit.c.payload).where(audit.c.subject == id, audit.c.kind == "invocation")
        with self._database.read() as connection:
            query = select(recordings.c.content).where(recordings.c.invocation == id)
            row = connection.execute(query).first()
            payloads = connection.execute(said).scalars().all()
        if row is None:
            raise NotRecorded(id, "it is not kept any more, or was made before there were any")
        if row.content is None:
            raise NotRecorded(id, "what it took in was too large to keep")
        try:
            recording = unpack(row.content)
        except ValueError as error:
            raise NotRecorded(id, f"it is damaged ({error})") from error
        digests = {json.loads(payload).get("recording") for payload in payloads}
        return Kept(recording, digests == {digest(row.content)})

    def named(self, prefix: str) -> tuple[Named, ...]:
        """The job or call whose id this is, or else those of which it is a beginning; at most ten.

        A job's own calls, whose ids begin with the job's, are not named beside it.
        """
        with self._database.read() as connection:
            jobs = _beginning(connection, schema.jobs.c.id, prefix)
            calls = _beginning(connection, schema.invocations.c.id, prefix)
        if prefix in jobs or prefix in calls:
            return (Named("job" if prefix in jobs else "call", prefix),)
        others = [id for id in calls if id.partition("-")[0] not in jobs]
        found = [*(Named("job", id) for id in jobs), *(Named("call", id) for id in others)]
        return tuple(found[:10])

    def calls_of(self, job: str, approval: str) -> tuple[str, ...]:
        """The ids of the calls that a task run made, and of the one that ran on an approval that it
        asked for, in their order.
        """
        calls = schema.invocations
        own = calls.c.id.startswith(f"{job}-", autoescape=True)
        query = select(calls.c.id).where(own | (calls.c.approval == approval))
        with self._database.read() as connection:
            return tuple(connection.execute(query.order_by(calls.c.sequence)).scalars())


def _beginning(connection: Connection, column: Column[str], prefix: str) -> Sequence[str]:
    query = select(column).where(column.startswith(prefix, autoescape=True)).limit(100)
    return connection.execute(query).scalars().all()


def packed(invocations: Iterable[Invocation]) -> Packed:
    """What is to be stored of the invocations' recordings. Takes time: not under a lock."""
    return {i.id: pack(i.recording) for i in invocations if i.recording is not None}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def enter(connection: Connection, content: Packed) -> int:
    """Store recordings; the bytes that they take."""
    sizes = {id: taken(recording) for id, recording in content.items()}
    if content:
        ends = accumulate(sizes.values(), initial=last_end(connection))
        next(ends)
        rows = [
            {"invocation": id, "end": end, "content": content[id]}
            for id, end in zip(content, ends, strict=True)
        ]
        connection.execute(_INSERT, rows)
    return sum(sizes.values())


def taken(content: bytes | None) -> int:
    """The bytes that a recording counts for."""
    return ROW_BYTES + len(content or b"")


def last_end(connection: Connection) -> int:
    """Where the newest recording ends; the next one begins there, also where an archive took all
    that there were.
    """
    end = int(connection.execute(select(_END)).scalar_one())
    if end:
        return end
    said = connection.execute(_NEWEST_ARCHIVE).scalar()
    return 0 if said is None else int(json.loads(said).get("recordings_end", 0))


def drop(connection: Connection, limit: int) -> tuple[int, int]:
    """Drop the oldest recordings that lie beyond the newest `limit` bytes: up to which end, and how
    many that were.
    """
    up_to = int(connection.execute(select(_END)).scalar_one()) - limit
    return up_to, connection.execute(_DROP, {"up_to": up_to}).rowcount


def recording_problem(
    said: Mapping[str, Any], content: bytes | None, kept: bool, dropped: int
) -> str:
    """What is wrong with the recording of an audited call, whose audit row says `said`; "" where
    nothing is. `kept` is whether there is a recording at all, `content` None in one that was too
    large; those that end by `dropped` were dropped for their age.
    """
    if not kept:
        gone = said.get("recording") is not None and said.get("recording_end", 0) > dropped
        return "the recording of the call is missing" if gone else ""
    if "recording" not in said:
        return "the call has a recording that was put in"
    same = (content and digest(content)) == said["recording"]
    return "" if same else "the recording of the call was edited"
