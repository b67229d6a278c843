"""The audit log: its newest rows, searched and verified."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.values import render_compact
from registry.audit.search import AuditMatch, AuditQuery
from registry.database.audit_chain import CALL
from registry.models import AuditRow
from registry.store import Store

AUDIT_ROWS = 50
SEARCHED_ROWS = 20_000
SUBJECT = 40
MORE = 140


def render_audit_filter(place: Place) -> str:
    text = escape(place.get_filter("text"))
    return (
        f'<div class="beside"><form class="filter" method="get" action="{build_address("audit")}">'
        f'<label>Search <input name="text" maxlength="200" value="{text}"></label>'
        "<button>Search</button></form>"
        '<button data-post="/audit/verify" id="verify">Verify every chain</button></div>'
    )


def render_audit(store: Store, place: Place) -> str:
    """The newest rows in which a text stands: in arguments, results and requests too."""
    wanted = AuditQuery(text=place.get_filter("text"), newest=SEARCHED_ROWS)
    found = store.audit.search(wanted, AUDIT_ROWS)
    rows = [_render_match(match) for match in found]
    heads = ("when", "what", "about", "more", "row")
    told = f"<p><small>The newest {AUDIT_ROWS} rows.</small></p>" if len(rows) >= AUDIT_ROWS else ""
    if wanted.text:
        told += (
            f"<p><small>Looked for in the newest {SEARCHED_ROWS:,} rows; "
            f"<code>toolwright audit search</code> looks through all.</small></p>"
        )
    nothing = render_empty("No row has that." if place.filters else "Nothing happened yet.")
    return render_section("Audit", (_render_rows(heads, rows) if rows else nothing) + told)


def _render_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return render_table(heads, rows, "audit", compact=True)


def _render_match(match: AuditMatch) -> tuple[str, ...]:
    row = match.row
    tool = f"{match.server}.{match.tool}" if match.tool else match.server
    task = f"{escape_text(match.task, MORE)} " if match.task else ""
    end = _render_end(row)
    return (
        render_time(row.time),
        f"<strong>{escape_text(row.kind)}</strong>",
        _render_subject(row, tool),
        f"{end}{task}<small>{_render_payload(row.payload)}</small>",
        f"<small>{row.id}</small>",
    )


def _render_subject(row: AuditRow, tool: str) -> str:
    """What a row is about: a call leads to its own page."""
    about = f"<code>{escape_text(row.subject, SUBJECT)}</code>"
    if row.kind != CALL:
        return f"<code>{escape_text(tool)}</code> {about}" if tool else about
    address = escape(build_address("calls", row.subject))
    return f'<a href="{address}"><code>{escape_text(tool or row.subject)}</code></a>'


def _render_end(row: AuditRow) -> str:
    """How a call ended."""
    if row.kind != CALL:
        return ""
    good = '"succeeded":true' in row.payload.replace(" ", "")
    return f"{render_badge('ok' if good else 'failed')} "


def _render_payload(text: str) -> str:
    """What else a row says, in one line, without its digests, which only the verifying reads."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return escape_text(text, MORE)
    if not isinstance(value, dict):
        return escape_text(text, MORE)
    return render_compact(
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
