"""`toolwright approve`: decide one waiting request."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.allowing import Always
from orchestrator.deciding import Asked, decide_at_terminal
from orchestrator.pinprompt import pin_option
from orchestrator.terminal import json_option, reported


@click.command("approve")
@click.argument("approval")
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
@pin_option
@json_option
@reported
def command(
    approval: str,
    reason: str,
    wait: float,
    from_now_on: bool,
    where: tuple[str, ...],
    until: str,
    most: int | None,
    any_version: bool,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Approve the waiting request APPROVAL. Asks for the PIN."""
    always = Always(where, until, most, any_version)
    if not from_now_on and always != Always():
        raise click.UsageError("--where, --until, --max and --any-version go with --always")
    asked = Asked(approval, True, reason, always if from_now_on else None)
    decide_at_terminal(asked, pin_file, wait, as_json)
