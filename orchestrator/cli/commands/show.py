"""`toolwright show`: show one server with its trust, tools, proofs and versions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import click

from orchestrator.approvals.granting import find_held_permissions
from orchestrator.approvals.grants import CONFIRM, encode_void_grant, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.called_tools import CalledTools
from orchestrator.calls import split_tool_name
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    json_option,
    out,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.cli.tools.tool_report import encode_tool, print_tool
from orchestrator.errors import UnknownTool
from orchestrator.server_report import (
    LOOKED_AT,
    describe_edit,
    encode_health,
    find_levels,
    render_health,
)
from orchestrator.settings import Settings, load_settings
from orchestrator.views.records import encode_spent, round_numbers
from registry.models import Entry, describe_server
from registry.servers.bundles import Bundles
from registry.servers.lineage import LineageNode, build_family_trees, to_json
from registry.servers.quarantine import explain_quarantine
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.bundle.report import to_json as report_json
from sandbox.errors import BundleInvalid
from sandbox.stages.acceptance import list_open_points


class ShowCommand(click.Command):
    """A command that says where versions are shown to who asks it for one."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        name = next((each for each in args if not each.startswith("-")), "SERVER")
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            if not get_close_matches(error.option_name, ("--version", "--versions"), 1, 0.7):
                raise
            raise click.UsageError(
                f"There is no option {error.option_name}: the current version is shown. "
                f"`toolwright versions {name}` lists all, `toolwright diff {name} 1 2` compares."
            ) from error


@click.command("show", cls=ShowCommand)
@click.argument("name", type=StoredName("server", "tool"))
@click.option("--matrix", is_flag=True, help="Show every operation and case of the proofs.")
@json_option
@report_errors
def show_command(name: str, matrix: bool, as_json: bool) -> None:
    """Show one server: record, trust, tools, proofs, versions.

    With `server.tool` one tool: its arguments with types and examples, a call that it takes, its
    permissions, its trust and the way to more, its last calls.
    """
    settings = load_settings()
    parts = split_tool_name(name)
    if parts:
        _show_tool(settings, *parts, as_json)
        return
    with Store.open(settings.database_url) as store:
        entry = store.servers.get(name)
        record = describe_server(entry, store.standings.get(name))
        counted, said = find_levels(settings, store, entry), store.classifications.find(name)
        reports = store.servers.get_reports(name, entry.version)
        operations = store.standings.find_operations(name)
        spent = store.model_usage.sum_for_server(name)
        versions = [(e.version, e.digest[:12], e.parent) for e in store.servers.find_versions(name)]
        trees = build_family_trees(store.servers.find_lineage(), name)
        consents = open_grants(SignedPolicy(store, build_authority(settings)))
        given = find_held_permissions(consents, entry)
        now = time.time()
        bundle = _load_bundle(settings, store, entry)
        record["quarantine"] = explain_quarantine(store.servers, name)
        record["edited"] = describe_edit(settings.home, store.servers, entry)
        record["health"] = encode_health(store, entry, bundle, now)
        void = [v for v in consents.find_void() if v[0].origin.startswith(f"{name} ")]
    record["models"] = encode_spent(spent)
    record["packages"] = [str(package) for package in (bundle.packages if bundle else ())]
    for tool in record["tools"]:
        tool["level"] = counted[tool["name"]]
    record["classified"] = {operation: one.level for operation, one in said.items()}
    record["granted"] = list(given)
    record["granted_void"] = [encode_void_grant(*each) for each in void]
    if as_json:
        record["reports"] = [report_json(report) for report in reports]
        record["operations"] = {
            tool: round_numbers(vars(standing)) for tool, standing in operations.items()
        }
        record["versions"] = versions
        record["lineage"] = [to_json(tree, name) for tree in trees]
        print_json(record)
        return
    _print_record(record, reports)
    if record["edited"]:
        print_text(record["edited"], "yellow")
    if record["quarantine"]:
        print_text(record["quarantine"], "red")
    for tool, standing in operations.items():
        if standing.refusing is not None:
            told = f"{tool} refused or failed to answer {standing.refusing:.0%} of its last calls"
            print_text(f"{told}: its writes go on asking", "yellow")
    for line in render_health(record["health"], now):
        print_text(line)
    _print_lineage(trees, name)
    if matrix:
        _print_matrix(reports)


def _show_tool(settings: Settings, server: str, name: str, as_json: bool) -> None:
    with Store.open(settings.database_url) as store:
        entry = store.servers.get(server)
        consents = open_grants(SignedPolicy(store, build_authority(settings)))
        try:
            tool = entry.get_tool(name)
        except KeyError:
            raise UnknownTool(f"{server}.{name}") from None
        told = encode_tool(
            entry,
            tool,
            find_levels(settings, store, entry)[name],
            (store.standings.get(server), store.standings.get_operation(server, name)),
            find_held_permissions(consents, entry),
            [call for call in store.calls.find(server, LOOKED_AT) if call.tool == name],
            CalledTools(store.servers, Bundles(settings.home, store.servers)),
        )
    if as_json:
        print_json(told)
    else:
        print_tool(told, time.time())


def _load_bundle(settings: Settings, store: Store, entry: Entry) -> Bundle | None:
    """The server's bundle; None where its files cannot be read."""
    try:
        return Bundles(settings.home, store.servers).load_bundle(entry)
    except BundleInvalid:
        return None


def _print_record(record: dict[str, Any], reports: tuple[StageReport, ...]) -> None:
    print_text(f"{record['tool_id']} version {record['version']}: {record['title']}", "bold")
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
    print_table(("", ""), ((key, _render_value(record[key])) for key in shown))
    print_text("permissions: " + ", ".join(record["permissions"]))
    if record["packages"]:
        print_text("packages: " + ", ".join(record["packages"]))
    models = record["models"]
    if models["questions"]:
        tokens = f"{models['tokens_in']} tokens in, {models['tokens_out']} out"
        print_text(f"models: {models['questions']} questions, {tokens}, cost {models['cost']:g}")
    print_text("granted: " + (", ".join(record["granted"]) or "nothing"))
    for void in record["granted_void"]:
        print_text(f"{void['what']} counts for nothing: {void['reason']}; {CONFIRM}", "yellow")
    out.print()
    print_table(
        ("stage", "verdict", "ms", "checks", "note"),
        ((r.stage, r.verdict, f"{r.elapsed_ms:.0f}", len(r.cases), r.note[:120]) for r in reports),
    )
    for point in list_open_points(reports):
        print_text(point, "yellow")
    out.print()
    print_table(
        ("group", "tool", "level"),
        (
            (tool["group"], tool["name"], tool["level"])
            for tool in sorted(record["tools"], key=lambda tool: tool["group"])
        ),
    )


def _render_value(value: Any) -> str:
    """A value of a record for reading: `-` where there is none yet, numbers without a tail."""
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    return "-" if value is None or value == "" else str(value)


def _print_lineage(trees: tuple[LineageNode, ...], name: str) -> None:
    """Print the trees of versions: digest, author and state; `◂` marks this server's."""
    out.print()
    print_text("lineage")
    for tree in trees:
        print_text("\n".join(_draw_branch(tree, name)))


def _draw_branch(branch: LineageNode, name: str) -> Iterator[str]:
    line = branch.line
    told = "not registered here"
    if line is not None:
        state = f", {line.state}" if line.current else ""
        told = f"{line.digest[:12]} by {line.created_by}{state}"
    yield f"{branch.label} {told}{' ◂' if line is not None and line.name == name else ''}"
    for number, child in enumerate(branch.children, 1):
        last = number == len(branch.children)
        first, *rest = _draw_branch(child, name)
        yield f"{'└─ ' if last else '├─ '}{first}"
        yield from (f"{'   ' if last else '│  '}{text}" for text in rest)


def _print_matrix(reports: tuple[StageReport, ...]) -> None:
    for report in reports:
        out.print()
        print_table(
            ("stage", "operation", "case", "verdict", "evidence"),
            ((report.stage, c.operation, c.case, c.verdict, c.evidence) for c in report.cases),
        )
