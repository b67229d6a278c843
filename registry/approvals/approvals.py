"""Table of approvals: writes that wait for a person's decision.

Deciding and claiming are compare-and-set, so of two processes only one succeeds.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, exists, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, hash_text, to_bounded_json, to_compact_json
from registry.errors import ApprovalNotHeld, DuplicateRow, RowNotFound, TooManyWaiting
from registry.models import Approval, ApprovalState
from registry.processes import check_not_frozen
from sandbox.wire.exchange import WireRequest

TEXT = 20_000
OUTCOME = 1 << 20
MAX_PENDING = 200
"""Approvals that wait at once. Nobody looks at more, and each holds a whole request."""
DECIDE = "Decide or reject some with `toolwright approvals`, then call again."
Forgery = Callable[[Approval, float], str]
"""From an approval and the time (epoch seconds) to the reason why no person approved it, or ""
where one did. See `registry.approvals.decisions`.
"""
SPENT = ("approval.done", "approval.failed", "approval.unknown")
"""Kinds of audit rows about an approval whose call has run; it is never carried out again."""


class ApprovalTable(Repository):
    """Approvals by id. A method that loses a race returns None; read the approval to
    see who won.
    """

    def add_pending(self, approval: Approval) -> None:
        """Store a pending approval. Raises Duplicate, TooManyWaiting."""
        with self._database.write() as connection:
            if _find_row(connection, approval.id) is not None:
                raise DuplicateRow("approval", approval.id)
            waiting = select(func.count()).where(tables.approvals.c.state == "pending")
            if connection.execute(waiting).scalar_one() >= MAX_PENDING:
                raise TooManyWaiting("approvals", MAX_PENDING, DECIDE)
            connection.execute(insert(tables.approvals), _to_row(approval))
            payload = {
                "entry": approval.entry,
                "version": approval.version,
                "tool": approval.tool,
                "arguments": hash_text(to_compact_json(approval.arguments)),
                "wire": approval.wire_digest,
                "expires": approval.expires,
            }
            self._append_audit_row(
                connection, "approval.pending", approval.id, payload, approval.created
            )

    def find(self, state: ApprovalState | None = None, limit: int = 100) -> tuple[Approval, ...]:
        """The newest approvals, newest first, in one state or in all."""
        approvals = tables.approvals
        query = select(approvals).order_by(approvals.c.created.desc(), approvals.c.id).limit(limit)
        if state is not None:
            query = query.where(approvals.c.state == state)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def get(self, id: str) -> Approval:
        """Raises Unknown."""
        with self._database.read() as connection:
            row = _find_row(connection, id)
        if row is None:
            raise RowNotFound("approval", id)
        return _parse_row(row)

    def decide(
        self, id: str, approve: bool, *, by: str, now: float, reason: str = "", signed: str = ""
    ) -> Approval | None:
        """Approve or reject. None where it was decided before or has expired. Raises Unknown.

        `signed` is the signed decision (`registry.approvals.decisions`), without which an approval
        is never claimed; a rejection needs none.
        """
        state: ApprovalState = "approved" if approve else "rejected"
        values = {
            "decided_by": clean_text(by, TEXT),
            "decided_at": now,
            "decision_reason": clean_text(reason, TEXT),
            "decision": signed,
        }
        with self._database.write() as connection:
            live = tables.approvals.c.expires > now
            return self._change_state(connection, id, "pending", state, now, live, values)

    def claim(self, id: str, process: str, now: float, forgery: Forgery) -> Approval | None:
        """Take an approved call to dispatch it. None where it is not approved, expired or taken.

        An approval that `forgery` gives a reason against, or that was carried out before, is
        rejected for good.
        Raises Unknown, and sandbox.errors.Frozen.
        """
        with self._database.write() as connection:
            check_not_frozen(connection)
            if self._reject_if_forged(connection, id, now, forgery):
                return None
            live = tables.approvals.c.expires > now
            return self._change_state(
                connection, id, "approved", "claimed", now, live, {"claimed_by": process}
            )

    def _reject_if_forged(
        self, connection: Connection, id: str, now: float, forgery: Forgery
    ) -> bool:
        """Reject an approval whose row says `approved` although no person approved it; True then.

        Raises Unknown.
        """
        row = _find_row(connection, id)
        if row is None:
            raise RowNotFound("approval", id)
        if row["state"] != "approved" or row["expires"] <= now:
            return False
        reason = _find_fault(row, now, forgery)
        if not reason and _was_carried_out(connection, id):
            reason = "it was carried out before"
        if not reason:
            return False
        told = f"not carried out: {reason}"
        values = {"state": "rejected", "decision_reason": told}
        approvals = tables.approvals
        connection.execute(update(approvals).where(approvals.c.id == id).values(values))
        self._append_audit_row(connection, "approval.forged", id, {"reason": reason}, now)
        return True

    def count_approved_writes(
        self, entry: str, version: int, tool: str, forgery: Forgery, limit: int
    ) -> int:
        """Count the finished writes of an operation that a person approved one by one.

        Stops at `limit`.
        """
        approvals = tables.approvals
        of_it = (approvals.c.entry == entry) & (approvals.c.version == version)
        query = select(approvals).where(
            of_it, approvals.c.tool == tool, approvals.c.state == "done"
        )
        found = 0
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found += not _find_fault(row, row["decided_at"] or 0.0, forgery)
                if found >= limit:
                    break
        return found

    def store_outcome(
        self,
        id: str,
        process: str,
        state: Literal["done", "failed", "unknown"],
        outcome: Any,
        now: float,
    ) -> Approval | None:
        """Store the outcome of a claimed call. None where this process does not hold the claim."""
        with self._database.write() as connection:
            mine = tables.approvals.c.claimed_by == process
            values = {"outcome": to_bounded_json(outcome, OUTCOME)}
            return self._change_state(connection, id, "claimed", state, now, mine, values)

    def expire_overdue(self, now: float) -> tuple[str, ...]:
        """Expire approvals that were not decided or not dispatched in time. Returns their ids."""
        approvals = tables.approvals
        late = approvals.c.state.in_(("pending", "approved")) & (approvals.c.expires <= now)
        with self._database.read() as connection:
            if connection.execute(select(approvals.c.id).where(late).limit(1)).first() is None:
                return ()
        with self._database.write() as connection:
            query = select(approvals.c.id).where(late).order_by(approvals.c.created, approvals.c.id)
            ids = tuple(connection.execute(query).scalars())
            connection.execute(update(approvals).where(late).values(state="expired"))
            for id in ids:
                self._append_audit_row(connection, "approval.expired", id, {}, now)
        return ids

    def _change_state(
        self,
        connection: Connection,
        id: str,
        before: ApprovalState,
        after: ApprovalState,
        now: float,
        condition: ColumnElement[bool],
        values: dict[str, Any],
    ) -> Approval | None:
        approvals = tables.approvals
        query = update(approvals).where(
            approvals.c.id == id, approvals.c.state == before, condition
        )
        moved = connection.execute(query.values(state=after, **values)).rowcount == 1
        row = _find_row(connection, id)
        if row is None:
            raise RowNotFound("approval", id)
        if not moved:
            return None
        left_out = ("outcome", "decision")
        told = {name: value for name, value in values.items() if name not in left_out}
        self._append_audit_row(connection, f"approval.{after}", id, told, now)
        return _parse_row(row)


def check_held(connection: Connection, id: str, process: str) -> None:
    """Raises ApprovalNotHeld unless the process has claimed it and no call ran on it yet."""
    approvals, invocations = tables.approvals, tables.invocations
    query = select(approvals.c.id).where(
        approvals.c.id == id,
        approvals.c.state == "claimed",
        approvals.c.claimed_by == process,
        ~exists().where(invocations.c.approval == id),
    )
    if connection.execute(query).first() is None:
        raise ApprovalNotHeld(id)


def release_claims(
    connection: Connection, processes: Iterable[str]
) -> list[tuple[str, ApprovalState]]:
    """Release the claims of dead processes. Returns id and new state of each.

    A claim without a stored intent is `approved` again: the intent is on disk before anything
    leaves, and whoever is wrongly thought dead cannot store it any more (`check_held`). Where the
    call was recorded, the claim ends as its process would have ended it.
    """
    approvals, invocations = tables.approvals, tables.invocations
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
        values: dict[str, Any] = {"state": _resolve_left_state(row.state, row.failure_kind)}
        if row.state is None:
            values["claimed_by"] = ""
        elif row.state == "done":
            values["outcome"] = row.result
        connection.execute(update(approvals).where(approvals.c.id == row.id).values(values))
        released.append((row.id, values["state"]))
    return released


def _find_fault(row: RowMapping, now: float, forgery: Forgery) -> str:
    """The reason why no person approved this row; "" where one did."""
    try:
        approval = _parse_row(row)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return f"the row cannot be read: {error}"
    return forgery(approval, now)


def _was_carried_out(connection: Connection, id: str) -> bool:
    audit = tables.audit
    query = select(audit.c.id).where(audit.c.subject == id, audit.c.kind.in_(SPENT)).limit(1)
    return connection.execute(query).first() is not None


def _resolve_left_state(call: str | None, failure: str | None) -> ApprovalState:
    """The state of a claim by that of its call, which is None where no intent was stored."""
    if call is None:
        return "approved"
    if call != "done":
        return "unknown"
    return "failed" if failure else "done"


def _find_row(connection: Connection, id: str) -> RowMapping | None:
    query = select(tables.approvals).where(tables.approvals.c.id == id)
    return connection.execute(query).mappings().first()


_TEXTS = ("task", "session", "reason", "decided_by", "decision_reason")


def _to_row(approval: Approval) -> dict[str, Any]:
    return {
        **vars(approval),
        **{name: clean_text(getattr(approval, name), TEXT) for name in _TEXTS},
        # Never shortened: this is what will be executed.
        "arguments": to_compact_json(approval.arguments),
        "wire": to_compact_json(_wire_to_json(approval.wire)),
        "outcome": to_bounded_json(approval.outcome, OUTCOME),
    }


def _parse_row(row: RowMapping) -> Approval:
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
