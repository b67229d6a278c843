"""Table of tool calls and their outcomes.

The intent of a write is on disk before its first byte is sent, so that after a crash it is known
that the write may have happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    Update,
    case,
    cast,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from registry import trust
from registry.approvals import approvals
from registry.calls.batch import RESULT, TEXT, CallBatch, build_invocation_row, mark_unstorable
from registry.calls.recordings import RecordingTable, pack_recordings
from registry.database import tables
from registry.database.canonical import bound_json, clean_text
from registry.errors import DuplicateRow, NotCallable, RowNotFound
from registry.models import CALLABLE, CallDifference, CallFailure, EntryState, Invocation
from registry.processes import check_not_frozen
from registry.search import examples
from registry.servers import standings
from registry.servers.entries import STATE, change_state
from registry.servers.standings import SERVER
from registry.trust import Standing
from sandbox.offload import has_many_values

SEARCHED = 5_000
COUNTED = 20_000
"""Newest calls that are looked through, so that a long history makes nothing slow."""


@dataclass(frozen=True)
class CallQuery:
    """Filters of a search; "" does not filter. `outcome` is `ok`, `failed` or `writes`; `text` may
    occur in the tool's name, the task or the arguments.
    """

    server: str = ""
    tool: str = ""
    outcome: str = ""
    text: str = ""


@dataclass(frozen=True)
class CallOutcome:
    """What became of one ended call of a server: `fault` as `registry.trust.judge_fault` says."""

    started: float
    version: int
    fault: trust.Fault


@dataclass(frozen=True)
class CallCount:
    """The calls that were begun in the hour from `hour` (epoch seconds) on."""

    hour: float
    succeeded: int
    failed: int


def bound_results(calls: Iterable[Invocation]) -> list[Invocation]:
    """The calls, large results as their rows will hold them: of more than `RESULT` characters a
    hash and a head, which are handed on in no time and take no room until they are stored.
    """
    return [
        replace(call, result=bound_json(call.result, RESULT))
        if has_many_values(call.result)
        else call
        for call in calls
    ]


class CallTable(RecordingTable):
    """Calls by id; each is one row, whose state changes from `intended` to `done` or `unknown`."""

    def store_intent(self, invocation: Invocation, now: float) -> None:
        """Store that a call is about to happen; when this returns it is on disk. The approval that
        it runs on is spent by that, in the same transaction.

        Raises sandbox.errors.Frozen, NotCallable, ApprovalNotHeld where it runs on an approval
        that `invocation.process` has not claimed or has used before, Duplicate, Unknown.
        """
        with self._database.write() as connection:
            check_not_frozen(connection)
            if _find_row(connection, invocation.id) is not None:
                raise DuplicateRow("invocation", invocation.id)
            _check_callable(connection, invocation)
            spent = {}
            if invocation.approval is not None:
                spent = approvals.spend_approval(
                    connection, invocation.approval, invocation.process, invocation.id
                )
            connection.execute(
                insert(tables.invocations),
                build_invocation_row(replace(invocation, state="intended")),
            )
            payload = {
                "entry": invocation.entry,
                "version": invocation.version,
                "tool": invocation.tool,
                "approval": invocation.approval,
            }
            self._append_audit_row(connection, "intent", invocation.id, payload, now)
            if invocation.approval is not None:
                self._append_audit_row(
                    connection, approvals.SENDING, invocation.approval, spent, now
                )

    def record(self, invocation: Invocation, now: float, complete: int = 0) -> Standing:
        """Store a finished call and what it does to the server's trust, in one transaction.

        Recording an id again changes nothing. A server that the call degrades is quarantined at
        once. Raises Unknown for the server.
        """
        return self.record_many((invocation,), now, complete)[0]

    def record_marked(
        self, invocation: Invocation, reason: str, now: float, complete: int = 0
    ) -> Standing:
        """Store a finished call that cannot be stored as it is, for that reason, without what
        others gave. Raises what `record` raises.
        """
        return self.record(mark_unstorable(invocation, reason), now, complete)

    def record_many(
        self, invocations: Iterable[Invocation], now: float, complete: int = 0
    ) -> tuple[Standing, ...]:
        """Store many finished calls in one transaction, with one flush to disk for all of them.

        `complete` is the lowest serial of the process that has no row yet; the audit keeps it, so
        that a call without a row is found out.
        """
        given = tuple(invocations)
        recordings = pack_recordings(given) if self.recordings_bytes else {}
        with self._database.write() as connection:
            group = CallBatch(connection, given, recordings, now, complete)
            self._enter_recordings(connection, group.recordings, group.recordings_begin, now)
            self._append_audit_rows(connection, "invocation", group.notes, now)
            recorded = {id for id, _ in group.notes}
            examples.learn_calls(connection, (call for call in given if call.id in recorded), now)
            after = {name: group.compute_standing(name) for name in group.list_entries()}
            for name, standing in after.items():
                state = group.states[name]
                self._quarantine_if_degraded(connection, name, state, standing, now)
            return tuple(after[invocation.entry] for invocation in group.invocations)

    def mark_wrong(self, id: str, by: str, now: float, reason: str = "") -> Standing:
        """Count a success as a failure, because a person found its result wrong.

        A call that is no success stays what it is. Raises Unknown.
        """
        with self._database.write() as connection:
            row = _find_row(connection, id)
            if row is None:
                raise RowNotFound("call", id)
            if _parse_row(row).succeeded:
                connection.execute(_update_row(id).values(disputed=True))
                _overturn_success(connection, row, now, f"marked wrong by {by}: {reason}"[:TEXT])
                for _ in range(2):  # It had been counted as a success.
                    examples.count_refusal(connection, row["entry"], row["tool"], row["task"], now)
                payload = {"by": clean_text(by, TEXT), "reason": clean_text(reason, TEXT)}
                self._append_audit_row(connection, "marked_wrong", id, payload, now)
            standing, state = standings.load_standing(connection, row["entry"])
            self._quarantine_if_degraded(connection, row["entry"], state, standing, now)
            return standing

    def settle_unknown(self, processes: Iterable[str], now: float) -> tuple[Invocation, ...]:
        """Mark the intents of dead processes as `unknown`; they are never retried.

        Approvals that they had claimed become `unknown` too, or `approved` again where they were
        not spent, since then nothing can have been sent. Returns the intents.
        """
        dead = tuple(processes)
        invocations = tables.invocations
        lost = (invocations.c.state == "intended") & invocations.c.process.in_(dead)
        with self._database.write() as connection:
            rows = connection.execute(select(invocations).where(lost)).mappings().all()
            connection.execute(update(invocations).where(lost).values(state="unknown"))
            for row in rows:
                payload = {"process": row["process"], "approval": row["approval"]}
                self._append_audit_row(connection, "unknown", row["id"], payload, now)
            for approval, state in approvals.release_claims(connection, dead):
                self._append_audit_row(
                    connection, f"approval.{state}", approval, {"by": "recovery"}, now
                )
        return tuple(_parse_row({**row, "state": "unknown"}) for row in rows)

    def find(self, entry: str | None = None, limit: int = 50) -> tuple[Invocation, ...]:
        """The newest calls, newest first, of one server or of all."""
        invocations = tables.invocations
        query = select(invocations).order_by(invocations.c.sequence.desc()).limit(limit)
        if entry is not None:
            query = query.where(invocations.c.entry == entry)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def search(self, wanted: CallQuery, limit: int, offset: int = 0) -> tuple[Invocation, ...]:
        """Calls that pass all filters, newest first, after the first `offset` of them. A text is
        looked for in the newest SEARCHED calls.
        """
        invocations = tables.invocations
        query = (
            select(invocations)
            .where(*_build_conditions(wanted))
            .order_by(invocations.c.sequence.desc())
            .limit(limit)
            .offset(offset)
        )
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def find_outcomes(self, entry: str, limit: int) -> tuple[CallOutcome, ...]:
        """The outcomes of a server's newest ended calls, oldest first, without what they hold."""
        calls = tables.invocations.c
        query = (
            select(calls.started, calls.version, calls.failure_kind, calls.disputed)
            .where(calls.entry == entry, calls.state == "done")
            .order_by(calls.sequence.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            found = [
                CallOutcome(row.started, row.version, _judge_row(row.failure_kind, row.disputed))
                for row in connection.execute(query)
            ]
        return tuple(reversed(found))

    def count_by_hour(self, since: float) -> tuple[CallCount, ...]:
        """The ended calls begun since a moment by the hour, of the newest COUNTED, oldest first."""
        calls = tables.invocations.c
        good = (calls.state == "done") & calls.failure_kind.is_(None) & not_(calls.disputed)
        newest = (
            select(calls.started, calls.state, case((good, 1), else_=0).label("good"))
            .order_by(calls.sequence.desc())
            .limit(COUNTED)
            .subquery()
        )
        hour = cast(newest.c.started / 3600, Integer)
        query = (
            select(hour, func.sum(newest.c.good), func.count())
            .where(newest.c.started >= since, newest.c.state != "intended")
            .group_by(hour)
            .order_by(hour)
        )
        with self._database.read() as connection:
            return tuple(
                CallCount(3600.0 * hour, succeeded, ended - succeeded)
                for hour, succeeded, ended in connection.execute(query)
            )

    def count_since(self, since: float) -> int:
        """The calls that were begun since a moment."""
        calls = tables.invocations.c
        query = select(func.count()).where(calls.started > since)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def get(self, id: str) -> Invocation:
        """Raises Unknown."""
        with self._database.read() as connection:
            row = _find_row(connection, id)
        if row is None:
            raise RowNotFound("call", id)
        return _parse_row(row)

    def _quarantine_if_degraded(
        self,
        connection: Connection,
        entry: str,
        state: EntryState,
        standing: Standing,
        now: float,
    ) -> None:
        if standing.level == "degraded" and state in CALLABLE:
            change_state(connection, entry, "quarantined")
            reason = (
                f"{standing.failed} of its last {standing.window} counted calls failed by its own "
                f"fault, the last by {standing.last_failure_reason[:300]}"
            )
            told = {"by": "trust", "reason": clean_text(reason, TEXT)}
            payload = {"state": "quarantined", "before": state, **told}
            self._append_audit_row(connection, STATE, entry, payload, now)


def limit_invocation(invocation: Invocation) -> Invocation:
    """The invocation as the store gives it back: texts and JSON bounded."""
    return _parse_row(build_invocation_row(invocation))


def _find_row(connection: Connection, id: str) -> RowMapping | None:
    query = select(tables.invocations).where(tables.invocations.c.id == id)
    return connection.execute(query).mappings().first()


def _update_row(id: str) -> Update:
    return update(tables.invocations).where(tables.invocations.c.id == id)


def _check_callable(connection: Connection, invocation: Invocation) -> None:
    entries = tables.entries
    query = select(entries.c.state, entries.c.version).where(entries.c.name == invocation.entry)
    entry = connection.execute(query).first()
    if entry is None:
        raise RowNotFound("server", invocation.entry)
    if entry.state not in CALLABLE or entry.version != invocation.version:
        raise NotCallable(invocation.entry, invocation.version, entry.state, entry.version)


def _overturn_success(connection: Connection, row: RowMapping, now: float, reason: str) -> None:
    records = standings.load_records(connection, row["entry"], SERVER, row["tool"])
    for operation, ordinal in ((SERVER, row["ordinal"]), (row["tool"], row["operation_ordinal"])):
        before = records[operation]
        age = None if ordinal is None else before.ordinal - ordinal
        after = trust.overturn_success(before, row["version"], age, now, reason)
        standings.save_record(connection, row["entry"], operation, after, fresh=False)


def _judge_row(failure_kind: str | None, disputed: bool) -> trust.Fault:
    return "server" if disputed else trust.judge_fault(failure_kind or "")


def _build_conditions(wanted: CallQuery) -> Iterator[ColumnElement[bool]]:
    calls = tables.invocations.c
    good = (calls.state == "done") & calls.failure_kind.is_(None) & not_(calls.disputed)
    if wanted.server:
        yield calls.entry == wanted.server
    if wanted.tool:
        yield calls.tool == wanted.tool
    if wanted.outcome == "ok":
        yield good
    elif wanted.outcome == "failed":
        yield not_(good) & (calls.state != "intended")
    elif wanted.outcome == "writes":
        yield calls.access == "write"
    if wanted.text:
        yield calls.sequence > select(func.max(calls.sequence)).scalar_subquery() - SEARCHED
        names = (calls.tool, calls.task, calls.arguments)
        yield or_(*(name.icontains(wanted.text, autoescape=True) for name in names))


def _parse_row(row: Mapping[Any, Any]) -> Invocation:
    kind, exchanges = row["failure_kind"], json.loads(row["exchanges"])
    own = ("id", "entry", "version", "tool", "access", "started", "task", "reason", "session")
    end = ("latency_ms", "approval", "process", "state", "disputed")
    return Invocation(
        **{name: row[name] for name in (*own, *end)},
        arguments=json.loads(row["arguments"]),
        result=json.loads(row["result"]),
        unstorable=json.loads(row["unstorable"] or "{}"),
        failure=kind and CallFailure(kind, row["failure_message"], row["failure_status"]),
        difference=CallDifference(**json.loads(row["difference"])) if row["difference"] else None,
        # A list that was too long was replaced by one marker.
        exchanges=tuple(exchanges) if isinstance(exchanges, list) else (exchanges,),
    )
