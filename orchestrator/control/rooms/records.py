"""The audit log: its newest rows, searched and verified."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.control.values import show_compact
from registry.audit.search import AuditMatch, AuditQuery
from registry.database.audit_chain import CALL
from registry.models import AuditRow
from registry.store import Store

AUDIT_ROWS = 50
SEARCHED_ROWS = 20_000
MAX_PAGE = SEARCHED_ROWS // AUDIT_ROWS
SUBJECT = 40
MORE = 140


@dataclass(frozen=True)
class AuditFilter:
    address: str
    text: str


@dataclass(frozen=True)
class AuditLine:
    """A row of the audit. `call` is the address of the call that it is about, "" for none, `end`
    how that call ended, and `subject` "" where the call's tool stands for it.
    """

    time: float
    label: str
    kind: ShownText
    tool: ShownText
    subject: ShownText
    call: str
    end: str
    task: ShownText
    payload: ShownText
    id: int


@dataclass(frozen=True)
class AuditList:
    """A page of the rows in which a text stands, newest first; addresses of newer and older ones
    are "" where there are none. `searched` rows were looked through for a text, 0 where none was
    wanted.
    """

    rows: tuple[AuditLine, ...]
    page: int
    newer: str
    older: str
    searched: int
    is_filtered: bool


def view_audit_filter(place: Place) -> AuditFilter:
    return AuditFilter(build_address("audit"), place.get_filter("text"))


def view_audit(store: Store, place: Place) -> AuditList:
    """One page of the rows in which a text stands: in arguments, results and requests too."""
    wanted = AuditQuery(text=place.get_filter("text"), newest=SEARCHED_ROWS)
    page = min(place.page, MAX_PAGE)
    found = store.audit.search(wanted, page * AUDIT_ROWS + 1)[(page - 1) * AUDIT_ROWS :]
    return AuditList(
        tuple(map(_show_match, found[:AUDIT_ROWS])),
        page,
        place.build_address(page=str(page - 1)) if page > 1 else "",
        place.build_address(page=str(page + 1))
        if len(found) > AUDIT_ROWS and page < MAX_PAGE
        else "",
        SEARCHED_ROWS if wanted.text else 0,
        bool(place.get_filter("text")),
    )


def _show_match(match: AuditMatch) -> AuditLine:
    row = match.row
    tool = f"{match.server}.{match.tool}" if match.tool else match.server
    is_call = row.kind == CALL
    return AuditLine(
        row.time,
        name_kind(row.kind),
        cut_text(row.kind),
        cut_text((tool or row.subject) if is_call else tool),
        cut_text("" if is_call else row.subject, SUBJECT),
        build_address("calls", row.subject) if is_call else "",
        _find_end(row) if is_call else "",
        cut_text(match.task, MORE),
        _show_payload(row.payload),
        row.id,
    )


def name_kind(kind: str) -> str:
    """What a row of a kind says, for who does not know the kinds; "" for one without."""
    return LABELS.get(kind, "")


LABELS: Mapping[str, str] = {
    "invocation": "a call",
    "intent": "a call that is about to be made",
    "call.accounted": "a call that counts for its server's trust",
    "calls.counted": "calls that count for their servers' trust",
    "call.lost": "a call whose end nobody saw",
    "unknown": "a call whose process ended before it did",
    "probe": "reads of the real API while a server was proved",
    "token": "a token of a log-in was asked for",
    "tunnel": "a third-party server connected to a host",
    "marked_wrong": "a call that a person marked wrong",
    "publish": "a version of a server was registered",
    "state": "a server's state changed",
    "classified": "a person said what an operation does",
    "freeze": "everything was frozen",
    "freeze.forged": "the freeze was changed by somebody else",
    "unfreeze": "the freeze was lifted",
    "approval.pending": "a write waits for a decision",
    "approval.approved": "a person approved a write",
    "approval.rejected": "a person rejected a write",
    "approval.claimed": "an approved write was taken up",
    "approval.sending": "an approved write is being sent",
    "approval.done": "an approved write succeeded",
    "approval.failed": "an approved write failed",
    "approval.unknown": "nobody knows whether a write arrived",
    "approval.expired": "a write waited too long",
    "approval.forged": "a decision that no person signed",
    "rule.added": "a standing rule was made",
    "rule.used": "a standing rule let a write pass",
    "rule.revoked": "a standing rule was ended",
    "grant.added": "something was allowed",
    "grant.removed": "what was allowed is not any more",
    "source.added": "a source was added",
    "source.removed": "a source was removed",
    "secret.set": "a secret was set",
    "secret.remove": "a secret was deleted",
    "pin.changed": "the PIN was changed",
    "pin.refused": "a wrong PIN was typed",
    "key.made": "the key that signs decisions was made",
    "key.replaced": "the key that signs decisions was replaced",
    "job.queued": "a job was begun or goes on",
    "job.running": "a process took a job up",
    "job.answered": "a person answered what a job asked",
    "job.cancelled": "a job was cancelled",
    "job.done": "a job was done",
    "job.failed": "a job failed",
    "model.asked": "a model was asked",
    "model.answered": "a model answered",
    "model.failed": "a model gave no answer",
    "push.added": "a target of messages was added",
    "push.removed": "a target of messages was removed",
    "push.sent": "a message was sent",
    "push.failed": "a message could not be sent",
    "draft": "code that a model or a client wrote",
    "draft.judged": "written code was tried",
    "login": "a person logged in to an API",
    "logout": "a log-in was ended",
    "refused": "a prompt or resource was refused",
    "edit.refused": "a change of a server's files was refused",
    "tests.passed": "a server passed its tests as they were changed",
    "rollback": "a person went back to an earlier version",
    "replacement.queued": "a server is to be written anew",
    "repair.opened": "the repair of a server began",
    "check.opened": "a server's own tests are tried again",
    "cases.pass": "a server's own tests passed",
    "trial.began": "a new version is on trial",
    "trial.ended": "the trial of a new version ended",
    "drift.document": "an API's description changed",
    "audit.archived": "old rows went into an archive",
    "recordings.dropped": "old recordings were deleted",
    "result.kept": "an answer was kept for later steps",
    "result.used": "a kept answer was used",
}


def _find_end(row: AuditRow) -> str:
    """How a call ended."""
    return "ok" if '"succeeded":true' in row.payload.replace(" ", "") else "failed"


def _show_payload(text: str) -> ShownText:
    """What else a row says, in one line, without its digests, which only the verifying reads."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return cut_text(text, MORE)
    if not isinstance(value, dict):
        return cut_text(text, MORE)
    return show_compact(
        {
            name: each
            for name, each in value.items()
            if name not in _SHOWN and each not in ("", None, [], {}) and not _is_digest(each)
        },
        MORE,
    )


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


_DIGEST = re.compile(r"[0-9a-f]{32,128}")
_SHOWN = frozenset({"entry", "tool", "created", "expires", "decided_at", "id", "succeeded"})
"""Members that stand in another column, or are times in seconds."""
