"""What was called and what came of it. A write's intent is on disk before its first byte leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Update, insert, select, update

from registry import approvals, schema, standings, trust
from registry.entries import change_state
from registry.errors import Duplicate, NotCallable, Unknown
from registry.group import TEXT, Group, invocation_row
from registry.jsontext import clean
from registry.processes import check_not_frozen
from registry.recordings import Recordings, packed
from registry.records import CALLABLE, EntryState, Failed, Invocation
from registry.standings import SERVER
from registry.trust import Standing


class Invocations(Recordings):
    """The calls. A call is stored once, whatever state it is in, under its id."""

    def intend(self, invocation: Invocation, now: float) -> None:
        """Store that a call is about to happen; when this returns it is on disk.

        Raises sandbox.errors.Frozen, NotCallable, ApprovalNotHeld where it runs on an approval
        that `invocation.process` has not claimed or has used before, Duplicate, Unknown.
        """
        with self._database.write() as connection:
            check_not_frozen(connection)
            if _find(connection, invocation.id) is not None:
                raise Duplicate("invocation", invocation.id)
            _check_callable(connection, invocation)
            if invocation.approval is not None:
                approvals.check_held(connection, invocation.approval, invocation.process)
            connection.execute(
                insert(schema.invocations), invocation_row(replace(invocation, state="intended"))
            )
            payload = {
                "entry": invocation.entry,
                "version": invocation.version,
                "tool": invocation.tool,
                "approval": invocation.approval,
            }
            self._append(connection, "intent", invocation.id, payload, now)

    def record(self, invocation: Invocation, now: float) -> Standing:
        """Store a finished call and what it does to the server's trust, in one transaction.

        Recording an id again changes nothing. A server that the call degrades is quarantined at
        once. Raises Unknown for the server.
        """
        return self.record_many((invocation,), now)[0]

    def record_many(self, invocations: Iterable[Invocation], now: float) -> tuple[Standing, ...]:
        """`record` for many calls in one transaction, one flush to disk for all of them."""
        given = tuple(invocations)
        recordings = packed(given) if self.recordings_bytes else {}
        with self._database.write() as connection:
            group = Group(connection, given, recordings, now)
            self._enter(connection, group.recordings, now)
            self._append_many(connection, "invocation", group.notes, now)
            for name in group.entries():
                standing, state = group.standing(name), group.states[name]
                self._quarantine(connection, name, state, standing, now)
            return tuple(group.standing(invocation.entry) for invocation in group.invocations)

    def mark_wrong(self, id: str, by: str, now: float, reason: str = "") -> Standing:
        """Count a success as a failure, because a person found its result wrong.

        A call that is no success stays what it is. Raises Unknown.
        """
        with self._database.write() as connection:
            row = _find(connection, id)
            if row is None:
                raise Unknown("invocation", id)
            if _invocation(row).succeeded:
                connection.execute(_of(id).values(disputed=True))
                _overturn(connection, row, now, f"marked wrong by {by}: {reason}"[:TEXT])
                payload = {"by": clean(by, TEXT), "reason": clean(reason, TEXT)}
                self._append(connection, "marked_wrong", id, payload, now)
            standing, state = standings.now(connection, row["entry"])
            self._quarantine(connection, row["entry"], state, standing, now)
            return standing

    def settle_unknown(self, processes: Iterable[str], now: float) -> tuple[Invocation, ...]:
        """Give up on what dead processes left: their intents become `unknown`, never retried.

        Approvals they had claimed become `unknown` too, or `approved` again where no intent was
        stored, since then nothing can have left. Returns the intents given up.
        """
        dead = tuple(processes)
        invocations = schema.invocations
        lost = (invocations.c.state == "intended") & invocations.c.process.in_(dead)
        with self._database.write() as connection:
            rows = connection.execute(select(invocations).where(lost)).mappings().all()
            connection.execute(update(invocations).where(lost).values(state="unknown"))
            for row in rows:
                payload = {"process": row["process"], "approval": row["approval"]}
                self._append(connection, "unknown", row["id"], payload, now)
            for approval, state in approvals.release(connection, dead):
                self._append(connection, f"approval.{state}", approval, {"by": "recovery"}, now)
        return tuple(_invocation({**row, "state": "unknown"}) for row in rows)

    def invocations(self, entry: str | None = None, limit: int = 50) -> tuple[Invocation, ...]:
        """The newest calls, newest first, of one server or of all."""
        invocations = schema.invocations
        query = select(invocations).order_by(invocations.c.sequence.desc()).limit(limit)
        if entry is not None:
            query = query.where(invocations.c.entry == entry)
        with self._database.read() as connection:
            return tuple(_invocation(row) for row in connection.execute(query).mappings())

    def invocation(self, id: str) -> Invocation:
        """Raises Unknown."""
        with self._database.read() as connection:
            row = _find(connection, id)
        if row is None:
            raise Unknown("invocation", id)
        return _invocation(row)

    def _quarantine(
        self,
        connection: Connection,
        entry: str,
        state: EntryState,
        standing: Standing,
        now: float,
    ) -> None:
        if standing.level == "degraded" and state in CALLABLE:
            change_state(connection, entry, "quarantined")
            payload = {"state": "quarantined", "by": "trust", "reason": "degraded"}
            self._append(connection, "state", entry, payload, now)


def as_stored(invocation: Invocation) -> Invocation:
    """The invocation as the store gives it back: texts and JSON bounded."""
    return _invocation(invocation_row(invocation))


def _find(connection: Connection, id: str) -> RowMapping | None:
    query = select(schema.invocations).where(schema.invocations.c.id == id)
    return connection.execute(query).mappings().first()


def _of(id: str) -> Update:
    return update(schema.invocations).where(schema.invocations.c.id == id)


def _check_callable(connection: Connection, invocation: Invocation) -> None:
    entries = schema.entries
    query = select(entries.c.state, entries.c.version).where(entries.c.name == invocation.entry)
    entry = connection.execute(query).first()
    if entry is None:
        raise Unknown("server", invocation.entry)
    if entry.state not in CALLABLE or entry.version != invocation.version:
        raise NotCallable(invocation.entry, invocation.version, entry.state, entry.version)


def _overturn(connection: Connection, row: RowMapping, now: float, reason: str) -> None:
    records = standings.load(connection, row["entry"], SERVER, row["tool"])
    for operation, ordinal in ((SERVER, row["ordinal"]), (row["tool"], row["operation_ordinal"])):
        before = records[operation]
        age = None if ordinal is None else before.ordinal - ordinal
        after = trust.overturn(before, row["version"], age, now, reason)
        standings.save(connection, row["entry"], operation, after, fresh=False)


def _invocation(row: Mapping[Any, Any]) -> Invocation:
    kind, exchanges = row["failure_kind"], json.loads(row["exchanges"])
    own = ("id", "entry", "version", "tool", "access", "started", "task", "reason", "session")
    end = ("latency_ms", "approval", "process", "state", "disputed")
    return Invocation(
        **{name: row[name] for name in (*own, *end)},
        arguments=json.loads(row["arguments"]),
        result=json.loads(row["result"]),
        failure=kind and Failed(kind, row["failure_message"], row["failure_status"]),
        # A list that was too long was replaced by one marker.
        exchanges=tuple(exchanges) if isinstance(exchanges, list) else (exchanges,),
    )
