"""The audit log: its newest rows, searched and verified."""

from __future__ import annotations

import json
import re
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
    """The newest rows in which a text stands: `most` where there may be more of them, else 0;
    `searched` rows were looked through for a text, 0 where none was wanted.
    """

    rows: tuple[AuditLine, ...]
    most: int
    searched: int
    is_filtered: bool


def view_audit_filter(place: Place) -> AuditFilter:
    return AuditFilter(build_address("audit"), place.get_filter("text"))


def view_audit(store: Store, place: Place) -> AuditList:
    """The newest rows in which a text stands: in arguments, results and requests too."""
    wanted = AuditQuery(text=place.get_filter("text"), newest=SEARCHED_ROWS)
    rows = tuple(map(_show_match, store.audit.search(wanted, AUDIT_ROWS)))
    most = AUDIT_ROWS if len(rows) >= AUDIT_ROWS else 0
    return AuditList(rows, most, SEARCHED_ROWS if wanted.text else 0, bool(place.filters))


def _show_match(match: AuditMatch) -> AuditLine:
    row = match.row
    tool = f"{match.server}.{match.tool}" if match.tool else match.server
    is_call = row.kind == CALL
    return AuditLine(
        row.time,
        cut_text(row.kind),
        cut_text((tool or row.subject) if is_call else tool),
        cut_text("" if is_call else row.subject, SUBJECT),
        build_address("calls", row.subject) if is_call else "",
        _find_end(row) if is_call else "",
        cut_text(match.task, MORE),
        _show_payload(row.payload),
        row.id,
    )


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
