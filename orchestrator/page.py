"""The control page: what runs, what waits for a person, what happened. Everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from orchestrator.answers import ago, request_text
from registry.records import Approval
from registry.store import Store


def render_page() -> str:
    """The frame; `page.js` fills in the rest every second and sends decisions."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Toolwright</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script></head>'
        "<body><header><h1>Toolwright</h1>"
        '<label>PIN <input id="pin" type="password" autocomplete="off"></label>'
        '<button data-post="/kill">Freeze everything</button>'
        '<button data-post="/unfreeze">Unfreeze</button></header>'
        '<p id="told" role="status"></p><main id="live"></main></body></html>'
    )


def render_live(store: Store, now: float) -> str:
    """The part that changes: freeze, approvals, jobs, servers, recent calls."""
    frozen = store.freeze_state()
    banner = (
        f'<p class="frozen">Frozen {ago(frozen.since, now)} by {escape(frozen.by)}. '
        f"{escape(frozen.reason)}</p>"
        if frozen.frozen
        else ""
    )
    return banner + _waiting(store, now) + _jobs(store, now) + _servers(store) + _calls(store, now)


def _waiting(store: Store, now: float) -> str:
    cards = "".join(_card(approval, now) for approval in store.approvals("pending"))
    return f"<section><h2>Waiting for you</h2>{cards or '<p>Nothing.</p>'}</section>"


def _card(approval: Approval, now: float) -> str:
    return (
        f"<article><h3>{escape(approval.entry)}.{escape(approval.tool)}</h3>"
        f"<p>{escape(approval.task)}</p>"
        f"<p>{escape(approval.reason)} <small>{ago(approval.created, now)}</small></p>"
        f"<pre>{escape(request_text(approval.wire))}</pre>"
        f'<button data-post="/approvals/{escape(approval.id)}" data-decision="approve">'
        "Approve</button>"
        f'<button data-post="/approvals/{escape(approval.id)}" data-decision="reject">'
        "Reject</button></article>"
    )


def _jobs(store: Store, now: float) -> str:
    rows = (
        (job.id, job.kind, job.state, job.stage, f"{job.progress:.0%}", job.message)
        for job in store.jobs(limit=10)
    )
    return _table("Jobs", ("job", "kind", "state", "stage", "done", ""), rows)


def _servers(store: Store) -> str:
    rows = []
    for server in store.summaries():
        standing = server.standing
        ratio = "" if standing.ratio is None else f"{standing.ratio:.0%} of {standing.window}"
        rows.append((server.name, server.state, standing.level, ratio, str(server.tools)))
    return _table("Servers", ("server", "state", "trust", "last calls", "tools"), rows)


def _calls(store: Store, now: float) -> str:
    rows = (
        (
            f"{call.entry}.{call.tool}",
            "ok" if call.succeeded else (call.failure.kind if call.failure else call.state),
            f"{call.latency_ms:.0f} ms",
            ago(call.started, now),
            call.task,
        )
        for call in store.invocations(limit=20)
    )
    return _table("Recent calls", ("tool", "", "took", "when", "task"), rows)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell[:300])}</td>" for cell in row) + "</tr>" for row in rows
    )
    filled = f"<table><tr>{head}</tr>{body}</table>" if body else "<p>None.</p>"
    return f"<section><h2>{escape(title)}</h2>{filled}</section>"
