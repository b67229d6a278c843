"""Append-only audit rows in hash chains, one chain per process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, select

from registry.database import tables
from registry.database.canonical import clean_text, hash_text, to_canonical_json
from registry.database.engine import Database
from registry.database.rows import fetch_rows, insert_rows
from registry.models import AuditRow

GENESIS = "0" * 64
LOCAL_CHAIN = "local"
CALL = "invocation"
ACCOUNTED, COUNTED = "call.accounted", "calls.counted"
"""Kinds of rows that, beside those of calls, say which calls of their process have been begun:
`serial` is the number of one, `complete` the first number of which the chain may hold no row yet.
"""
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
    "difference",
    "latency_ms",
    "exchanges",
    "unstorable",
    "approval",
)
"""Columns of a call's row that its audit row covers with a digest."""
COLUMNS = tuple(tables.audit.c[field.name] for field in fields(AuditRow))
_LAST = (
    select(tables.audit.c.sequence, tables.audit.c.hash)
    .where(tables.audit.c.chain == bindparam("of_chain"))
    .order_by(tables.audit.c.sequence.desc())
    .limit(1)
)


@dataclass(frozen=True)
class BrokenLink:
    """The first row of a chain that was altered, and the reason."""

    chain: str
    sequence: int
    reason: str


@dataclass(frozen=True)
class ChainHead:
    """The newest row of a chain."""

    chain: str
    sequence: int
    hash: str


class Repository:
    """Base of the store's tables: every change appends an audit row in the same transaction.

    Audit rows go to the chain of `process`, or to `local` where that is "".
    """

    def __init__(self, database: Database, process: str = "") -> None:
        self._database = database
        self._chain = process or LOCAL_CHAIN

    def _append_audit_row(
        self,
        connection: Connection,
        kind: str,
        subject: str,
        payload: Mapping[str, Any],
        now: float,
    ) -> None:
        self._append_audit_rows(connection, kind, ((subject, payload),), now)

    def _append_audit_rows(
        self,
        connection: Connection,
        kind: str,
        notes: Iterable[tuple[str, Mapping[str, Any]]],
        now: float,
    ) -> None:
        """Add a row for each (subject, payload), in their order."""
        last = fetch_rows(connection, _LAST, {"of_chain": self._chain})
        sequence, previous = last[0] if last else (0, GENESIS)
        rows = []
        for subject, payload in notes:
            sequence += 1
            row = {
                "chain": self._chain,
                "sequence": sequence,
                "time": float(now),
                "kind": kind,
                "subject": clean_text(subject, SUBJECT),
                "payload": _write_payload(payload),
                "previous": previous,
            }
            previous = _hash_fields(row.values())
            rows.append({**row, "hash": previous})
        insert_rows(connection, tables.audit, rows)


def _write_payload(payload: Mapping[str, Any]) -> str:
    """The canonical JSON of a payload, or of a marker where it has none: no row is lost over it."""
    try:
        return to_canonical_json(payload)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return to_canonical_json(
            {"unstorable": clean_text(f"{type(error).__name__}: {error}", 200)}
        )


def hash_row(row: AuditRow) -> str:
    """The hash of a row: SHA-256 over the canonical JSON of its other fields and the
    previous hash.
    """
    said = (row.chain, row.sequence, row.time, row.kind, row.subject, row.payload, row.previous)
    return _hash_fields(said)


def _hash_fields(fields: Iterable[Any]) -> str:
    return hash_text(to_canonical_json([*fields]))


def hash_call_content(row: Mapping[Any, Any] | RowMapping) -> str:
    """SHA-256 over the columns CONTENT of an `invocations` row, without those that change later."""
    return hash_text(to_canonical_json([row[name] for name in CONTENT]))


def find_heads(connection: Connection) -> tuple[ChainHead, ...]:
    audit = tables.audit
    newest = select(audit.c.chain, func.max(audit.c.sequence).label("sequence"))
    last = newest.group_by(audit.c.chain).subquery()
    query = (
        select(audit.c.chain, audit.c.sequence, audit.c.hash)
        .join(last, (audit.c.chain == last.c.chain) & (audit.c.sequence == last.c.sequence))
        .order_by(audit.c.chain)
    )
    return tuple(ChainHead(**row) for row in connection.execute(query).mappings())


def read_audit_rows(connection: Connection) -> Iterator[AuditRow]:
    """All rows, by chain and in its order."""
    query = select(*COLUMNS).order_by(tables.audit.c.chain, tables.audit.c.sequence)
    result = connection.execution_options(yield_per=1000).execute(query)
    return (AuditRow(**row) for row in result.mappings())
