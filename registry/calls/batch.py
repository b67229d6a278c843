"""A group of finished calls as rows: each table is read once and written once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from registry import schema, standings, trust
from registry.audit import content_digest
from registry.jsontext import bounded, clean
from registry.recordings import Packed, digest, last_end, taken
from registry.records import EntryState, Invocation
from registry.standings import SERVER
from registry.trust import Observation, Standing, TrustRecord

ARGUMENTS, RESULT, EXCHANGES = 1 << 20, 1 << 20, 4 << 20
"""How many characters of JSON are kept of each; the hash of a longer one is kept in its place."""
TEXT = 20_000

# Built once: building these statements costs more than running them.
_STORED = select(schema.invocations.c.id, schema.invocations.c.state).where(
    schema.invocations.c.id.in_(bindparam("ids", expanding=True))
)
_INSERT = insert(schema.invocations)
_UPDATE = update(schema.invocations).where(schema.invocations.c.id == bindparam("of_id"))


class Group:
    """Enters finished calls into the invocations and the trust records of one transaction.

    A call that is stored as done already changes nothing. `notes` are what the audit is to say, by
    invocation id; `recordings` are those of the calls that are new; `states` are the servers'
    before the group.
    """

    def __init__(
        self, connection: Connection, given: Iterable[Invocation], recordings: Packed, now: float
    ) -> None:
        self.invocations = tuple(given)
        self.recordings: dict[str, bytes | None] = {}
        self._packed = recordings
        self._end: int | None = None
        self.states: dict[str, EntryState] = {}
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self._connection, self._now = connection, now
        self._records: dict[str, dict[str, TrustRecord]] = {}
        self._fresh: set[tuple[str, str]] = set()
        self._touched: set[tuple[str, str]] = set()
        self._load()
        self._enter()
        self._save()

    def entries(self) -> tuple[str, ...]:
        return tuple(self.states)

    def standing(self, entry: str) -> Standing:
        """The server's standing after the group."""
        record = self._records[entry][SERVER]
        return trust.standing_of(record, experimental=self.states[entry] == "experimental")

    def _load(self) -> None:
        ids = [invocation.id for invocation in self.invocations]
        rows = self._connection.execute(_STORED, {"ids": ids}) if ids else ()
        self._stored: dict[str, str] = {row.id: row.state for row in rows}
        for invocation in self.invocations:
            if invocation.entry not in self.states:
                self.states[invocation.entry] = standings.state_of(
                    self._connection, invocation.entry
                )
                tools = {i.tool for i in self.invocations if i.entry == invocation.entry}
                self._records[invocation.entry] = standings.load(
                    self._connection, invocation.entry, SERVER, *sorted(tools)
                )

    def _enter(self) -> None:
        self._inserts: list[dict[str, Any]] = []
        self._updates: list[dict[str, Any]] = []
        for invocation in self.invocations:
            stored = self._stored.get(invocation.id)
            if stored == "done":
                continue
            finished = replace(invocation, state="done", disputed=False)
            row = {**invocation_row(finished), **self._observed(finished)}
            (self._updates if stored else self._inserts).append(row)
            self._stored[invocation.id] = "done"
            payload: dict[str, Any] = {
                "entry": invocation.entry,
                "tool": invocation.tool,
                "succeeded": invocation.failure is None,
                "content": content_digest(row),
            }
            if invocation.id in self._packed:
                payload |= self._recorded(invocation.id)
            self.notes.append((invocation.id, payload))

    def _recorded(self, id: str) -> Mapping[str, Any]:
        """What the audit says of a recording: its digest, and its place in the order of all."""
        content = self.recordings[id] = self._packed[id]
        if self._end is None:
            self._end = last_end(self._connection)
        self._end += taken(content)
        return {"recording": content and digest(content), "recording_end": self._end}

    def _observed(self, invocation: Invocation) -> dict[str, int | None]:
        """Enter a call into both its records; the ordinals that it got in them."""
        records = self._records[invocation.entry]
        if invocation.tool not in records:
            records[invocation.tool] = standings.blank(records[SERVER])
            self._fresh.add((invocation.entry, invocation.tool))
        seen = _observation(invocation, self._now)
        ordinals = {}
        for operation in (SERVER, invocation.tool):
            before = records[operation]
            after = records[operation] = trust.observe(before, seen)
            ordinals[operation] = after.ordinal if after.ordinal > before.ordinal else None
            self._touched.add((invocation.entry, operation))
        return {"ordinal": ordinals[SERVER], "operation_ordinal": ordinals[invocation.tool]}

    def _save(self) -> None:
        if self._inserts:
            self._connection.execute(_INSERT, self._inserts)
        for row in self._updates:
            self._connection.execute(_UPDATE, {**row, "of_id": row["id"]})
        for entry, operation in sorted(self._touched):
            fresh = (entry, operation) in self._fresh
            record = self._records[entry][operation]
            standings.save(self._connection, entry, operation, record, fresh)


def invocation_row(invocation: Invocation) -> dict[str, Any]:
    """The columns of an invocation, bounded, without its ordinals."""
    failure = invocation.failure
    plain = ("id", "entry", "version", "tool", "access", "started", "latency_ms", "approval")
    return {
        **{name: getattr(invocation, name) for name in plain},
        **{name: clean(getattr(invocation, name), TEXT) for name in ("task", "reason", "session")},
        "arguments": bounded(invocation.arguments, ARGUMENTS),
        "result": bounded(invocation.result, RESULT),
        "exchanges": bounded(invocation.exchanges, EXCHANGES),
        "failure_kind": clean(failure.kind, 40) if failure else None,
        "failure_message": clean(failure.message, TEXT) if failure else "",
        "failure_status": failure.status if failure else None,
        "process": invocation.process,
        "state": invocation.state,
        "disputed": invocation.disputed,
    }


def _observation(invocation: Invocation, now: float) -> Observation:
    failure = invocation.failure
    return Observation(
        version=invocation.version,
        succeeded=invocation.succeeded,
        counted=invocation.counted,
        latency_ms=invocation.latency_ms,
        at=now,
        reason=f"{failure.kind}: {failure.message}" if failure else "",
    )
