"""`toolwright audit`: verify, search, show, export and archive the audit log."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.dates import format_age, parse_moment
from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.called_tools import CalledTools
from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.terminal import (
    FAILED,
    json_option,
    print_done,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings, load_settings
from orchestrator.views.records import encode_approval, encode_call
from registry.audit.heads import HeadSigner
from registry.audit.search import ArchiveResult, AuditQuery
from registry.errors import RowNotFound
from registry.models import AuditRow
from registry.servers.bundles import Bundles
from registry.store import Store

_ID = StoredId("call", "approval", "rule", "job", others=True)


@click.group("audit")
def audit_command() -> None:
    """Verify, search, show, export and archive the audit log."""


@audit_command.command("verify")
@json_option
@report_errors
def verify_audit(as_json: bool) -> None:
    """Check every chain, its archives and the signed heads. Name the first broken link, and each
    row of the registry that differs from the audit or from what a person signed.
    """
    settings = load_settings()
    started = time.monotonic()
    with Store.open(settings.database_url) as store:
        broken, rows = HeadSigner(settings.heads).verify_and_count(store.audit)
        differences = find_differences(SignedPolicy(store, build_authority(settings)))
    seconds = time.monotonic() - started
    if as_json:
        print_json(
            {"whole": broken is None, "broken": broken and vars(broken), "rows": rows}
            | {"differences": differences, "seconds": round(seconds, 3)}
        )
    elif broken is None:
        print_text(f"{rows} rows, every chain whole, checked in {seconds:.1f} s.", "green")
    else:
        print_text(f"chain {broken.chain}, row {broken.sequence}: {broken.reason}", "red")
    for difference in differences if not as_json else ():
        print_text(difference, "red")
    if broken is not None or differences:
        raise SystemExit(FAILED)


@audit_command.command("search")
@click.argument("text", default="")
@click.option("--task", default="", help="Calls and requests whose task says this.")
@click.option("--tool", default="", metavar="SERVER[.TOOL]", help="Of this server or tool.")
@click.option("--since", default="", metavar="WHEN", help="2026-11-20, 3d, 2h …")
@click.option("--until", default="", metavar="WHEN", help="2026-11-20, 3d, 2h …")
@click.option(
    "-n",
    "limit",
    default=100,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="How many rows.",
)
@json_option
@report_errors
def search_audit(
    text: str, task: str, tool: str, since: str, until: str, limit: int, as_json: bool
) -> None:
    """Find rows, newest first, in which TEXT stands: in arguments, results and requests too."""
    now = time.time()
    wanted = AuditQuery(
        text=text,
        task=task,
        tool=tool,
        since=parse_moment(since, now) if since else None,
        until=parse_moment(until, now, whole_day=True) if until else None,
    )
    with Store.open(load_settings().database_url) as store:
        found = store.audit.search(wanted, limit)
    if as_json:
        print_json(
            [
                {**_encode_row(one.row), "server": one.server, "tool": one.tool, "task": one.task}
                for one in found
            ]
        )
        return
    if not found:
        print_text(
            "Nothing found. `toolwright audit search` without words shows the newest rows; "
            "--since, --tool and --task choose others."
        )
        return
    print_table(
        ("when", "what", "about", "tool", "task"),
        (
            (
                format_age(one.row.time),
                one.row.kind,
                one.row.subject,
                f"{one.server}.{one.tool}" if one.server else "",
                one.task[:60],
            )
            for one in found
        ),
    )


@audit_command.command("show")
@click.argument("identity", metavar="ID")
@click.option("--json", is_flag=True, expose_value=False, help="It prints JSON anyway.")
@report_errors
def show_record(identity: str) -> None:
    """Show everything about one call, approval, rule or job, with its exchanges, as JSON. The
    beginning of an ID is enough.
    """
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        found = store.audit.find_rows_about(identity)
        if not found:
            identity = _ID.convert(identity, None, click.get_current_context())
            found = store.audit.find_rows_about(identity)
        rows = [_encode_row(row) for row in found]
        told = {**_load_record(settings, store, identity), "audit": rows}
    if not rows:
        raise RowNotFound("audit row about", identity)
    print_json(told)


@audit_command.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@report_errors
def export_audit(file: Path, as_json: bool) -> None:
    """Write all rows, oldest first, with their calls whole, to FILE: one JSON object a line."""
    settings = load_settings()
    if file.exists():
        raise OrchestratorError(f"{file} is there already. Name another file; nothing was written.")
    count = 0
    with Store.open(settings.database_url) as store, file.open("x") as out:
        file.chmod(0o600)
        for row in store.audit.read_all_rows(settings.heads):
            out.write(json.dumps(row) + "\n")
            count += 1
    print_done(as_json, f"{count} rows are in {file}.", rows=count, file=str(file))


@audit_command.command("archive")
@click.option("--before", required=True, metavar="WHEN", help="2026-01-31, 30d …")
@json_option
@report_errors
def archive_audit(before: str, as_json: bool) -> None:
    """Move older rows and their calls out of the database into compressed files.

    Their digests are in the chain, so `audit verify` goes on checking them; keep the files where
    they are, in `audit/` of the home.
    """
    settings = load_settings()
    now = time.time()
    moment = parse_moment(before, now)
    moved: list[ArchiveResult] = []
    with Store.open(settings.database_url) as store:
        HeadSigner(settings.heads).sign_heads(store.audit, now)
        while batch := store.audit.archive_rows(settings.heads, moment, now):
            moved.append(batch)
        HeadSigner(settings.heads).sign_heads(store.audit, now)
    if as_json:
        print_json([vars(batch) for batch in moved])
    elif not moved:
        print_text("Nothing is older.")
    for batch in moved if not as_json else ():
        print_text(f"{batch.rows} rows and {batch.calls} calls are in {batch.file}.")


def _encode_row(row: AuditRow) -> dict[str, Any]:
    return {**vars(row), "payload": json.loads(row.payload)}


def _load_record(settings: Settings, store: Store, identity: str) -> dict[str, Any]:
    """The call or approval of that id, as JSON; {} where there is none."""
    try:
        called = CalledTools(store.servers, Bundles(settings.home, store.servers))
        return {"call": encode_call(store.calls.get(identity), called)}
    except RowNotFound:
        pass
    try:
        return {"approval": encode_approval(store.approvals.get(identity))}
    except RowNotFound:
        return {}
