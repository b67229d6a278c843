"""`toolwright reject`: decide one waiting request."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.deciding import Asked, decide_at_terminal
from orchestrator.pinprompt import pin_option
from orchestrator.terminal import json_option, reported


@click.command("reject")
@click.argument("approval")
@click.option("--reason", default="", help="Kept with the decision.")
@pin_option
@json_option
@reported
def command(approval: str, reason: str, pin_file: Path | None, as_json: bool) -> None:
    """Reject the waiting request APPROVAL. Asks for the PIN."""
    decide_at_terminal(Asked(approval, False, reason), pin_file, 0.0, as_json)
