"""Servers as cards, and of one server what it is, its proofs and its last calls."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from forge.text import inflect
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_facts,
    render_section,
)
from orchestrator.control.rooms.calls import render_call_list
from orchestrator.control.rooms.place import build_address
from registry.models import ServerSummary
from registry.store import Store
from sandbox.bundle.report import StageReport

HISTORY = 10
MAX_ROWS = 200
MARKS = {"passed": "✓", "failed": "✗", "skipped": "-", "inconclusive": "?"}


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
    return f"{number} {inflect(number, noun)}"


def render_about(store: Store, name: str) -> str:
    """What a server is and what it was made of. Raises RowNotFound."""
    entry = store.servers.get(name)
    standing = store.standings.get(name)
    title = f"{escape_text(entry.title)} {render_badge(standing.level)}{_render_state(entry.state)}"
    facts = render_facts(
        (
            ("asks", escape_text(entry.base_url)),
            ("made of", escape_text(entry.source)),
            ("made by", escape_text(entry.created_by)),
            ("permissions", "<br>".join(map(escape_text, entry.permissions)) or "none"),
        )
    )
    told = f"<p>{escape_text(entry.description)}</p>"
    return render_section(title, told + facts)


def render_proofs(store: Store, name: str) -> str:
    """The proof of the current version. Raises RowNotFound."""
    entry = store.servers.get(name)
    reports = store.servers.get_reports(name, entry.version)
    return render_section("Proofs", render_matrix(reports))


def render_history(store: Store, name: str) -> str:
    """The server's last calls."""
    return render_section("Last calls", render_call_list(store.calls.find(name, HISTORY)))


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
    listed = f'<ul class="plain stages-run">{"".join(stages)}</ul>'
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
