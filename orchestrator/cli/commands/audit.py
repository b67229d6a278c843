"""`toolwright audit`: what was done, and that nobody changed the account of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from orchestrator.answers import approval_json, invocation_json
from orchestrator.moments import ago, parse_moment
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, json_option, print_json, print_table, reported, say
from registry.errors import Unknown
from registry.notary import Notary
from registry.records import AuditRow
from registry.store import Store
from registry.trail import Moved, Wanted


@click.group("audit")
def command() -> None:
    """Verify, search, show, export and archive the audit log."""


@command.command("verify")
@json_option
@reported
def verify(as_json: bool) -> None:
    """Check every chain, its archives and the signed heads; name the first broken link."""
    settings = load_settings()
    started = time.monotonic()
    with Store.open(settings.database_url) as store:
        broken, rows = Notary(settings.heads).verified(store)
    seconds = time.monotonic() - started
    if as_json:
        print_json(
            {"whole": broken is None, "broken": broken and vars(broken), "rows": rows}
            | {"seconds": round(seconds, 3)}
        )
    elif broken is None:
        say(f"{rows} rows, every chain whole, checked in {seconds:.1f} s.", "green")
    else:
        say(f"chain {broken.chain}, row {broken.sequence}: {broken.reason}", "red")
    if broken is not None:
        raise SystemExit(FAILED)


@command.command("search")
@click.argument("text", default="")
@click.option("--task", default="", help="Calls and requests whose task says this.")
@click.option("--tool", default="", metavar="SERVER[.TOOL]", help="Of this server or tool.")
@click.option("--since", default="", metavar="WHEN", help="2026-11-20, 3d, 2h …")
@click.option("--until", default="", metavar="WHEN", help="2026-11-20, 3d, 2h …")
@click.option("-n", "limit", default=100, show_default=True, type=click.IntRange(1, 100_000))
@json_option
@reported
def search(
    text: str, task: str, tool: str, since: str, until: str, limit: int, as_json: bool
) -> None:
    """Find rows, newest first, in which TEXT stands: in arguments, results and requests too."""
    now = time.time()
    wanted = Wanted(
        text=text,
        task=task,
        tool=tool,
        since=parse_moment(since, now) if since else None,
        until=parse_moment(until, now, whole_day=True) if until else None,
    )
    with Store.open(load_settings().database_url) as store:
        found = store.search_audit(wanted, limit)
    if as_json:
        print_json(
            [
                {**_row_json(one.row), "server": one.server, "tool": one.tool, "task": one.task}
                for one in found
            ]
        )
        return
    print_table(
        ("when", "what", "about", "tool", "task"),
        (
            (
                ago(one.row.time),
                one.row.kind,
                one.row.subject,
                f"{one.server}.{one.tool}" if one.server else "",
                one.task[:60],
            )
            for one in found
        ),
    )


@command.command("show")
@click.argument("identity", metavar="ID")
@reported
def show(identity: str) -> None:
    """Show everything about one call, approval, rule or job, with its exchanges, as JSON."""
    with Store.open(load_settings().database_url) as store:
        rows = [_row_json(row) for row in store.about(identity)]
        told = {**_about(store, identity), "audit": rows}
    if not rows:
        raise Unknown("audit row about", identity)
    print_json(told)


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@reported
def export(file: Path) -> None:
    """Write all rows, oldest first, with their calls whole, to FILE: one JSON object a line."""
    settings = load_settings()
    count = 0
    with Store.open(settings.database_url) as store, file.open("x") as out:
        file.chmod(0o600)
        for row in store.whole_audit(settings.heads):
            out.write(json.dumps(row) + "\n")
            count += 1
    say(f"{count} rows are in {file}.")


@command.command("archive")
@click.option("--before", required=True, metavar="WHEN", help="2026-01-31, 30d …")
@json_option
@reported
def archive(before: str, as_json: bool) -> None:
    """Move older rows and their calls out of the database into compressed files.

    Their digests are in the chain, so `audit verify` goes on checking them; keep the files where
    they are, in `audit/` of the home.
    """
    settings = load_settings()
    now = time.time()
    moment = parse_moment(before, now)
    moved: list[Moved] = []
    with Store.open(settings.database_url) as store:
        Notary(settings.heads).sign_heads(store, now)
        while batch := store.archive_audit(settings.heads, moment, now):
            moved.append(batch)
        Notary(settings.heads).sign_heads(store, now)
    if as_json:
        print_json([vars(batch) for batch in moved])
    elif not moved:
        say("Nothing is older.")
    for batch in moved if not as_json else ():
        say(f"{batch.rows} rows and {batch.calls} calls are in {batch.file}.")


def _row_json(row: AuditRow) -> dict[str, Any]:
    return {**vars(row), "payload": json.loads(row.payload)}


def _about(store: Store, identity: str) -> dict[str, Any]:
    """The call or approval of that id, whole."""
    try:
        return {"call": invocation_json(store.invocation(identity))}
    except Unknown:
        pass
    try:
        return {"approval": approval_json(store.approval(identity))}
    except Unknown:
        return {}
