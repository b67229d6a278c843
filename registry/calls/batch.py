"""Storing a group of finished calls, with one read and one write of each table for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from registry import trust
from registry.calls.recordings import Packed, count_bytes, find_last_end, hash_recording
from registry.database import tables
from registry.database.audit_chain import hash_call_content
from registry.database.canonical import RowConverter, clean_text, to_compact_json
from registry.database.rows import fetch_rows, insert_rows
from registry.models import CallFailure, EntryState, Invocation
from registry.servers import standings
from registry.servers.standings import SERVER
from registry.trust import Observation, Standing, TrustRecord

ARGUMENTS, RESULT, EXCHANGES = 1 << 20, 1 << 20, 4 << 20
"""Largest stored JSON text of each, in characters; of a longer one its hash is stored."""
TEXT = 20_000

# Built once: building these statements costs more than running them.
_IDS = func.json_each(bindparam("ids")).table_valued("value")
_STORED = select(tables.invocations.c.id, tables.invocations.c.state).where(
    tables.invocations.c.id.in_(select(_IDS.c.value))
)
_UPDATE = update(tables.invocations).where(tables.invocations.c.id == bindparam("of_id"))


class CallBatch:
    """Stores finished calls and updates the trust records, in the transaction of `connection`.

    A call that is stored as done already changes nothing. `notes` are (invocation id, payload) of
    the audit rows to append; `recordings` are those of the new calls by id, which begin at
    `recordings_begin` among all; `states` are the servers' states before the group. Calls of the
    process below the serial `complete` have a row.
    """

    def __init__(
        self,
        connection: Connection,
        given: Iterable[Invocation],
        recordings: Packed,
        now: float,
        complete: int = 0,
    ) -> None:
        self.invocations = tuple(given)
        self.recordings: dict[str, bytes | None] = {}
        self._packed = recordings
        self.recordings_begin = 0
        self._end: int | None = None
        self.states: dict[str, EntryState] = {}
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self._connection, self._now, self._complete = connection, now, complete
        self._records: dict[str, dict[str, TrustRecord]] = {}
        self._fresh: set[tuple[str, str]] = set()
        self._observed: dict[tuple[str, str], list[tuple[dict[str, Any], Observation]]] = {}
        """By server and operation, what the rows of its calls say of it."""
        self._load_stored()
        self._enter_calls()
        self._observe_calls()
        self._save_rows()

    def list_entries(self) -> tuple[str, ...]:
        return tuple(self.states)

    def compute_standing(self, entry: str) -> Standing:
        """The server's standing after the group."""
        record = self._records[entry][SERVER]
        return trust.compute_standing(record, experimental=self.states[entry] == "experimental")

    def _load_stored(self) -> None:
        ids = to_compact_json([invocation.id for invocation in self.invocations])
        self._stored: dict[str, str] = dict(fetch_rows(self._connection, _STORED, {"ids": ids}))
        for invocation in self.invocations:
            if invocation.entry not in self.states:
                self.states[invocation.entry] = standings.load_state(
                    self._connection, invocation.entry
                )
                tools = {i.tool for i in self.invocations if i.entry == invocation.entry}
                self._records[invocation.entry] = standings.load_records(
                    self._connection, invocation.entry, SERVER, *sorted(tools)
                )

    def _enter_calls(self) -> None:
        self._inserts: list[dict[str, Any]] = []
        self._updates: list[dict[str, Any]] = []
        for invocation in self.invocations:
            stored = self._stored.get(invocation.id)
            if stored == "done":
                continue
            finished = invocation
            if finished.state != "done" or finished.disputed:
                finished = replace(invocation, state="done", disputed=False)
            row = build_invocation_row(finished)
            seen = _build_observation(finished, row["latency_ms"], self._now)
            for operation in (SERVER, finished.tool):
                self._observed.setdefault((finished.entry, operation), []).append((row, seen))
            (self._updates if stored else self._inserts).append(row)
            self._stored[invocation.id] = "done"
            payload: dict[str, Any] = {
                "entry": invocation.entry,
                "tool": invocation.tool,
                "succeeded": invocation.failure is None,
                "content": hash_call_content(row),
            }
            if invocation.id in self._packed:
                payload |= self._note_recording(invocation.id)
            if invocation.serial:
                payload |= {"serial": invocation.serial, "complete": self._complete}
            self.notes.append((invocation.id, payload))

    def _note_recording(self, id: str) -> Mapping[str, Any]:
        """The audit's payload about a recording: its digest, and where it ends among all
        recordings.
        """
        content = self.recordings[id] = self._packed[id]
        if self._end is None:
            self._end = self.recordings_begin = find_last_end(self._connection)
        self._end += count_bytes(content)
        return {"recording": content and hash_recording(content), "recording_end": self._end}

    def _observe_calls(self) -> None:
        """Add the calls to the records of their servers and operations, and their ordinals there to
        their rows.
        """
        for (entry, operation), calls in self._observed.items():
            records = self._records[entry]
            if operation not in records:
                records[operation] = standings.create_blank_record(records[SERVER])
                self._fresh.add((entry, operation))
            records[operation], ordinals = trust.record_observations(
                records[operation], (seen for _, seen in calls)
            )
            column = "ordinal" if operation == SERVER else "operation_ordinal"
            for (row, _), ordinal in zip(calls, ordinals, strict=True):
                row[column] = ordinal

    def _save_rows(self) -> None:
        insert_rows(self._connection, tables.invocations, self._inserts)
        for row in self._updates:
            self._connection.execute(_UPDATE, {**row, "of_id": row["id"]})
        for fresh, touched in (
            (False, self._observed.keys() - self._fresh),
            (True, self._fresh),
        ):
            records = {of: self._records[of[0]][of[1]] for of in sorted(touched)}
            standings.save_records(self._connection, records, fresh)


def build_invocation_row(invocation: Invocation) -> dict[str, Any]:
    """The columns of an invocation, without its ordinals. What a server, an API or a client gave
    and no column can hold is replaced, and said so in `unstorable`.
    """
    failure, difference = invocation.failure, invocation.difference
    to = RowConverter(dict(invocation.unstorable))
    return {
        "id": invocation.id,
        "entry": invocation.entry,
        "version": invocation.version,
        "tool": invocation.tool,
        "access": invocation.access,
        "approval": invocation.approval,
        "process": invocation.process,
        "state": invocation.state,
        "disputed": invocation.disputed,
        "task": to.convert_text("task", invocation.task, TEXT),
        "reason": to.convert_text("reason", invocation.reason, TEXT),
        "session": to.convert_text("session", invocation.session, TEXT),
        "started": to.convert_number("started", invocation.started),
        "latency_ms": to.convert_number("latency_ms", invocation.latency_ms),
        "arguments": to.convert_json("arguments", invocation.arguments, ARGUMENTS),
        "result": to.convert_json("result", invocation.result, RESULT),
        "exchanges": to.convert_json("exchanges", invocation.exchanges, EXCHANGES),
        "failure_kind": to.convert_text("failure_kind", failure.kind, 40) if failure else None,
        "failure_message": (
            to.convert_text("failure_message", failure.message, TEXT) if failure else ""
        ),
        "failure_status": to.convert_integer("failure_status", failure.status) if failure else None,
        "difference": (
            to.convert_json("difference", vars(difference), TEXT) if difference else None
        ),
        "unstorable": to.write_notes(),
    }


def mark_unstorable(invocation: Invocation, reason: str) -> Invocation:
    """The call with nothing left of what others gave but how it ended, for a row that could not be
    stored as it is.
    """
    said = {"unstorable": clean_text(reason, 200)}
    failure = invocation.failure
    return replace(
        invocation,
        arguments=said,
        result=said,
        exchanges=(said,),
        task="",
        reason="",
        session="",
        latency_ms=0.0,
        failure=failure and CallFailure(str(failure.kind), said["unstorable"]),
        difference=None,
        recording=None,
        unstorable={"row": said["unstorable"]},
    )


def _build_observation(invocation: Invocation, latency_ms: float, now: float) -> Observation:
    failure = invocation.failure
    return Observation(
        version=invocation.version,
        fault=invocation.fault,
        latency_ms=latency_ms,
        at=now,
        reason=f"{failure.kind}: {failure.message}" if failure else "",
    )
