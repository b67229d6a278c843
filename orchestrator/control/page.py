"""HTML of the control page and of its changing parts.
Text of servers, models and APIs is escaped and cut here, and shown as text only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape, unescape
from itertools import groupby

from orchestrator.approvals.needs import (
    hash_needs,
    is_allowable,
    list_need_items,
    names_file,
)
from orchestrator.approvals.rules import render_rule
from orchestrator.approvals.sending import build_send_command
from orchestrator.approvals.text import (
    MAX_GLANCE,
    escape_line,
    hash_approval,
    is_glanceable,
    render_glance,
)
from orchestrator.control.logins import LoginSession
from orchestrator.control.markup import escape_text, format_date, render_section, render_time
from orchestrator.control.runs import render_runs
from registry.approvals.approvals import UNREADABLE
from registry.approvals.rules import ApprovalRule, RuleTable
from registry.audit.search import AuditTable
from registry.errors import RegistryError
from registry.health.causes import find_cause
from registry.jobs.drafts import awaits_draft
from registry.models import ENDED_JOBS, Approval, AuditRow, Invocation, Job, ServerSummary
from registry.needs import OrderNeed
from registry.processes import ProcessTable
from registry.servers.entries import ServerTable
from registry.servers.quarantine import explain_quarantine
from registry.store import Store

HISTORY = 10
MAX_CALLS = 200
_POSTING = re.compile(r'data-post="([^"]*)"')
OPEN: tuple[str, ...] = ("queued", "running", "waiting")


PANELS = ("freeze", "waiting", "running", "runs", "rules", "servers", "jobs", "calls", "timeline")
"""The ids of the parts, in the page's order."""


def render_panels(store: Store) -> dict[str, str]:
    """The HTML of every part by its element's id; it depends on the stored state alone."""

    # With their whole results, so they are read once.
    @cache
    def find_calls() -> tuple[Invocation, ...]:
        return store.calls.find(limit=MAX_CALLS)

    parts: dict[str, Callable[[], str]] = {
        "freeze": lambda: _render_freeze(store.processes),
        "waiting": lambda: _render_waiting(store),
        "running": lambda: _render_running(store, find_calls()[:50]),
        "runs": lambda: render_runs(store.jobs, store.model_usage),
        "rules": lambda: _render_rules(store.rules),
        "servers": lambda: _render_servers(store.servers, find_calls()),
        "jobs": lambda: _render_jobs(store),
        "calls": lambda: _render_calls(find_calls()[:20]),
        "timeline": lambda: _render_timeline(store.audit),
    }
    return {name: _render_safely(name, render) for name, render in parts.items()}


def _render_safely(name: str, render: Callable[[], str]) -> str:
    """A part, or what is the matter with it: a row that our code did not write hides that part
    only.
    """
    try:
        return render()
    except (*UNREADABLE, RegistryError) as error:
        told = escape_text(f"This part cannot be shown: {type(error).__name__}: {error}")
        return render_section(TITLES.get(name, name.capitalize()), f'<p role="alert">{told}</p>')


def sign_forms(html: str, session: LoginSession | None) -> str:
    """The same HTML with a token in each thing that can be done, for one session's page.

    All text in it is escaped, so a quoted attribute is one of ours.
    """
    if session is None:
        return html
    return _POSTING.sub(
        lambda found: f'{found[0]} data-form="{session.sign_form(unescape(found[1]))}"', html
    )


def _render_freeze(processes: ProcessTable) -> str:
    frozen = processes.get_freeze()
    if not frozen.frozen:
        return '<button class="kill" data-post="/kill">Freeze everything</button>'
    return (
        f'<p class="frozen" role="alert"><strong>Frozen</strong> {render_time(frozen.since)} by '
        f"{escape_text(frozen.by)}. {escape_text(frozen.reason)}</p>"
        '<button data-post="/unfreeze">Unfreeze (PIN)</button>'
    )


def _render_running(store: Store, calls: Sequence[Invocation]) -> str:
    lines = [
        f"<li>{escape_text(call.entry)}.{escape_text(call.tool)} writes, "
        f"begun {render_time(call.started)}</li>"
        for call in calls
        if call.state == "intended"
    ]
    lines += [_render_job_line(job) for job in _find_jobs(store, ("queued", "running"))]
    lines += [
        f"<li><small>process {process.pid}: {escape_text(process.kind)} "
        f"since {render_time(process.started)}</small></li>"
        for process in store.processes.find()
    ]
    return render_section("Running", f"<ul>{''.join(lines)}</ul>")


def _render_waiting(store: Store) -> str:
    cards = [_render_approval(approval) for approval in store.approvals.find("pending")]
    cards += [
        f'<article class="ask"><p role="alert">{escape_text(str(damaged))}</p></article>'
        for damaged in store.approvals.find_damaged()
    ]
    # A job that waits for code alone waits for its client, not for a person.
    held = _find_jobs(store, ("waiting",))
    waiting = [job for job in held if job.needs or not awaits_draft(job)]
    cards += [_render_waiting_job(job) for job in waiting]
    unsent = "".join(map(_render_unsent, store.approvals.find("approved")))
    shown = "".join(cards) or ("" if unsent else "<p>Nothing.</p>")
    listed = f"<ul>{unsent}</ul>" if unsent else ""
    return render_section(f"Waiting for you ({len(cards)})", shown + listed)


def _render_unsent(approval: Approval) -> str:
    """A line for what was approved and is not sent."""
    return (
        f"<li>{escape_text(f'{approval.entry}.{approval.tool}')}: approved by "
        f"{escape_text(approval.decided_by)} and not sent yet: "
        f"<code>{escape(build_send_command(approval.id))}</code></li>"
    )


def _render_approval(approval: Approval) -> str:
    """A card with the whole of what is decided. Without the whole there is no button to approve."""
    name = f"{approval.entry}.{approval.tool}"
    whole = is_glanceable(approval)
    digest = hash_approval(approval)
    wanted = ("approve", "reject") if whole else ("reject",)
    buttons = "".join(
        f'<button data-post="/approvals/{escape(approval.id)}" data-decision="{decision}" '
        f'data-digest="{digest}" '
        f'id="{decision}-{escape(approval.id)}">{decision.capitalize()} (PIN)</button>'
        for decision in wanted
    )
    return (
        f'<article class="ask" aria-label="{escape_text(name)}"><h3>{escape_text(name)} '
        f"<small>version {approval.version}, asked {render_time(approval.created)}</small></h3>"
        f"<pre>{escape(render_glance(approval))}</pre>{buttons}</article>"
    )


def _render_waiting_job(job: Job) -> str:
    return (
        f'<article class="ask"><h3>{escape_text(job.kind)} {escape_text(job.id)}</h3>'
        f"<p>{escape_text(str(job.request.get('task', '')))}</p><p>{escape_text(job.message)}</p>"
        f"{_render_allow_button(job)}</article>"
    )


def _render_allow_button(job: Job) -> str:
    if not is_allowable(job.needs):
        return ""
    items = "\n".join(map(escape_line, list_need_items(job.needs)))
    what = "all of this" if isinstance(job.needs, OrderNeed) else f"a {job.needs.kind}"
    needs = f"<p>It needs {escape_text(what)}:</p>"
    way = f"<code>{escape(f'toolwright allow {escape_line(job.id)}')}</code>"
    if len(items) > MAX_GLANCE:
        return f"{needs}<p>Too long to be shown here; it is allowed by {way}</p>"
    if names_file(job.needs):
        told = "A path of this machine is allowed at the terminal alone"
        return f"{needs}<pre>{escape(items)}</pre><p>{told}: {way}</p>"
    return (
        f"{needs}<pre>{escape(items)}</pre>"
        f'<button data-post="/jobs/{escape(job.id)}/allow" id="allow-{escape(job.id)}" '
        f'data-digest="{escape(hash_needs(job.needs))}">Allow (PIN)</button>'
    )


def _render_rules(rules: RuleTable) -> str:
    lines = "".join(map(_render_rule_item, (rule for rule in rules.find() if rule.revoked is None)))
    return render_section("Always allowed", f"<ul>{lines}</ul>" if lines else "<p>Nothing.</p>")


def _render_rule_item(rule: ApprovalRule) -> str:
    most = "" if rule.max_uses is None else f" of {rule.max_uses}"
    return (
        f"<li>{escape_text(render_rule(rule))}, used {rule.uses}{most}, "
        f"until {format_date(rule.expires)} "
        f'<button data-post="/rules/{escape(rule.id)}/revoke" id="revoke-{escape(rule.id)}">Revoke'
        "</button></li>"
    )


def _render_servers(servers: ServerTable, calls: Iterable[Invocation]) -> str:
    past = _group_by_server(calls)
    lines = [
        _render_server(
            server,
            past.get(server.name, []),
            explain_quarantine(servers, server.name) if server.state == "quarantined" else "",
        )
        for server in servers.find_summaries()
    ]
    return render_section("Servers", "".join(lines) or "<p>None yet.</p>")


def _render_server(server: ServerSummary, calls: list[Invocation], quarantine: str) -> str:
    standing = server.standing
    ratio = "" if standing.ratio is None else f"{standing.ratio:.0%} of the last {standing.window}"
    name = escape(server.name)
    history = "".join(_render_past_call(call, standing.level == "probationary") for call in calls)
    refusing = ", ".join(server.refusing)
    refuses = f"<p>refuses many of its calls: {escape_text(refusing)}</p>" if refusing else ""
    held = f"<p>{escape_text(quarantine)}</p>" if quarantine else ""
    return (
        f'<details id="server-{name}"><summary>{name} '
        f'<span class="level {escape(standing.level)}">{escape(standing.level)}</span> '
        f"<small>{escape(server.state)}, version {server.version}, {server.tools} tools, "
        f"{standing.total} calls {ratio}</small></summary>"
        f"<p>{escape_text(server.title)}</p>"
        f"{held}{refuses}<p>{escape_text(standing.last_failure_reason)}</p>"
        f"<ul>{history or '<li>No calls yet.</li>'}</ul></details>"
    )


def _render_past_call(call: Invocation, reviewed: bool) -> str:
    wrong = (
        f' <button data-post="/calls/{escape(call.id)}/wrong" id="wrong-{escape(call.id)}">'
        "This result is wrong</button>"
        if reviewed and call.succeeded
        else ""
    )
    when = f"{_render_outcome(call)} {render_time(call.started)}"
    return f"<li>{escape_text(call.tool)}: {when}{wrong}</li>"


def _render_jobs(store: Store) -> str:
    jobs = _find_jobs(store, OPEN) + _find_jobs(store, ENDED_JOBS)[:10]
    return render_section("Jobs", "".join(_render_job(job) for job in jobs) or "<p>None.</p>")


def _render_job(job: Job) -> str:
    events = "".join(
        f"<li>{escape_text(event.stage)}: {escape_text(event.message)}</li>"
        for event in job.log[-20:]
    )
    asked = str(job.request.get("task") or job.request.get("source") or "")
    return (
        f'<details id="job-{escape(job.id)}">'
        f"<summary>{escape_text(job.kind)} {escape_text(asked)} "
        f'<span class="state {escape(job.state)}">{escape(job.state)}</span> '
        f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress> '
        f"<small>{escape_text(job.stage)} {escape_text(job.message)}</small></summary>"
        f"<ol>{events}</ol></details>"
    )


def _render_job_line(job: Job) -> str:
    return (
        f"<li>{escape_text(job.kind)} {escape_text(str(job.request.get('task', '')))}: "
        f"{escape_text(job.stage)} "
        f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress></li>'
    )


def _render_calls(calls: Iterable[Invocation]) -> str:
    lines = "".join(
        f"<tr><td>{escape_text(call.entry)}.{escape_text(call.tool)}</td><td>{_render_outcome(call)}</td>"
        f"<td>{call.latency_ms:.0f} ms</td><td>{render_time(call.started)}</td>"
        f"<td>{escape_text(call.task)}</td><td>"
        f'<button data-post="/replay/{escape(call.id)}" id="replay-{escape(call.id)}">Replay'
        "</button></td></tr>"
        for call in calls
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("tool", "", "took", "", "task", ""))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    return render_section("Calls", table if lines else "<p>None yet.</p>")


def _render_timeline(audit: AuditTable) -> str:
    rows = audit.find(limit=50)
    return render_section("Audit", f"<ol class='timeline'>{''.join(map(_render_event, rows))}</ol>")


def _render_event(row: AuditRow) -> str:
    return (
        f"<li><code>{row.id}</code> {render_time(row.time)} "
        f"<strong>{escape_text(row.kind)}</strong> "
        f"{escape_text(row.subject)} <small>{escape_text(row.payload)}</small></li>"
    )


def _find_jobs(store: Store, states: Iterable[str]) -> list[Job]:
    jobs = [job for state in states for job in store.jobs.find(state)]  # type: ignore[arg-type]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def _group_by_server(calls: Iterable[Invocation]) -> dict[str, list[Invocation]]:
    ordered = sorted(calls, key=lambda call: (call.entry, -call.started))
    return {
        name: list(group)[:HISTORY] for name, group in groupby(ordered, lambda call: call.entry)
    }


def _render_outcome(call: Invocation) -> str:
    if call.succeeded:
        return "ok"
    if call.disputed:
        return "marked wrong"
    cause = find_cause(call)
    return escape_text(cause.text if cause else call.state)


TITLES = {"freeze": "Freeze", "timeline": "Audit"}


def render_page(session: LoginSession) -> str:
    """The page without its changing parts, which come as events of `/events`."""
    parts = "".join(
        f'<section id="{name}" aria-label="{TITLES.get(name, name.capitalize())}"></section>'
        for name in PANELS
        if name != "freeze"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Toolwright</title>
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body>
<header>
<h1>Toolwright <small id="link" role="status">connecting</small></h1>
<label>PIN <input id="pin" type="password" autocomplete="off" inputmode="text"></label>
<div id="freeze"></div>
</header>
<p id="told" role="status" aria-live="polite"></p>
<form id="do" autocomplete="off" data-form="{session.sign_form("/do")}">
<label for="task">Do</label>
<input id="task" name="task" required maxlength="4000" placeholder="list the DNS zones">
<details><summary>More</summary>
<label>Tool <input name="tool" placeholder="server.tool, or none to forge"></label>
<label>Arguments <input name="arguments" placeholder='{{"server_id": "localhost"}}'></label>
<label>Source <input name="source" placeholder="where the API is, to forge"></label>
</details>
<button>Do it</button>
<output id="done"></output>
</form>
<main>{parts}</main>
<form id="search" autocomplete="off">
<label>Search calls and audit <input name="text" maxlength="200"></label>
<button>Search</button>
<ol id="found"></ol>
</form>
<footer><a href="/docs">The HTTP API</a></footer>
</body>
</html>
"""
