"""The append-only account of everything that was done: hash chains, one per process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, insert, select

from registry import schema
from registry.database import Database
from registry.jsontext import bounded, canonical, clean, sha256
from registry.records import AuditRow

GENESIS = "0" * 64
LOCAL_CHAIN = "local"
CALL = "invocation"
ARCHIVED = "audit.archived"
NOTE = 20_000
SUBJECT = 2_000
CONTENT = (
    "id",
    "entry",
    "version",
    "tool",
    "access",
    "started",
    "arguments",
    "task",
    "reason",
    "session",
    "result",
    "failure_kind",
    "failure_message",
    "failure_status",
    "latency_ms",
    "exchanges",
    "approval",
)
"""What of a call's row the audit vouches for."""
_COLUMNS = tuple(schema.audit.c[field.name] for field in fields(AuditRow))
_WRITTEN = tuple(field.name for field in fields(AuditRow) if field.name != "id")
_INSERT = insert(schema.audit)
_LAST = (
    select(schema.audit.c.sequence, schema.audit.c.hash)
    .where(schema.audit.c.chain == bindparam("of_chain"))
    .order_by(schema.audit.c.sequence.desc())
    .limit(1)
)


@dataclass(frozen=True)
class Broken:
    """The first row of a chain that is not what was written, and what is wrong with it."""

    chain: str
    sequence: int
    reason: str


@dataclass(frozen=True)
class Head:
    """The newest row of a chain."""

    chain: str
    sequence: int
    hash: str


class Ledger:
    """The part of the store that all other parts write through.

    Rows go to the chain of the process, or to `local` where none is named.
    """

    def __init__(self, database: Database, process: str = "") -> None:
        self._database = database
        self._chain = process or LOCAL_CHAIN

    def audit(self, limit: int = 100, since: int | None = None) -> tuple[AuditRow, ...]:
        """The newest rows, newest first; with `since`, the first ones after that id, in order."""
        query = select(*_COLUMNS).limit(limit)
        if since is None:
            query = query.order_by(schema.audit.c.id.desc())
        else:
            query = query.where(schema.audit.c.id > since).order_by(schema.audit.c.id)
        with self._database.read() as connection:
            return tuple(AuditRow(**row) for row in connection.execute(query).mappings())

    def audit_heads(self) -> tuple[Head, ...]:
        """The newest row of every chain, by chain."""
        with self._database.read() as connection:
            return heads_of(connection)

    def note(self, kind: str, subject: str, payload: Mapping[str, Any], now: float) -> None:
        """Add a row for something that happened outside the registry.

        A payload of more than 20,000 characters of JSON is kept by its hash.
        """
        kept = json.loads(bounded(payload, NOTE))
        with self._database.write() as connection:
            self._append(connection, kind, subject, kept, now)

    def _append(
        self,
        connection: Connection,
        kind: str,
        subject: str,
        payload: Mapping[str, Any],
        now: float,
    ) -> None:
        self._append_many(connection, kind, ((subject, payload),), now)

    def _append_many(
        self,
        connection: Connection,
        kind: str,
        notes: Iterable[tuple[str, Mapping[str, Any]]],
        now: float,
    ) -> None:
        """Add a row for each (subject, payload), in their order."""
        last = connection.execute(_LAST, {"of_chain": self._chain}).first()
        sequence, previous = (last.sequence, last.hash) if last else (0, GENESIS)
        rows = []
        for subject, payload in notes:
            sequence += 1
            row = AuditRow(
                id=0,
                chain=self._chain,
                sequence=sequence,
                time=float(now),
                kind=kind,
                subject=clean(subject, SUBJECT),
                payload=canonical(payload),
                previous=previous,
                hash="",
            )
            previous = link(row)
            rows.append({name: getattr(row, name) for name in _WRITTEN} | {"hash": previous})
        if rows:
            connection.execute(_INSERT, rows)


def link(row: AuditRow) -> str:
    """The hash that a row must carry: SHA-256 over the canonical JSON of everything before it."""
    said = (row.chain, row.sequence, row.time, row.kind, row.subject, row.payload)
    return sha256(canonical([*said, row.previous]))


def content_digest(row: Mapping[Any, Any] | RowMapping) -> str:
    """SHA-256 over what an `invocations` row says happened; later marks on it are left out."""
    return sha256(canonical([row[name] for name in CONTENT]))


def heads_of(connection: Connection) -> tuple[Head, ...]:
    audit = schema.audit
    newest = select(audit.c.chain, func.max(audit.c.sequence).label("sequence"))
    last = newest.group_by(audit.c.chain).subquery()
    query = (
        select(audit.c.chain, audit.c.sequence, audit.c.hash)
        .join(last, (audit.c.chain == last.c.chain) & (audit.c.sequence == last.c.sequence))
        .order_by(audit.c.chain)
    )
    return tuple(Head(**row) for row in connection.execute(query).mappings())


def audit_rows(connection: Connection) -> Iterator[AuditRow]:
    """All rows, by chain and in its order."""
    query = select(*_COLUMNS).order_by(schema.audit.c.chain, schema.audit.c.sequence)
    result = connection.execution_options(yield_per=1000).execute(query)
    return (AuditRow(**row) for row in result.mappings())
