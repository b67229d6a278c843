"""What calls took in, kept beside them up to a limit; the oldest are dropped first."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Column, Connection, Integer, bindparam, delete, func, insert, select

from registry import schema
from registry.audit import Ledger
from registry.errors import NotRecorded
from registry.records import Invocation
from sandbox.recording import Recording, pack, unpack

KEPT_BYTES = 256 * 1024 * 1024
ROW_BYTES = 200
"""What a recording takes beside its content, about."""
SLICES = 64
"""How often the oldest are dropped: whenever so large a part of the limit was written."""

Packed = Mapping[str, bytes | None]
"""By invocation id; None for a recording that is too large to keep."""

# Built once: building these statements costs more than running them.
_END = select(func.coalesce(func.max(schema.recordings.c.end), 0)).scalar_subquery()
_INSERT = insert(schema.recordings).values(
    invocation=bindparam("invocation"),
    end=_END + bindparam("bytes", type_=Integer),
    content=bindparam("content"),
)
_DROP = delete(schema.recordings).where(schema.recordings.c.end <= _END - bindparam("limit"))


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

    def _enter(self, connection: Connection, content: Packed) -> None:
        self._written += enter(connection, content)
        if content and self._written * SLICES >= self.recordings_bytes:
            drop(connection, self.recordings_bytes)
            self._written = 0.0

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
    sizes = {id: ROW_BYTES + len(recording or b"") for id, recording in content.items()}
    if content:
        rows = [{"invocation": id, "bytes": sizes[id], "content": content[id]} for id in content]
        connection.execute(_INSERT, rows)
    return sum(sizes.values())


def drop(connection: Connection, limit: int) -> None:
    """Drop the oldest recordings that lie beyond the newest `limit` bytes."""
    connection.execute(_DROP, {"limit": limit})
