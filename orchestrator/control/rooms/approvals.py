"""What waits for a person: writes and jobs; the rules they made; what was decided."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from orchestrator.approvals.needs import hash_needs, is_allowable, list_need_items, names_file
from orchestrator.approvals.preview import find_changes
from orchestrator.approvals.rules import render_condition, render_rule
from orchestrator.approvals.sending import render_unsent_line
from orchestrator.approvals.text import (
    MAX_CLAIM,
    MAX_GLANCE,
    escape_line,
    hash_approval,
    is_glanceable,
    render_glance,
)
from orchestrator.control.answering import render_question
from orchestrator.control.markup import (
    escape_text,
    format_date,
    render_badge,
    render_button,
    render_empty,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.rooms.jobs import find_jobs
from registry.approvals.rules import ApprovalRule, Condition, RuleTable
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.models import Approval, Job
from registry.needs import OrderNeed
from registry.store import Store

VERBS = {"POST": "Sends to", "PUT": "Replaces", "PATCH": "Changes", "DELETE": "Deletes"}
MAX_FIELDS = 20
MAX_CELL = 200
MAX_SENTENCE = 600
"""Characters of the sentence of a standing rule that fit beside the button that makes it."""
ALWAYS = "7d"
"""How long a rule of the page counts."""
DECIDED = 20


def render_waiting(store: Store) -> str:
    cards = [render_approval(approval) for approval in store.approvals.find("pending")]
    cards += [
        f'<article class="ask"><p role="alert">{escape_text(str(damaged))}</p></article>'
        for damaged in store.approvals.find_damaged()
    ]
    cards += map(_render_waiting_job, find_waiting_jobs(store))
    frozen, now = store.processes.get_freeze().frozen, time.time()
    unsent = "".join(
        _render_unsent(each, now, frozen=frozen) for each in store.approvals.find("approved")
    )
    nothing = render_empty("Nothing. A write that needs your yes will stand here by itself.")
    shown = "".join(cards) or ("" if unsent else nothing)
    listed = f"<ul>{unsent}</ul>" if unsent else ""
    return render_section(f"Waiting for you ({len(cards)})", shown + listed)


def find_waiting_jobs(store: Store) -> list[Job]:
    """The jobs that a person can let go on: one that waits for code alone waits for its client."""
    return [job for job in find_jobs(store, ("waiting",)) if job.needs or not awaits_draft(job)]


def _render_unsent(approval: Approval, now: float, *, frozen: bool) -> str:
    """A line for what was approved and is not sent."""
    name = escape_text(f"{approval.entry}.{approval.tool}")
    return f"<li>{name}: {escape_text(render_unsent_line(approval, now, frozen))}</li>"


def render_approval(approval: Approval) -> str:
    """A card with the whole of what is decided. Without the whole there is no button to approve."""
    name = f"{approval.entry}.{approval.tool}"
    always = _render_always(approval) if is_glanceable(approval) else ""
    buttons = "".join(_render_decision(approval, word) for word in list_decisions(approval))
    return (
        f'<article class="ask" aria-label="{escape_text(name)}"><h3>{escape_text(name)} '
        f"<small>version {approval.version}, asked {render_time(approval.created)}, "
        f"ends {render_time(approval.expires)}</small></h3>{render_request(approval)}"
        f'<div class="decide"><div class="actions">{buttons}</div>{always}</div></article>'
    )


def list_decisions(approval: Approval) -> tuple[str, ...]:
    """What can be decided where only the beginning of a long request is shown, or all of it."""
    return ("approve", "reject") if is_glanceable(approval) else ("reject",)


def _render_decision(approval: Approval, decision: str) -> str:
    kind = "primary" if decision == "approve" else "quiet"
    return (
        f'<button class="{kind}" data-post="/approvals/{escape(approval.id)}" '
        f'data-decision="{decision}" data-digest="{hash_approval(approval)}" '
        f'id="{decision}-{escape(approval.id)}">{decision.capitalize()} (PIN)</button>'
    )


def render_request(approval: Approval) -> str:
    """A request in words with its fields, and below it as it is sent: all that is decided."""
    summary = render_summary(approval) if is_glanceable(approval) else ""
    return f'{summary}<pre class="raw">{escape(render_glance(approval))}</pre>'


def render_summary(approval: Approval) -> str:
    """What a write does and to what, and its fields: old and new values where the old are known,
    else those of its body. It says nothing that the exact text below it does not.
    """
    wire = approval.wire
    place = urlsplit(wire.url)
    shown = escape(escape_line(f"{place.path or '/'}{'?' if place.query else ''}{place.query}"))
    host = escape(escape_line(place.netloc))
    verb = escape(VERBS.get(wire.method, escape_line(wire.method)))
    head = f'<p class="does"><strong>{verb}</strong> <code>{shown}</code> at {host}</p>'
    head += _render_purpose(approval)
    changes = find_changes(wire, approval.present) if approval.present else ()
    name = f"fields of {escape_line(approval.tool)}"
    if changes:
        rows = [
            (
                _cell(change.where.removeprefix("/") or "all of it"),
                f'<span class="before">{_cell(change.before)}</span>',
                f'<b class="after">{_cell(change.after)}</b>',
            )
            for change in changes[:MAX_FIELDS]
        ]
        left = len(changes) - MAX_FIELDS
        more = f"<p><small>{left} more changes stand in the text below.</small></p>"
        table = render_table(("field", "is", "will be"), rows, name)
        return head + table + (more if left > 0 else "")
    fields = [(_cell(key), _cell(value)) for key, value in _list_fields(wire.body)]
    return head + (render_table(("field", "value"), fields, name) if fields else "")


def _render_purpose(approval: Approval) -> str:
    """What the client says that the write is for, in its words."""
    said = approval.task or approval.reason
    if not said:
        return ""
    cut = "…" if len(said) > MAX_CLAIM else ""
    return f'<p class="purpose">Asked for: {escape(escape_line(said[:MAX_CLAIM]))}{cut}</p>'


def _cell(text: str) -> str:
    cut = "… (whole below)" if len(text) > MAX_CELL else ""
    return escape(escape_line(text[:MAX_CELL]) + cut)


def _list_fields(body: bytes) -> Sequence[tuple[str, str]]:
    """The members of a JSON object; none where it is anything else or a name comes twice, since
    nobody knows which of the two its reader takes.
    """
    try:
        value = json.loads(body, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(value, dict) or len(value) > MAX_FIELDS:
        return ()
    return [
        (name, each if isinstance(each, str) else json.dumps(each, ensure_ascii=False))
        for name, each in value.items()
    ]


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise ValueError("a name comes twice")
    return built


def _render_always(approval: Approval) -> str:
    """The button for a standing rule, beside the whole sentence of what it will mean."""
    if approval.wire.method == "DELETE":
        return ""
    with_ = escape_line(render_condition(Condition("", dict(approval.arguments))))
    name = escape_line(f"{approval.entry}.{approval.tool}")
    what = f"{name} (version {approval.version}) with {with_}"
    told = f"Approves this, and for 7 days {what} is sent without asking."
    if len(told) > MAX_SENTENCE:
        return ""
    return (
        f'<p class="always"><button class="quiet" '
        f'data-post="/approvals/{escape(approval.id)}" data-decision="approve" '
        f'data-always="{ALWAYS}" data-digest="{hash_approval(approval)}" '
        f'id="always-{escape(approval.id)}">Always like this (PIN)</button> '
        f"<span>{escape(told)}</span></p>"
    )


def _render_waiting_job(job: Job) -> str:
    name = f"{job.kind} {job.id}"
    asked = str(job.request.get("task") or job.request.get("source") or "")
    does = f'<p class="does">{escape_text(asked)}</p>' if asked else ""
    told = "" if awaits_answer(job) else f"<p>{escape_text(job.message)}</p>"
    word = "A task asks you" if awaits_answer(job) else f"A job waits: {job.kind}"
    return (
        f'<article class="ask" aria-label="{escape_text(name)}"><h3>{escape_text(word)} '
        f"<small>{escape_text(job.id)}, begun {render_time(job.created)}</small></h3>"
        f"{does}{told}{render_question(job, 'waits')}{_render_allow_button(job)}</article>"
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
        f'{needs}<pre>{escape(items)}</pre><div class="actions"><button class="primary" '
        f'data-post="/jobs/{escape(job.id)}/allow" id="allow-{escape(job.id)}" '
        f'data-digest="{escape(hash_needs(job.needs))}">Allow (PIN)</button></div>'
    )


def render_rules(rules: RuleTable) -> str:
    rows = [_render_rule_row(rule) for rule in rules.find() if rule.revoked is None]
    nothing = render_empty("Nothing. A rule comes with an approval that you allow always.")
    heads = ("sent without asking", "used", "until", "")
    table = render_table(heads, rows, "always allowed") if rows else nothing
    return render_section("Always allowed", table)


def _render_rule_row(rule: ApprovalRule) -> tuple[str, ...]:
    most = "" if rule.max_uses is None else f" of {rule.max_uses}"
    revoke = render_button("Revoke", f"/rules/{rule.id}/revoke", f"revoke-{rule.id}", "quiet small")
    return (
        escape_text(render_rule(rule)),
        f"{rule.uses}{most}",
        format_date(rule.expires),
        revoke,
    )


def render_decided(approvals: Iterable[Approval]) -> str:
    """The newest approvals that do not wait any more."""
    rows = [
        (
            escape_text(f"{each.entry}.{each.tool}"),
            render_badge(each.state),
            escape_text(each.decided_by),
            render_time(each.decided_at or each.created),
            f"<code>{escape_text(each.id)}</code>",
        )
        for each in approvals
        if each.state != "pending"
    ][:DECIDED]
    heads = ("tool", "state", "by", "when", "approval")
    return render_section(
        "Decided",
        render_table(heads, rows, "decided", compact=True)
        if rows
        else render_empty("Nothing yet."),
    )
