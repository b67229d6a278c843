"""Servers as cards, and one server: tools, proofs, trust, permissions, versions, last calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_facts,
    render_section,
    render_table,
    render_time,
    render_value,
)
from orchestrator.control.rooms.calls import render_mark_wrong, render_outcome
from orchestrator.control.rooms.place import build_address
from registry.models import Entry, Invocation, RegisteredTool, ServerSummary
from registry.servers.quarantine import explain_quarantine
from registry.store import Store
from registry.trust import (
    STANDARD_PERCENT,
    STANDARD_SUCCESSES,
    TRUSTED_PERCENT,
    TRUSTED_SUCCESSES,
    Standing,
)
from sandbox.bundle.report import StageReport

HISTORY = 10
MAX_ROWS = 200
MAX_PARAMETERS = 60
MARKS = {"passed": "✓", "failed": "✗", "skipped": "-", "inconclusive": "?"}


Facts = tuple[tuple[str, str], ...]
"""Names, and values as HTML."""


def render_servers(store: Store) -> str:
    cards = "".join(map(_render_card, store.servers.find_summaries()))
    nothing = render_empty("None yet. Have one made of an API:", "toolwright forge URL")
    return render_section("Servers", f'<div class="cards">{cards}</div>' if cards else nothing)


def _render_card(server: ServerSummary) -> str:
    standing, name = server.standing, escape(server.name)
    ratio = f", {standing.ratio:.0%} of the last {standing.window} right" if standing.window else ""
    refusing = ", ".join(server.refusing)
    refuses = f"<p>refuses many of its calls: {escape_text(refusing)}</p>" if refusing else ""
    return (
        f'<article class="card" id="server-{name}"><h3>'
        f'<a href="{escape(build_address("servers", server.name))}">{name}</a> '
        f"{render_badge(standing.level)}{_render_state(server.state)}</h3>"
        f"<p>{escape_text(server.title)}</p>"
        f"<p><small>version {server.version}, {_count(server.tools, 'tool')}, "
        f"{_count(standing.total, 'call')}{ratio or ''}</small></p>{refuses}</article>"
    )


def _render_state(state: str) -> str:
    return "" if state == "active" else f" {render_badge(state)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def render_server(store: Store, name: str) -> str:
    """All that is known of one server. Raises RowNotFound."""
    entry = store.servers.get(name)
    standing = store.standings.get(name)
    quarantined = entry.state == "quarantined"
    held = explain_quarantine(store.servers, name) if quarantined else ""
    alert = f'<p role="alert">{escape_text(held)}</p>' if held else ""
    title = f"{escape_text(entry.name)} {render_badge(standing.level)}{_render_state(entry.state)}"
    parts = (
        alert,
        f"<p>{escape_text(entry.title)}. {escape_text(entry.description)}</p>",
        render_facts((*_list_trust(standing), *_list_origins(entry))),
        "<h3>Tools</h3>",
        "".join(map(_render_tool, entry.tools[:MAX_ROWS])),
        "<h3>Proofs</h3>",
        render_matrix(store.servers.get_reports(name, entry.version)),
        "<h3>Last calls</h3>",
        _render_history(store.calls.find(name, HISTORY)),
        "<h3>Versions</h3>",
        _render_versions(store.servers.find_versions(name), entry),
    )
    return render_section(title, "".join(parts))


def _list_trust(standing: Standing) -> Facts:
    share = f"{standing.ratio:.0%}" if standing.ratio is not None else "0%"
    return (
        ("trust", f"{render_badge(standing.level)} {escape(explain_next_level(standing))}"),
        ("calls", f"{standing.total}, {standing.successful} of them right"),
        ("window", f"{share} of the last {standing.window} counted" if standing.window else ""),
        ("last failure", escape_text(standing.last_failure_reason)),
    )


def _list_origins(entry: Entry) -> Facts:
    return (
        ("asks", escape_text(entry.base_url)),
        ("made of", escape_text(entry.source)),
        ("made by", escape_text(entry.created_by)),
        ("permissions", "<br>".join(map(escape_text, entry.permissions)) or "none"),
    )


def explain_next_level(standing: Standing) -> str:
    """What is missing to the next level, in a sentence."""
    share = f"{standing.ratio:.0%}" if standing.ratio is not None else "none yet"
    if standing.level == "trusted":
        return "It has earned the highest level."
    if standing.level == "degraded":
        return "Too many of its calls failed: it has to be repaired or made anew."
    if standing.level == "experimental":
        return "It is registered as experimental and does not rise."
    target, needed, percent = (
        ("standard", STANDARD_SUCCESSES, STANDARD_PERCENT)
        if standing.level == "probationary"
        else ("trusted", TRUSTED_SUCCESSES, TRUSTED_PERCENT)
    )
    missing = max(0, needed - standing.ladder_successes)
    calls = f"{_count(missing, 'more right call')} and " if missing else ""
    return f"{target}: {calls}more than {percent} % of its last calls right (now {share})."


def _render_tool(tool: RegisteredTool) -> str:
    listed = tool.definition
    kind = "destructive" if tool.destructive else tool.access
    return (
        f'<details id="tool-{escape(tool.name)}"><summary><code>{escape_text(tool.name)}</code> '
        f"{render_badge(kind)} <small>{escape_text(str(listed.get('description', '')), 120)}"
        f"</small></summary><p>{escape_text(str(listed.get('description', '')), 2000)}</p>"
        f"{_render_parameters(listed.get('inputSchema'))}"
        f"<h4>Schema</h4>{render_value(listed)}</details>"
    )


def _render_parameters(schema: Any) -> str:
    """The arguments of a tool as a table."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return "<p>It takes no arguments.</p>"
    required = schema.get("required")
    named = required if isinstance(required, Sequence) else ()
    rows = [
        (
            f"<code>{escape_text(str(name), 80)}</code>",
            escape_text(_render_type(about), 80),
            "yes" if name in named else "",
            escape_text(str(about.get("description", "")) if isinstance(about, Mapping) else ""),
        )
        for name, about in [*properties.items()][:MAX_PARAMETERS]
    ]
    return render_table(("argument", "type", "required", "meaning"), rows, "arguments")


def _render_type(about: Any) -> str:
    kind = about.get("type") if isinstance(about, Mapping) else None
    return ", ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "any")


def render_matrix(reports: Iterable[StageReport]) -> str:
    """Operations by stages: a mark, and how many cases passed of how many."""
    told = tuple(reports)
    stages = [
        f"<li>{escape_text(report.stage)} {render_badge(report.verdict)} "
        f"<small>{report.elapsed_ms:.0f} ms {escape_text(report.note)}</small></li>"
        for report in told
    ]
    cases = [report for report in told if report.cases]
    operations = sorted({case.operation for report in cases for case in report.cases})[:MAX_ROWS]
    if not stages:
        return render_empty("It was not proved.")
    listed = f'<ul class="plain">{"".join(stages)}</ul>'
    if not operations:
        return listed
    heads = "".join(f'<th scope="col">{escape_text(report.stage)}</th>' for report in cases)
    lines = "".join(
        f'<tr><th scope="row">{escape_text(operation, 60) or "all"}</th>'
        f"{''.join(_render_cell(report, operation) for report in cases)}</tr>"
        for operation in operations
    )
    return (
        f'{listed}<div class="wide" tabindex="0" role="region" aria-label="proof matrix">'
        f'<table class="matrix"><thead><tr><th scope="col">operation</th>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _render_cell(report: StageReport, operation: str) -> str:
    verdicts = [case.verdict for case in report.cases if case.operation == operation]
    if not verdicts:
        return '<td class="none"><span aria-label="no case">·</span></td>'
    worst = next((each for each in ("failed", "inconclusive") if each in verdicts), "")
    verdict = worst or ("passed" if "passed" in verdicts else "skipped")
    good = verdicts.count("passed")
    return (
        f'<td class="{verdict}"><span aria-label="{verdict}">{MARKS[verdict]}</span> '
        f"{good}/{len(verdicts)}</td>"
    )


def _render_history(calls: Iterable[Invocation]) -> str:
    lines = "".join(
        f"<li>{escape_text(call.tool)}: {render_outcome(call)} {render_time(call.started)} "
        f'<a href="{escape(build_address("calls", call.id))}">{escape_text(call.id)}</a>'
        f"{render_mark_wrong(call)}</li>"
        for call in calls
    )
    return f'<ul class="plain">{lines}</ul>' if lines else render_empty("No calls yet.")


def _render_versions(versions: Iterable[Entry], current: Entry) -> str:
    rows = [
        (
            f"{each.version}{' (current)' if each.version == current.version else ''}",
            render_time(each.created),
            escape_text(each.created_by),
            f"<code>{escape_text(each.digest[:12])}</code>",
            _render_difference(each, current),
        )
        for each in [*versions][:MAX_ROWS]
    ]
    return render_table(
        ("version", "made", "by", "digest", "tools beside the current"), rows, "versions"
    )


def _render_difference(version: Entry, current: Entry) -> str:
    """Which tools a version had more and less than the current one."""
    own, present = {tool.name for tool in version.tools}, {tool.name for tool in current.tools}
    more = "".join(f"+{escape_text(name)} " for name in sorted(own - present)[:HISTORY])
    less = "".join(f"-{escape_text(name)} " for name in sorted(present - own)[:HISTORY])
    return more + less or "the same"
