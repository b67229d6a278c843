"""`toolwright find` and `list`: search tools by task, list the registered servers."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.cli.terminal import (
    json_option,
    print_json,
    print_noted_table,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.forging.contact.suggestions import describe_suggestions
from orchestrator.server_report import find_levels
from orchestrator.settings import load_settings
from orchestrator.views.records import round_numbers
from registry.models import LEAST_SHOWN, Route, ServerSummary, ToolMatch, describe_server
from registry.servers.quarantine import explain_archive, explain_quarantine
from registry.store import Store

MAX_DESCRIPTION = 160


@click.command("find")
@click.argument("task")
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 20), help="How many tools."
)
@json_option
@report_errors
def find_command(task: str, k: int, as_json: bool) -> None:
    """Show the registered tools that fit TASK, best first."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        store.search.bands = settings.bands.build_search_bands()
        route = store.route(task, k)
        matches = tuple(match for match in route.matches if match.score >= LEAST_SHOWN)
        found = {match.entry: store.servers.get(match.entry) for match in matches}
        of = {name: find_levels(settings, store, entry) for name, entry in found.items()}
        held = store.search.find_quarantined(task, k)
        why = {match.entry: explain_quarantine(store.servers, match.entry) for match in held}
        resting = store.search.find_resting(task) if route.verdict == "forge" else ()
        archived = {
            f"{match.entry}.{match.tool}": explain_archive(store.servers.get(match.entry))
            for match in resting
            if match.state == "archived"
        }
    if as_json:
        shown = [{**_encode_match(each), "level": of[each.entry][each.tool]} for each in matches]
        print_json([*shown, *({**_encode_match(each), "why": why[each.entry]} for each in held)])
        return
    for match in held:
        print_text(f"{match.entry}.{match.tool} fits and is {why[match.entry]}", "yellow")
    for tool, way in archived.items():
        print_text(f"{tool} fits and is archived: {way}.", "yellow")
    if not matches:
        print_text("No registered tool fits. Forge one: toolwright forge TASK --source URL")
        print_suggestions(task)
    else:
        cells = [
            (f"{m.entry}.{m.tool}", m.group, of[m.entry][m.tool], f"{m.score:.2f}") for m in matches
        ]
        notes = [m.description[:MAX_DESCRIPTION] for m in matches]
        print_noted_table(("tool", "group", "level", "score"), cells, notes)
        print_text(_describe_route(route))
        if route.verdict == "forge":
            print_suggestions(task)


def print_suggestions(task: str) -> None:
    """Print what could be forged for a task from the directory of public APIs, if anything."""
    for line in describe_suggestions(task):
        print_text(line)


def _describe_route(route: Route) -> str:
    sure = f"{route.probability:.0%}"
    if route.verdict == "forge":
        return f"Probably none of these does it ({sure}): toolwright forge TASK --source URL"
    doubts = f", although it names {' and '.join(route.vetoes)}" if route.vetoes else ""
    return f"The first is right with a probability of {sure}{doubts}."


def _render_trust(row: ServerSummary) -> str:
    """The level, and whether tools refuse more than is usual."""
    named = ", ".join(row.refusing[:3])
    return f"{row.standing.level} ({named}: refuses much)" if named else row.standing.level


@click.command("list")
@json_option
@report_errors
def list_command(as_json: bool) -> None:
    """List the registered servers with their trust."""
    with Store.open(load_settings().database_url) as store:
        rows = store.servers.find_summaries()
        whole = as_json and [
            describe_server(e, store.standings.get(e.name)) for e in store.servers.find()
        ]
    if as_json:
        print_json(whole)
    elif not rows:
        print_text("No servers yet. Forge one: toolwright forge TASK --source URL")
    else:
        print_table(
            ("server", "version", "state", "trust", "calls", "ok", "tools", "title"),
            (
                (
                    row.name,
                    row.version,
                    row.state,
                    _render_trust(row),
                    row.standing.total,
                    row.standing.successful,
                    row.tools,
                    row.title,
                )
                for row in rows
            ),
        )


def _encode_match(match: ToolMatch) -> dict[str, Any]:
    told = ("entry", "tool", "score", "description", "title", "entry_description", "group", "state")
    return round_numbers({name: getattr(match, name) for name in told})
