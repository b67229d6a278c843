"""Table of approvals: writes that wait for a person's decision.

Deciding and claiming are compare-and-set, so of two processes only one succeeds.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update
from sqlalchemy.exc import OperationalError

from registry.approvals.terms import build_terms, encode_steps, parse_steps
from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, hash_text, to_bounded_json, to_compact_json
from registry.errors import (
    ApprovalDamaged,
    ApprovalNotHeld,
    DuplicateRow,
    RowNotFound,
    TooManyWaiting,
)
from registry.models import Approval, ApprovalState
from registry.processes import check_not_frozen
from sandbox.wire.exchange import WireRequest
from sandbox.wire.framing import measure_depth

TEXT = 20_000
OUTCOME = 1 << 20
MAX_PENDING = 200
"""Approvals that wait at once. Nobody looks at more, and each holds a whole request."""
DECIDE = "Decide or reject some with `toolwright approvals`, then call again."
MAX_NESTING = 100
"""Levels of an approval's arguments. How deep a value can be walked through depends on who walks,
and everybody has to be able to show it.
"""
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
"""What reading a row raises that our code did not write."""
Forgery = Callable[[Approval, float], str]
"""From an approval and the time (epoch seconds) to the reason why no person approved it, or ""
where one did. See `registry.approvals.decisions`.
"""
PENDING = "approval.pending"
"""The audit row of an approval that was asked for, with the digest of its terms and its expiry."""
SENDING = "approval.sending"
"""The audit row of an approval that was spent, with the id of its call and a serial. It is there
before the first byte leaves.
"""
SPENT = (SENDING, "approval.done", "approval.failed", "approval.unknown")
"""Kinds of audit rows about an approval that is never carried out again, whatever its own row or
its call's row says.
"""
OPEN: tuple[ApprovalState, ...] = ("pending", "approved", "claimed")
"""The states of an approval that nothing was sent for yet."""


class ApprovalTable(Repository):
    """Approvals by id. A method that loses a race returns None; read the approval to
    see who won.
    """

    def add_pending(self, approval: Approval) -> None:
        """Store a pending approval. Raises Duplicate, TooManyWaiting, and ValueError for arguments
        that are nested deeper than MAX_NESTING.
        """
        with self._database.write() as connection:
            if _find_row(connection, approval.id) is not None:
                raise DuplicateRow("approval", approval.id)
            waiting = select(func.count()).where(tables.approvals.c.state == "pending")
            if connection.execute(waiting).scalar_one() >= MAX_PENDING:
                raise TooManyWaiting("approvals", MAX_PENDING, DECIDE)
            row = _to_row(approval)
            connection.execute(insert(tables.approvals), row)
            payload = {
                "entry": approval.entry,
                "version": approval.version,
                "tool": approval.tool,
                "arguments": hash_text(to_compact_json(approval.arguments)),
                "wire": approval.wire_digest,
                "expires": approval.expires,
                "terms": build_terms(_parse_row(row)).digest,
            }
            self._append_audit_row(connection, PENDING, approval.id, payload, approval.created)

    def find(self, state: ApprovalState | None = None, limit: int = 100) -> tuple[Approval, ...]:
        """The newest approvals, newest first, in one state or in all; all that are pending are
        among them. One whose row cannot be read is left out (`find_damaged`).
        """
        wanted = self.find_ids(state, limit)
        if state in (None, "pending"):
            wanted = tuple(dict.fromkeys((*self.find_ids("pending", MAX_PENDING), *wanted)))
        found = [each for each in self._load(wanted) if isinstance(each, Approval)]
        return tuple(sorted(found, key=lambda each: (-each.created, each.id)))

    def find_ids(self, state: ApprovalState | None = None, limit: int = 100) -> tuple[str, ...]:
        """The ids of the newest approvals, newest first, whether or not they can be read."""
        approvals = tables.approvals
        order = (approvals.c.created.desc(), approvals.c.id)
        query = select(approvals.c.id).order_by(*order).limit(limit)
        if state is not None:
            query = query.where(approvals.c.state == state)
        with self._database.read() as connection:
            return tuple(map(str, connection.execute(query).scalars()))

    def find_damaged(self, limit: int = MAX_PENDING) -> tuple[ApprovalDamaged, ...]:
        """The approvals that wait and whose rows cannot be read."""
        found = self._load(self.find_ids("pending", limit))
        return tuple(each for each in found if isinstance(each, ApprovalDamaged))

    def get(self, id: str) -> Approval:
        """Raises Unknown, ApprovalDamaged."""
        for found in self._load((id,)):
            if isinstance(found, Approval):
                return found
            raise found
        raise RowNotFound("approval", id)

    def _load(self, ids: Iterable[str]) -> list[Approval | ApprovalDamaged]:
        """The approvals of these ids that there are. Each row is read by itself, since one that
        cannot be read must hide no other.
        """
        found: list[Approval | ApprovalDamaged] = []
        with self._database.read() as connection:
            for id in ids:
                try:
                    row = _find_row(connection, id)
                    found += [] if row is None else [_parse_row(row)]
                except (*UNREADABLE, OperationalError) as error:
                    found.append(ApprovalDamaged(id, type(error).__name__))
        return found

    def reject_damaged(self, id: str, by: str, now: float) -> bool:
        """Reject a waiting approval without reading it; False where it does not wait."""
        approvals = tables.approvals
        waits = (approvals.c.id == id) & (approvals.c.state == "pending")
        with self._database.write() as connection:
            query = update(approvals).where(waits).values(state="rejected")
            if connection.execute(query).rowcount != 1:
                return False
            self._append_audit_row(connection, "approval.rejected", id, {"decided_by": by}, now)
        return True

    def decide(
        self,
        id: str,
        approve: bool,
        *,
        by: str,
        now: float,
        reason: str = "",
        signed: str = "",
        shown: Approval | None = None,
    ) -> Approval | None:
        """Approve or reject. None where it was decided before or has expired, and for an approval
        whose terms are not those that were asked for and `shown`. Raises Unknown.

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
            if approve and (spent := _find_spending(connection, id)):
                self._reject_for_good(connection, id, spent, now)
                return None
            if approve and not _is_as_asked(connection, id, shown):
                return None
            live = tables.approvals.c.expires > now
            return self._change_state(connection, id, ("pending",), state, now, live, values)

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
                connection, id, ("approved",), "claimed", now, live, {"claimed_by": process}
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
        reason = _find_fault(row, now, forgery) or _find_spending(connection, id)
        if reason:
            self._reject_for_good(connection, id, reason, now)
        return bool(reason)

    def _reject_for_good(self, connection: Connection, id: str, reason: str, now: float) -> None:
        approvals = tables.approvals
        values = {"state": "rejected", "decision_reason": f"not carried out: {reason}"}
        waits = (approvals.c.id == id) & approvals.c.state.in_(("pending", "approved"))
        if connection.execute(update(approvals).where(waits).values(values)).rowcount != 1:
            return
        self._append_audit_row(connection, "approval.forged", id, {"reason": reason}, now)

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
            held: tuple[ApprovalState, ...] = ("claimed", "sending")
            return self._change_state(connection, id, held, state, now, mine, values)

    def release_claim(self, id: str, process: str, now: float) -> ApprovalState | None:
        """Give back a claim of this process whose call broke off, as `release_claims` does those of
        dead processes. Returns its new state, None where this process does not hold it.
        """
        approvals = tables.approvals
        held = approvals.c.state.in_(("claimed", "sending")), approvals.c.claimed_by == process
        query = select(approvals.c.state).where(approvals.c.id == id, *held)
        with self._database.write() as connection:
            before = connection.execute(query).scalar()
            if before is None:
                return None
            state = _release_claim(connection, id, before)
            self._append_audit_row(connection, f"approval.{state}", id, {"by": "recovery"}, now)
            return state

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
        before: tuple[ApprovalState, ...],
        after: ApprovalState,
        now: float,
        condition: ColumnElement[bool],
        values: dict[str, Any],
    ) -> Approval | None:
        approvals = tables.approvals
        query = update(approvals).where(
            approvals.c.id == id, approvals.c.state.in_(before), condition
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


def spend_approval(connection: Connection, id: str, process: str, call: str) -> dict[str, Any]:
    """Move an approval that the process has claimed to `sending`, for the call of that id. Returns
    the payload of the SENDING row, which the caller adds to the audit in the same transaction.

    Raises ApprovalNotHeld where another process has it or it was spent before.
    """
    approvals = tables.approvals
    if _find_spending(connection, id):
        raise ApprovalNotHeld(id)
    last = connection.execute(select(func.max(approvals.c.serial))).scalar() or 0
    held = approvals.c.id == id, approvals.c.state == "claimed", approvals.c.claimed_by == process
    values = {"state": "sending", "invocation": call, "serial": int(last) + 1}
    moved = update(approvals).where(*held).values(values).returning(approvals.c.expires)
    row = connection.execute(moved).first()
    if row is None:
        raise ApprovalNotHeld(id)
    return {"invocation": call, "serial": values["serial"], "expires": row.expires}


def release_claims(
    connection: Connection, processes: Iterable[str]
) -> list[tuple[str, ApprovalState]]:
    """Release the claims of dead processes. Returns id and new state of each.

    A claim that was not spent is `approved` again: an approval is spent on disk before anything
    leaves, and whoever is wrongly thought dead cannot spend it any more (`spend_approval`). One
    that was spent, by its own row or by the audit, ends as its recorded call did, or `unknown`.
    """
    approvals = tables.approvals
    held = approvals.c.state.in_(("claimed", "sending"))
    by_dead = approvals.c.claimed_by.in_(tuple(processes))
    query = select(approvals.c.id, approvals.c.state).where(held, by_dead).order_by(approvals.c.id)
    released: list[tuple[str, ApprovalState]] = []
    for id, before in connection.execute(query).all():
        released.append((id, _release_claim(connection, id, before)))
    return released


def _release_claim(connection: Connection, id: str, before: ApprovalState) -> ApprovalState:
    state: ApprovalState = "approved"
    values: dict[str, Any] = {"claimed_by": ""}
    if before == "sending" or _find_spending(connection, id):
        state, values = _find_end(connection, id)
    approvals = tables.approvals
    connection.execute(update(approvals).where(approvals.c.id == id).values(state=state, **values))
    return state


def _is_as_asked(connection: Connection, id: str, shown: Approval | None) -> bool:
    """Whether an approval's row has the terms that the audit says were asked for, and that were
    shown of it. Raises Unknown.
    """
    row = _find_row(connection, id)
    if row is None:
        raise RowNotFound("approval", id)
    audit = tables.audit
    query = select(audit.c.payload).where(audit.c.subject == id, audit.c.kind == PENDING)
    try:
        terms = build_terms(_parse_row(row))
        asked = {json.loads(payload)["terms"] for payload in connection.execute(query).scalars()}
        same = asked == {terms.digest}
        return same and (shown is None or terms == build_terms(shown))
    except UNREADABLE:
        return False


def _find_fault(row: RowMapping, now: float, forgery: Forgery) -> str:
    """The reason why no person approved this row; "" where one did."""
    try:
        approval = _parse_row(row)
    except UNREADABLE as error:
        return f"the row cannot be read: {error}"
    return forgery(approval, now)


def _find_spending(connection: Connection, id: str) -> str:
    """How an approval was spent, by the audit alone, in words; "" where it was not."""
    audit = tables.audit
    query = select(audit.c.kind).where(audit.c.subject == id, audit.c.kind.in_(SPENT))
    kinds = set(connection.execute(query).scalars())
    if not kinds:
        return ""
    known = kinds - {SENDING, "approval.unknown"}
    return "it was carried out before" if known else "it was begun before, and may have been sent"


def _find_end(connection: Connection, id: str) -> tuple[ApprovalState, dict[str, Any]]:
    """The end of a spent approval by the call that the audit names: its state and its outcome."""
    audit, invocations = tables.audit, tables.invocations
    query = select(audit.c.payload).where(audit.c.subject == id, audit.c.kind == SENDING)
    payload = connection.execute(query.limit(1)).scalar()
    name = json.loads(payload)["invocation"] if payload else ""
    found = select(invocations.c.state, invocations.c.failure_kind, invocations.c.result)
    call = connection.execute(found.where(invocations.c.id == name)).first()
    if call is None or call.state != "done":
        return "unknown", {}
    return "failed" if call.failure_kind else "done", {"outcome": call.result}


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
        "steps": to_compact_json(encode_steps(approval.steps)),
        "uses": to_compact_json(encode_steps(approval.uses)),
    }


def _parse_row(row: Mapping[Any, Any]) -> Approval:
    """Raises one of UNREADABLE for a row that our code did not write."""
    _check_types(row)
    return Approval(
        **{
            **row,
            "arguments": _parse_shallow(row["arguments"], MAX_NESTING),
            "wire": _wire_from_json(json.loads(row["wire"])),
            "outcome": _parse_shallow(row["outcome"], 2 * MAX_NESTING),
            "steps": parse_steps(json.loads(row["steps"])),
            "uses": parse_steps(json.loads(row["uses"])),
        }
    )


_REAL = (int, float)
MAX_MOMENT = 1e11
"""Seconds since 1970 that a calendar has a date for."""
_NUMBERS = {"version": int, "serial": int, "created": _REAL, "expires": _REAL, "decided_at": _REAL}


def _check_types(row: Mapping[Any, Any]) -> None:
    """Raises TypeError or ValueError where SQLite, which keeps any value in any column, holds one
    of another type.
    """
    for name, value in row.items():
        wanted: Any = _NUMBERS.get(name, str)
        if name == "decided_at" and value is None:
            continue
        if not isinstance(value, wanted):
            raise TypeError(f"{name} is a {type(value).__name__}")
        if wanted is _REAL and not 0 <= value < MAX_MOMENT:
            raise ValueError(f"{name} is no time")


def _parse_shallow(text: str, nesting: int) -> Any:
    value = json.loads(text)
    if measure_depth(value, nesting) > nesting:
        raise ValueError(f"it is nested deeper than {nesting}")
    return value


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
