"""Writes that a person is asked about. Deciding and claiming are compare-and-set."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.errors import ApprovalNotHeld, Duplicate, Unknown
from registry.jsontext import bounded, clean, compact, sha256
from registry.processes import check_not_frozen
from registry.records import Approval, ApprovalState
from sandbox.exchange import WireRequest

TEXT = 20_000
OUTCOME = 1 << 20
Forgery = Callable[[Approval, float], str]
"""Why a stored approval was not approved by a person, at a time; "" where it was
(`registry.decisions.forgery_check`).
"""
SPENT = ("approval.done", "approval.failed", "approval.unknown")
"""What the audit says of an approval whose call has run: it is never carried out again."""


class Approvals(Ledger):
    """The approvals. A lost race is None, not an error: ask `approval(id)` who won."""

    def request_approval(self, approval: Approval) -> None:
        """Store a pending approval. Raises Duplicate."""
        with self._database.write() as connection:
            if _find(connection, approval.id) is not None:
                raise Duplicate("approval", approval.id)
            connection.execute(insert(schema.approvals), _row(approval))
            payload = {
                "entry": approval.entry,
                "version": approval.version,
                "tool": approval.tool,
                "arguments": sha256(compact(approval.arguments)),
                "wire": approval.wire_digest,
                "expires": approval.expires,
            }
            self._append(connection, "approval.pending", approval.id, payload, approval.created)

    def approvals(
        self, state: ApprovalState | None = None, limit: int = 100
    ) -> tuple[Approval, ...]:
        """The newest approvals, newest first, in one state or in all."""
        approvals = schema.approvals
        query = select(approvals).order_by(approvals.c.created.desc(), approvals.c.id).limit(limit)
        if state is not None:
            query = query.where(approvals.c.state == state)
        with self._database.read() as connection:
            return tuple(_approval(row) for row in connection.execute(query).mappings())

    def approval(self, id: str) -> Approval:
        """Raises Unknown."""
        with self._database.read() as connection:
            row = _find(connection, id)
        if row is None:
            raise Unknown("approval", id)
        return _approval(row)

    def decide(
        self, id: str, approve: bool, *, by: str, now: float, reason: str = "", signed: str = ""
    ) -> Approval | None:
        """Approve or reject. None where it was decided before or has expired. Raises Unknown.

        `signed` is the signed decision (`registry.decisions`), without which an approval is never
        claimed; a rejection needs none.
        """
        state: ApprovalState = "approved" if approve else "rejected"
        values = {
            "decided_by": clean(by, TEXT),
            "decided_at": now,
            "decision_reason": clean(reason, TEXT),
            "decision": signed,
        }
        with self._database.write() as connection:
            live = schema.approvals.c.expires > now
            return self._move(connection, id, "pending", state, now, live, values)

    def claim(self, id: str, process: str, now: float, forgery: Forgery) -> Approval | None:
        """Take an approved call to dispatch it. None where it is not approved, expired or taken.

        One that `forgery` finds fault with, or that was carried out before, is rejected for good.
        Raises Unknown, and sandbox.errors.Frozen.
        """
        with self._database.write() as connection:
            check_not_frozen(connection)
            if self._forged(connection, id, now, forgery):
                return None
            live = schema.approvals.c.expires > now
            return self._move(
                connection, id, "approved", "claimed", now, live, {"claimed_by": process}
            )

    def _forged(self, connection: Connection, id: str, now: float, forgery: Forgery) -> bool:
        """Whether an approval's row says `approved` and no person said so; it is rejected then."""
        row = _find(connection, id)
        if row is None:
            raise Unknown("approval", id)
        if row["state"] != "approved" or row["expires"] <= now:
            return False
        reason = _fault(row, now, forgery)
        if not reason and _was_spent(connection, id):
            reason = "it was carried out before"
        if not reason:
            return False
        told = f"not carried out: {reason}"
        values = {"state": "rejected", "decision_reason": told}
        approvals = schema.approvals
        connection.execute(update(approvals).where(approvals.c.id == id).values(values))
        self._append(connection, "approval.forged", id, {"reason": reason}, now)
        return True

    def vouched(self, entry: str, version: int, tool: str, forgery: Forgery, limit: int) -> int:
        """How many writes of that operation a person approved one by one and were done, counted
        up to `limit`.
        """
        approvals = schema.approvals
        of_it = (approvals.c.entry == entry) & (approvals.c.version == version)
        query = select(approvals).where(
            of_it, approvals.c.tool == tool, approvals.c.state == "done"
        )
        found = 0
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found += not _fault(row, row["decided_at"] or 0.0, forgery)
                if found >= limit:
                    break
        return found

    def settle(
        self,
        id: str,
        process: str,
        state: Literal["done", "failed", "unknown"],
        outcome: Any,
        now: float,
    ) -> Approval | None:
        """Store what came of a claimed call. None where this process does not hold it."""
        with self._database.write() as connection:
            mine = schema.approvals.c.claimed_by == process
            values = {"outcome": bounded(outcome, OUTCOME)}
            return self._move(connection, id, "claimed", state, now, mine, values)

    def expire(self, now: float) -> tuple[str, ...]:
        """Expire what waited too long for a decision or for someone to dispatch it; the ids."""
        approvals = schema.approvals
        late = approvals.c.state.in_(("pending", "approved")) & (approvals.c.expires <= now)
        with self._database.read() as connection:
            if connection.execute(select(approvals.c.id).where(late).limit(1)).first() is None:
                return ()
        with self._database.write() as connection:
            query = select(approvals.c.id).where(late).order_by(approvals.c.created, approvals.c.id)
            ids = tuple(connection.execute(query).scalars())
            connection.execute(update(approvals).where(late).values(state="expired"))
            for id in ids:
                self._append(connection, "approval.expired", id, {}, now)
        return ids

    def _move(
        self,
        connection: Connection,
        id: str,
        before: ApprovalState,
        after: ApprovalState,
        now: float,
        condition: ColumnElement[bool],
        values: dict[str, Any],
    ) -> Approval | None:
        approvals = schema.approvals
        query = update(approvals).where(
            approvals.c.id == id, approvals.c.state == before, condition
        )
        moved = connection.execute(query.values(state=after, **values)).rowcount == 1
        row = _find(connection, id)
        if row is None:
            raise Unknown("approval", id)
        if not moved:
            return None
        left_out = ("outcome", "decision")
        told = {name: value for name, value in values.items() if name not in left_out}
        self._append(connection, f"approval.{after}", id, told, now)
        return _approval(row)


def check_held(connection: Connection, id: str, process: str) -> None:
    """Raises ApprovalNotHeld unless the process has claimed it and no call ran on it yet."""
    approvals, invocations = schema.approvals, schema.invocations
    query = select(approvals.c.id).where(
        approvals.c.id == id,
        approvals.c.state == "claimed",
        approvals.c.claimed_by == process,
        ~exists().where(invocations.c.approval == id),
    )
    if connection.execute(query).first() is None:
        raise ApprovalNotHeld(id)


def release(connection: Connection, processes: Iterable[str]) -> list[tuple[str, ApprovalState]]:
    """Free what dead processes had claimed, by id and new state.

    A claim without a stored intent is `approved` again: the intent is on disk before anything
    leaves, and whoever is wrongly thought dead cannot store it any more (`check_held`). Where the
    call was recorded, the claim ends as its process would have ended it.
    """
    approvals, invocations = schema.approvals, schema.invocations
    claimed = (approvals.c.state == "claimed") & approvals.c.claimed_by.in_(tuple(processes))
    query = (
        select(approvals.c.id, invocations.c.state, invocations.c.failure_kind)
        .add_columns(invocations.c.result)
        .join_from(approvals, invocations, invocations.c.approval == approvals.c.id, isouter=True)
        .where(claimed)
        .order_by(approvals.c.id)
    )
    released: list[tuple[str, ApprovalState]] = []
    for row in connection.execute(query).all():
        values: dict[str, Any] = {"state": _left_as(row.state, row.failure_kind)}
        if row.state is None:
            values["claimed_by"] = ""
        elif row.state == "done":
            values["outcome"] = row.result
        connection.execute(update(approvals).where(approvals.c.id == row.id).values(values))
        released.append((row.id, values["state"]))
    return released


def _fault(row: RowMapping, now: float, forgery: Forgery) -> str:
    """Why a row is no person's approval; nothing where it is one."""
    try:
        approval = _approval(row)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return f"the row cannot be read: {error}"
    return forgery(approval, now)


def _was_spent(connection: Connection, id: str) -> bool:
    audit = schema.audit
    query = select(audit.c.id).where(audit.c.subject == id, audit.c.kind.in_(SPENT)).limit(1)
    return connection.execute(query).first() is not None


def _left_as(call: str | None, failure: str | None) -> ApprovalState:
    """The state of a claim by that of its call, which is None where no intent was stored."""
    if call is None:
        return "approved"
    if call != "done":
        return "unknown"
    return "failed" if failure else "done"


def _find(connection: Connection, id: str) -> RowMapping | None:
    query = select(schema.approvals).where(schema.approvals.c.id == id)
    return connection.execute(query).mappings().first()


_TEXTS = ("task", "session", "reason", "decided_by", "decision_reason")


def _row(approval: Approval) -> dict[str, Any]:
    return {
        **vars(approval),
        **{name: clean(getattr(approval, name), TEXT) for name in _TEXTS},
        # Never shortened: this is what will be executed.
        "arguments": compact(approval.arguments),
        "wire": compact(_wire_to_json(approval.wire)),
        "outcome": bounded(approval.outcome, OUTCOME),
    }


def _approval(row: RowMapping) -> Approval:
    return Approval(
        **{
            **row,
            "arguments": json.loads(row["arguments"]),
            "wire": _wire_from_json(json.loads(row["wire"])),
            "outcome": json.loads(row["outcome"]),
        }
    )


def _wire_to_json(wire: WireRequest) -> dict[str, Any]:
    body = base64.b64encode(wire.body).decode()
    return {"method": wire.method, "url": wire.url, "headers": wire.headers, "body_base64": body}


def _wire_from_json(data: dict[str, Any]) -> WireRequest:
    return WireRequest(
        method=data["method"],
        url=data["url"],
        headers=tuple((name, value) for name, value in data["headers"]),
        body=base64.b64decode(data["body_base64"]),
    )
