"""`toolwright show`: everything known of one server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from orchestrator.answers import spent_json
from orchestrator.clearance import Clearance
from orchestrator.consents import CONFIRM, Consents, void_json
from orchestrator.health import health_json, health_lines
from orchestrator.levels import levels
from orchestrator.pin import authority
from orchestrator.settings import Settings, load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, out, print_json, print_table, reported, say
from registry.lineage import Branch, family, to_json
from registry.records import Entry, dossier
from registry.store import Store
from sandbox.acceptance import open_points
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.report import StageReport
from sandbox.report import to_json as report_json


@click.command("show")
@click.argument("name")
@click.option("--matrix", is_flag=True, help="Show every operation and case of the proofs.")
@json_option
@reported
def command(name: str, matrix: bool, as_json: bool) -> None:
    """Show one server: record, trust, tools, proofs, versions."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        entry = store.entry(name)
        record = dossier(entry, store.standing(name))
        counted, said = levels(settings, store, entry), store.overrides(name)
        reports = store.reports(name, entry.version)
        operations = store.operation_standings(name)
        spent = store.spent_on(name)
        versions = [(e.version, e.digest[:12], e.parent) for e in store.versions(name)]
        trees = family(store.lineage(), name)
        consents = Consents(store, Clearance(store, authority(settings)).key)
        given = consents.permissions(name)
        now = time.time()
        bundle = _bundle(settings, store, entry)
        record["health"] = health_json(store, entry, bundle, now)
        void = [v for v in consents.void() if v[0].origin.startswith(f"{name} ")]
    record["models"] = spent_json(spent)
    record["packages"] = [str(package) for package in (bundle.packages if bundle else ())]
    for tool in record["tools"]:
        tool["level"] = counted[tool["name"]]
    record["classified"] = {operation: one.level for operation, one in said.items()}
    record["granted"] = sorted(given)
    record["granted_void"] = [void_json(*each) for each in void]
    if as_json:
        record["reports"] = [report_json(report) for report in reports]
        record["operations"] = {tool: vars(standing) for tool, standing in operations.items()}
        record["versions"] = versions
        record["lineage"] = [to_json(tree, name) for tree in trees]
        print_json(record)
        return
    _print(record, reports)
    for line in health_lines(record["health"], now):
        say(line)
    _print_lineage(trees, name)
    if matrix:
        _print_matrix(reports)


def _bundle(settings: Settings, store: Store, entry: Entry) -> Bundle | None:
    """The server's bundle; None where its files cannot be read."""
    try:
        return Shelf(settings.home, store).bundle(entry)
    except BundleInvalid:
        return None


def _print(record: dict[str, Any], reports: tuple[StageReport, ...]) -> None:
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
    if record["packages"]:
        say("packages: " + ", ".join(record["packages"]))
    models = record["models"]
    if models["questions"]:
        tokens = f"{models['tokens_in']} tokens in, {models['tokens_out']} out"
        say(f"models: {models['questions']} questions, {tokens}, cost {models['cost']:g}")
    say("granted: " + (", ".join(record["granted"]) or "nothing"))
    for void in record["granted_void"]:
        say(f"{void['what']} counts for nothing: {void['reason']}; {CONFIRM}", "yellow")
    out.print()
    print_table(
        ("stage", "verdict", "ms", "checks", "note"),
        ((r.stage, r.verdict, f"{r.elapsed_ms:.0f}", len(r.cases), r.note[:120]) for r in reports),
    )
    for point in open_points(reports):
        say(point, "yellow")
    out.print()
    print_table(
        ("group", "tool", "level"),
        (
            (tool["group"], tool["name"], tool["level"])
            for tool in sorted(record["tools"], key=lambda tool: tool["group"])
        ),
    )


def _print_lineage(trees: tuple[Branch, ...], name: str) -> None:
    """The trees of versions: whose code it is, its server's state, and which are this server's."""
    out.print()
    say("lineage")
    for tree in trees:
        say("\n".join(_drawn(tree, name)))


def _drawn(branch: Branch, name: str) -> Iterator[str]:
    line = branch.line
    told = "not registered here"
    if line is not None:
        state = f", {line.state}" if line.current else ""
        told = f"{line.digest[:12]} by {line.created_by}{state}"
    yield f"{branch.label} {told}{' ◂' if line is not None and line.name == name else ''}"
    for number, child in enumerate(branch.children, 1):
        last = number == len(branch.children)
        first, *rest = _drawn(child, name)
        yield f"{'└─ ' if last else '├─ '}{first}"
        yield from (f"{'   ' if last else '│  '}{text}" for text in rest)


def _print_matrix(reports: tuple[StageReport, ...]) -> None:
    for report in reports:
        out.print()
        print_table(
            ("stage", "operation", "case", "verdict", "evidence"),
            ((report.stage, c.operation, c.case, c.verdict, c.evidence) for c in report.cases),
        )
