"""The audit log, and settings."""

from __future__ import annotations

import json
from html import escape

from orchestrator.control.markup import (
    escape_text,
    render_empty,
    render_facts,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.settings import Settings
from registry.audit.search import AuditMatch, AuditQuery
from registry.store import Store

AUDIT_ROWS = 100
SEARCHED_ROWS = 20_000
SUBJECT = 40


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
    heads = ("row", "when", "what", "about", "tool", "more")
    told = f"<p><small>The newest {AUDIT_ROWS} rows.</small></p>" if len(rows) >= AUDIT_ROWS else ""
    if wanted.text:
        told += (
            f"<p><small>Looked for in the newest {SEARCHED_ROWS:,} rows; "
            f"<code>toolwright audit search</code> looks through all.</small></p>"
        )
    nothing = render_empty("No row has that." if place.filters else "Nothing happened yet.")
    return render_section("Audit", (render_table(heads, rows, "audit") if rows else nothing) + told)


def _render_match(match: AuditMatch) -> tuple[str, ...]:
    row = match.row
    tool = f"{match.server}.{match.tool}" if match.tool else match.server
    return (
        f"<code>{row.id}</code>",
        render_time(row.time),
        f"<strong>{escape_text(row.kind)}</strong>",
        f"<code>{escape_text(row.subject, SUBJECT)}</code>",
        f"<code>{escape_text(tool)}</code>" if tool else "",
        f"{escape_text(match.task)} <small>{escape_text(_space_json(row.payload))}</small>",
    )


def _space_json(text: str) -> str:
    """Canonical JSON with spaces, where lines can break."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def render_settings(settings: Settings, store: Store) -> str:
    """What this installation was started with. Settings come from the environment."""
    model = settings.of_model
    processes = ", ".join(f"{each.kind} {each.pid}" for each in store.processes.find())
    return render_section(
        "Settings",
        render_facts(
            (
                ("home", f"<code>{escape_text(str(settings.home))}</code>"),
                ("engine", escape_text(settings.engine)),
                ("processes", escape_text(processes) or "none"),
                ("model", escape_text(model.model or model.base_url) or "none"),
                ("semantic search", "on" if settings.semantic else "off"),
                ("a call keeps its client", f"{settings.answer_seconds:g} s at most"),
                ("an approval waits", f"{settings.approval_seconds / 3600:g} h at most"),
                ("recordings", f"{settings.recordings_mb} MB kept"),
                ("public address", escape_text(settings.public_url) or "none"),
                (
                    "PIN",
                    "set" if settings.pin.exists() else "not set: <code>toolwright setup</code>",
                ),
            )
        )
        + "<p>Settings are environment variables and are read when a process starts: "
        "<code>toolwright doctor</code> checks them. "
        '<a href="/docs">The HTTP API of this page</a>.</p>',
    )
