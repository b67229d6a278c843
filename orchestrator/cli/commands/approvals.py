"""`toolwright approve`: decide one waiting request."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.text import Text

from orchestrator.approvals.dates import format_age
from orchestrator.approvals.rules import RuleRequest
from orchestrator.approvals.sending import is_on_its_way, render_unsent
from orchestrator.approvals.text import MAX_CLAIM, escape_line
from orchestrator.cli.deciding import DecisionRequest, decide_at_terminal
from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.terminal import (
    err,
    json_option,
    pin_option,
    print_json,
    print_note,
    print_noted_table,
    print_text,
    report_errors,
)
from orchestrator.settings import load_settings
from orchestrator.views.records import encode_shown_approval
from registry.models import Approval, Freeze
from registry.store import Store


@click.command("approve")
@click.argument("approval", type=StoredId("approval"))
@click.option("--reason", default="", help="Kept with the decision.")
@click.option("--wait", default=30.0, show_default=True, help="Seconds to wait for the outcome.")
@click.option("--always", "from_now_on", is_flag=True, help="Also allow like calls from now on.")
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --always: an argument that has to be so, such as zone=example.org or "
    "body.name=*.example.org; any others may differ. Without it all have to be as they are.",
)
@click.option(
    "--until",
    default="",
    metavar="WHEN",
    help="With --always: 2026-11-27, friday, 3d or 12h; a week by default.",
)
@click.option("--max", "most", type=click.IntRange(1), help="With --always: at most so many calls.")
@click.option("--any-version", is_flag=True, help="With --always: for later versions as well.")
@click.option(
    "--digest",
    default="",
    help="Only what `approvals --json` showed with this digest, for scripts.",
)
@pin_option
@json_option
@report_errors
def approve_command(
    approval: str,
    reason: str,
    wait: float,
    from_now_on: bool,
    where: tuple[str, ...],
    until: str,
    most: int | None,
    any_version: bool,
    digest: str,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Approve the waiting request APPROVAL. Asks for the PIN."""
    always = RuleRequest(where, until, most, any_version)
    if not from_now_on and always != RuleRequest():
        raise click.UsageError("--where, --until, --max and --any-version go with --always")
    asked = DecisionRequest(approval, True, reason, always if from_now_on else None, digest)
    decide_at_terminal(asked, pin_file, wait, as_json)


@click.command("reject")
@click.argument("approval", type=StoredId("approval"))
@click.option("--reason", default="", help="Kept with the decision.")
@pin_option
@json_option
@report_errors
def reject_command(approval: str, reason: str, pin_file: Path | None, as_json: bool) -> None:
    """Reject the waiting request APPROVAL. Asks for the PIN."""
    decide_at_terminal(DecisionRequest(approval, False, reason), pin_file, 0.0, as_json)


def _note(approval: Approval) -> str:
    """The request that waits, and what its caller says of it."""
    why = f" ({approval.reason[:MAX_CLAIM]})" if approval.reason else ""
    return escape_line(f"{approval.wire.method} {approval.wire.url}{why}")


@click.command("approvals")
@click.option("--all", "every", is_flag=True, help="Also those that were decided.")
@json_option
@report_errors
def approvals_command(every: bool, as_json: bool) -> None:
    """List the requests that wait for a person, and what was approved and is not sent yet."""
    with Store.open(load_settings().database_url) as store:
        unsent = store.approvals.find("approved")
        rows = store.approvals.find() if every else (*store.approvals.find("pending"), *unsent)
        damaged = store.approvals.find_damaged()
        freeze, now = store.processes.get_freeze(), time.time()
    for problem in damaged:
        err.print(Text(escape_line(str(problem)), style="red"))
    if as_json:
        print_json([encode_shown_approval(row) for row in rows])
    elif not rows and not damaged:
        print_text("Nothing waits.")
    else:
        cells = [
            (
                row.id,
                _name_state(row, freeze, now),
                format_age(row.created),
                escape_line(f"{row.entry}.{row.tool}"),
            )
            for row in rows
        ]
        print_noted_table(("approval", "state", "asked", "tool"), cells, list(map(_note, rows)))
    late = [row for row in unsent if not is_on_its_way(row, freeze, now)]
    if late and not as_json:
        print_note(render_unsent(len(late), late[0].id, freeze.frozen))


def _name_state(approval: Approval, freeze: Freeze, now: float) -> str:
    if approval.state != "approved":
        return approval.state
    return "is being sent" if is_on_its_way(approval, freeze, now) else "not sent"
