"""`toolwright show`: everything known of one server."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, out, print_json, print_table, reported, say
from registry.records import dossier
from registry.store import Store
from sandbox.report import StageReport
from sandbox.report import to_json as report_json


@click.command("show")
@click.argument("name")
@click.option("--matrix", is_flag=True, help="Show every operation and case of the proofs.")
@json_option
@reported
def command(name: str, matrix: bool, as_json: bool) -> None:
    """Show one server: record, trust, tools, proofs, versions."""
    with Store.open(load_settings().database_url) as store:
        entry = store.entry(name)
        record = dossier(entry, store.standing(name))
        reports = store.reports(name, entry.version)
        operations = store.operation_standings(name)
        versions = [(e.version, e.digest[:12], e.parent) for e in store.versions(name)]
    if as_json:
        record["reports"] = [report_json(report) for report in reports]
        record["operations"] = {tool: vars(standing) for tool, standing in operations.items()}
        record["versions"] = versions
        print_json(record)
        return
    _print(record, reports, versions)
    if matrix:
        _print_matrix(reports)


def _print(record: dict[str, Any], reports: tuple[StageReport, ...], versions: Any) -> None:
    say(f"{record['tool_id']} version {record['version']}: {record['title']}", "bold")
    shown = (
        "state",
        "trust_level",
        "reliability_score",
        "total_invocations",
        "successful_invocations",
        "avg_latency_ms",
        "last_failure_reason",
        "created_by",
        "source",
        "base_url",
    )
    print_table(("", ""), ((key, record[key]) for key in shown))
    say("permissions: " + ", ".join(record["permissions"]))
    out.print()
    print_table(
        ("stage", "verdict", "ms", "checks", "note"),
        ((r.stage, r.verdict, f"{r.elapsed_ms:.0f}", len(r.cases), r.note[:120]) for r in reports),
    )
    out.print()
    print_table(("tool", "access"), ((tool["name"], tool["access"]) for tool in record["tools"]))
    out.print()
    print_table(("version", "digest", "from"), versions)


def _print_matrix(reports: tuple[StageReport, ...]) -> None:
    for report in reports:
        out.print()
        print_table(
            ("stage", "operation", "case", "verdict", "evidence"),
            ((report.stage, c.operation, c.case, c.verdict, c.evidence) for c in report.cases),
        )
