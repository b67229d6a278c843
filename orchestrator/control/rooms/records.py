"""Sources and names of secrets, the audit log, and settings."""

from __future__ import annotations

from html import escape

from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
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
from registry.secrets.vault import list_own_secrets, open_vault
from registry.store import Store

AUDIT_ROWS = 100
SUBJECT = 40


def render_sources(settings: Settings, store: Store) -> str:
    """Where descriptions may be read from, and what a person allowed."""
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    rows = [
        (
            escape_text(source.url),
            escape_text(source.header),
            escape_text(source.secret),
        )
        for source in consents.find_sources()
    ]
    sources = (
        render_table(("source", "header", "secret's name"), rows, "sources")
        if rows
        else render_empty("None yet. Name an API's description:", "toolwright source add URL")
    )
    allowed = [
        (
            escape_text(grant.kind),
            escape_text(grant.origin),
            escape_text(grant.granted_by),
            render_time(grant.granted),
        )
        for grant in consents.find_grants()
    ]
    void = "".join(
        f"<li>{escape_text(grant.origin)}: counts for nothing</li>"
        for grant, _ in consents.find_void()
    )
    granted = (
        render_table(("what", "for", "by", "when"), allowed, "allowed")
        if allowed
        else render_empty("Nothing. Allow a host:", "toolwright source allow HOST:PORT")
    )
    lost = f'<ul role="alert">{void}</ul>' if void else ""
    return render_section("Sources", f"{sources}<h3>Allowed</h3>{granted}{lost}")


def render_secrets(settings: Settings) -> str:
    """The names of secrets. Their values are shown nowhere."""
    rows = [
        (escape_text(server), escape_text(name))
        for server, name in list_own_secrets(open_vault(settings))
    ]
    nothing = render_empty("None yet. Set one:", "toolwright secret set SERVER.NAME")
    told = "<p>Names only: values are never shown, and set at the terminal.</p>"
    listed = render_table(("of", "name"), rows, "secrets") if rows else nothing
    return render_section("Secrets", told + listed)


def render_audit_filter(place: Place) -> str:
    text = escape(place.get_filter("text"))
    return (
        f'<form class="filter" method="get" action="{build_address("audit")}">'
        f'<label>Search <input name="text" maxlength="200" value="{text}"></label>'
        "<button>Search</button></form>"
        '<button data-post="/audit/verify" id="verify">Verify every chain</button>'
    )


def render_audit(store: Store, place: Place) -> str:
    """The newest rows in which a text stands: in arguments, results and requests too."""
    found = store.audit.search(AuditQuery(text=place.get_filter("text")), AUDIT_ROWS)
    rows = [_render_match(match) for match in found]
    heads = ("row", "when", "what", "about", "tool", "more")
    told = f"<p><small>The newest {AUDIT_ROWS} rows.</small></p>" if len(rows) >= AUDIT_ROWS else ""
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
        f"{escape_text(match.task)} <small>{escape_text(str(row.payload))}</small>",
    )


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
