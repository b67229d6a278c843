"""`toolwright logs`: show calls and the audit log."""

from __future__ import annotations

import json
import time

import click

from orchestrator.approvals.dates import format_age
from orchestrator.called_tools import CalledTools
from orchestrator.cli.identifiers import StoredId, StoredName
from orchestrator.cli.terminal import (
    json_option,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.settings import load_settings
from orchestrator.views.records import encode_call, render_outcome
from registry.audit.search import AuditTable
from registry.servers.bundles import Bundles
from registry.store import Store


@click.command("logs")
@click.argument("server", required=False, type=StoredName("server"))
@click.option("--audit", is_flag=True, help="Show the audit log instead of the calls.")
@click.option(
    "--call",
    "identity",
    type=StoredId("call"),
    default=None,
    help="Show one call whole, with its exchanges.",
)
@click.option(
    "-n",
    "limit",
    default=30,
    show_default=True,
    type=click.IntRange(1, 10000),
    help="How many calls or rows.",
)
@click.option("--mark-wrong", is_flag=True, help="With --call: count its result as a failure.")
@json_option
@report_errors
def logs_command(
    server: str | None,
    audit: bool,
    identity: str | None,
    limit: int,
    mark_wrong: bool,
    as_json: bool,
) -> None:
    """Show the latest calls, of SERVER or of all; or the audit log."""
    if mark_wrong and not identity:
        raise click.UsageError("--mark-wrong goes with --call ID: `toolwright logs` lists the ids.")
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        called = CalledTools(store.servers, Bundles(settings.home, store.servers))
        if mark_wrong and identity:
            told = _mark_wrong(store, called, identity)
            if not as_json:
                print_text(told)
                return
        if identity:
            print_json(encode_call(store.calls.get(identity), called))
        elif audit:
            _print_audit(store.audit, limit, as_json)
        else:
            _print_calls(store, called, server, limit, as_json)


def _mark_wrong(store: Store, called: CalledTools, identity: str) -> str:
    """Count a call as a failure; what that did, in words."""
    call = store.calls.get(identity)
    named = f"{identity} ({call.entry}.{call.tool})"
    if call.disputed:
        return f"{named} was marked already; nothing was changed."
    if not call.succeeded:
        return f"{named} is no success ({render_outcome(call, called)}), so nothing was marked."
    before = store.standings.get(call.entry)
    after = store.calls.mark_wrong(identity, "terminal", time.time(), "marked at the terminal")
    level = f"stays {after.level}" if after.level == before.level else f"is {after.level} now"
    counted = f"{before.successful} of {before.total} calls right before, {after.successful} now"
    state = store.servers.get(call.entry).state
    kept = f"; it is {state}" if state != "active" else ""
    return (
        f"{named} is marked wrong and counts as a failure. The trust in {call.entry} {level} "
        f"({counted}){kept}."
    )


def _print_audit(audit: AuditTable, limit: int, as_json: bool) -> None:
    rows = audit.find(limit)
    if as_json:
        print_json([{**vars(row), "payload": json.loads(row.payload)} for row in rows])
    else:
        print_table(
            ("", "when", "chain", "what", "about"),
            (
                (row.id, format_age(row.time), row.chain[:8], row.kind, row.payload[:120])
                for row in rows
            ),
        )


def _print_calls(
    store: Store, called: CalledTools, server: str | None, limit: int, as_json: bool
) -> None:
    calls = store.calls.find(server, limit)
    if as_json:
        print_json([encode_call(call, called) for call in calls])
    else:
        print_table(
            ("call", "when", "tool", "outcome", "ms", "task"),
            (
                (
                    call.id,
                    format_age(call.started),
                    f"{call.entry}.{call.tool}",
                    render_outcome(call, called),
                    f"{call.latency_ms:.0f}",
                    call.task[:60],
                )
                for call in calls
            ),
        )
