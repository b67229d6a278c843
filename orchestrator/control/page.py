"""The parts of the control page that change, as HTML. Whatever a server, a model or an API said is
escaped and bounded here, and shown as text only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby

from orchestrator.allowing import rule_text
from orchestrator.answers import change_lines, request_text, visible
from orchestrator.needs import ALLOWED, digest_of
from registry.cause import cause_of
from registry.drafts import awaits_draft
from registry.records import ENDED_JOBS, Approval, AuditRow, Invocation, Job, Summary
from registry.rules import Rule
from registry.store import Store

MAX_TEXT = 300
HISTORY = 10
MAX_CALLS = 200
OPEN: tuple[str, ...] = ("queued", "running", "waiting")


PANELS = ("freeze", "waiting", "running", "rules", "servers", "jobs", "calls", "timeline")
"""The ids of the parts, in the page's order."""


def panels(store: Store) -> dict[str, str]:
    """Every part by its element's id. The same state gives the same text at any time."""
    # With their whole results, so they are read once.
    calls = store.invocations(limit=MAX_CALLS)
    return {
        "freeze": _freeze(store),
        "waiting": _waiting(store),
        "running": _running(store, calls[:50]),
        "rules": _rules(store),
        "servers": _servers(store, calls),
        "jobs": _jobs(store),
        "calls": _calls(calls[:20]),
        "timeline": _timeline(store),
    }


def _freeze(store: Store) -> str:
    frozen = store.freeze_state()
    if not frozen.frozen:
        return '<button class="kill" data-post="/kill">Freeze everything</button>'
    return (
        f'<p class="frozen" role="alert"><strong>Frozen</strong> {_when(frozen.since)} by '
        f"{_text(frozen.by)}. {_text(frozen.reason)}</p>"
        '<button data-post="/unfreeze">Unfreeze (PIN)</button>'
    )


def _running(store: Store, calls: Sequence[Invocation]) -> str:
    lines = [
        f"<li>{_text(call.entry)}.{_text(call.tool)} writes, begun {_when(call.started)}</li>"
        for call in calls
        if call.state == "intended"
    ]
    lines += [_job_line(job) for job in _jobs_in(store, ("queued", "running"))]
    lines += [
        f"<li><small>process {process.pid}: {_text(process.kind)} since {_when(process.started)}"
        "</small></li>"
        for process in store.processes()
    ]
    return _section("Running", f"<ul>{''.join(lines)}</ul>")


def _waiting(store: Store) -> str:
    cards = [_approval(approval) for approval in store.approvals("pending")]
    # A job that waits for code alone waits for its client, not for a person.
    held = _jobs_in(store, ("waiting",))
    waiting = [job for job in held if job.needs or not awaits_draft(job)]
    cards += [_waiting_job(job) for job in waiting]
    return _section(f"Waiting for you ({len(cards)})", "".join(cards) or "<p>Nothing.</p>")


def _approval(approval: Approval) -> str:
    name = f"{approval.entry}.{approval.tool}"
    buttons = "".join(
        f'<button data-post="/approvals/{escape(approval.id)}" data-decision="{decision}" '
        f'data-digest="{escape(approval.wire_digest)}" '
        f'id="{decision}-{escape(approval.id)}">{title}</button>'
        for decision, title in (("approve", "Approve (PIN)"), ("reject", "Reject (PIN)"))
    )
    return (
        f'<article class="ask" aria-label="{_text(name)}"><h3>{_text(name)} '
        f"<small>version {approval.version}, asked {_when(approval.created)}</small></h3>"
        f"<p>{_text(approval.task)}</p><p>{_text(approval.reason)}</p>"
        f"<pre>{escape(request_text(approval.wire))}</pre>{_changes(approval)}{buttons}</article>"
    )


def _changes(approval: Approval) -> str:
    lines = "".join(f"<li><code>{escape(line)}</code></li>" for line in change_lines(approval))
    return f"<p>It changes:</p><ul>{lines}</ul>" if lines else ""


def _waiting_job(job: Job) -> str:
    return (
        f'<article class="ask"><h3>{_text(job.kind)} {_text(job.id)}</h3>'
        f"<p>{_text(str(job.request.get('task', '')))}</p><p>{_text(job.message)}</p>"
        f"{_allowing(job)}</article>"
    )


def _allowing(job: Job) -> str:
    if job.needs.get("kind") not in ALLOWED:
        return ""
    return (
        f"<p>It needs a {_text(job.needs['kind'])}: {_text(job.needs['what'])}</p>"
        f'<button data-post="/jobs/{escape(job.id)}/allow" id="allow-{escape(job.id)}" '
        f'data-digest="{escape(digest_of(job.needs))}">Allow (PIN)</button>'
    )


def _rules(store: Store) -> str:
    lines = "".join(map(_rule, (rule for rule in store.rules() if rule.revoked is None)))
    return _section("Always allowed", f"<ul>{lines}</ul>" if lines else "<p>Nothing.</p>")


def _rule(rule: Rule) -> str:
    most = "" if rule.max_uses is None else f" of {rule.max_uses}"
    return (
        f"<li>{_text(rule_text(rule))}, used {rule.uses}{most}, until {_date(rule.expires)} "
        f'<button data-post="/rules/{escape(rule.id)}/revoke" id="revoke-{escape(rule.id)}">Revoke'
        "</button></li>"
    )


def _servers(store: Store, calls: Iterable[Invocation]) -> str:
    past = _by_server(calls)
    lines = [_server(server, past.get(server.name, [])) for server in store.summaries()]
    return _section("Servers", "".join(lines) or "<p>None yet.</p>")


def _server(server: Summary, calls: list[Invocation]) -> str:
    standing = server.standing
    ratio = "" if standing.ratio is None else f"{standing.ratio:.0%} of the last {standing.window}"
    name = escape(server.name)
    history = "".join(_past_call(call, standing.level == "probationary") for call in calls)
    return (
        f'<details id="server-{name}"><summary>{name} '
        f'<span class="level {escape(standing.level)}">{escape(standing.level)}</span> '
        f"<small>{escape(server.state)}, version {server.version}, {server.tools} tools, "
        f"{standing.total} calls {ratio}</small></summary>"
        f"<p>{_text(server.title)}</p>"
        f"<p>{_text(standing.last_failure_reason)}</p>"
        f"<ul>{history or '<li>No calls yet.</li>'}</ul></details>"
    )


def _past_call(call: Invocation, reviewed: bool) -> str:
    wrong = (
        f' <button data-post="/calls/{escape(call.id)}/wrong" id="wrong-{escape(call.id)}">'
        "This result is wrong</button>"
        if reviewed and call.succeeded
        else ""
    )
    return f"<li>{_text(call.tool)}: {_outcome(call)} {_when(call.started)}{wrong}</li>"


def _jobs(store: Store) -> str:
    jobs = _jobs_in(store, OPEN) + _jobs_in(store, ENDED_JOBS)[:10]
    return _section("Jobs", "".join(_job(job) for job in jobs) or "<p>None.</p>")


def _job(job: Job) -> str:
    events = "".join(
        f"<li>{_text(event.stage)}: {_text(event.message)}</li>" for event in job.log[-20:]
    )
    asked = str(job.request.get("task") or job.request.get("source") or "")
    return (
        f'<details id="job-{escape(job.id)}"><summary>{_text(job.kind)} {_text(asked)} '
        f'<span class="state {escape(job.state)}">{escape(job.state)}</span> '
        f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress> '
        f"<small>{_text(job.stage)} {_text(job.message)}</small></summary>"
        f"<ol>{events}</ol></details>"
    )


def _job_line(job: Job) -> str:
    return (
        f"<li>{_text(job.kind)} {_text(str(job.request.get('task', '')))}: {_text(job.stage)} "
        f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress></li>'
    )


def _calls(calls: Iterable[Invocation]) -> str:
    lines = "".join(
        f"<tr><td>{_text(call.entry)}.{_text(call.tool)}</td><td>{_outcome(call)}</td>"
        f"<td>{call.latency_ms:.0f} ms</td><td>{_when(call.started)}</td>"
        f"<td>{_text(call.task)}</td><td>"
        f'<button data-post="/replay/{escape(call.id)}" id="replay-{escape(call.id)}">Replay'
        "</button></td></tr>"
        for call in calls
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("tool", "", "took", "", "task", ""))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    return _section("Calls", table if lines else "<p>None yet.</p>")


def _timeline(store: Store) -> str:
    rows = store.audit(limit=50)
    return _section("Audit", f"<ol class='timeline'>{''.join(map(_event, rows))}</ol>")


def _event(row: AuditRow) -> str:
    return (
        f"<li><code>{row.id}</code> {_when(row.time)} <strong>{_text(row.kind)}</strong> "
        f"{_text(row.subject)} <small>{_text(row.payload)}</small></li>"
    )


def _jobs_in(store: Store, states: Iterable[str]) -> list[Job]:
    jobs = [job for state in states for job in store.jobs(state)]  # type: ignore[arg-type]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def _by_server(calls: Iterable[Invocation]) -> dict[str, list[Invocation]]:
    ordered = sorted(calls, key=lambda call: (call.entry, -call.started))
    return {
        name: list(group)[:HISTORY] for name, group in groupby(ordered, lambda call: call.entry)
    }


def _outcome(call: Invocation) -> str:
    if call.succeeded:
        return "ok"
    if call.disputed:
        return "marked wrong"
    cause = cause_of(call)
    return _text(cause.text if cause else call.state)


def _when(moment: float) -> str:
    """A moment that `page.js` tells as `12 s ago` by the reader's clock."""
    return f'<time data-at="{moment:.0f}">{_date(moment)}</time>'


def _date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _text(text: str) -> str:
    return escape(visible(text[:MAX_TEXT]) + ("…" if len(text) > MAX_TEXT else ""))


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}"
