"""`toolwright images`: the base image of the servers' containers."""

from __future__ import annotations

from dataclasses import asdict

import click

from orchestrator.rebuilding import rebuild
from orchestrator.reproving import Reproved
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, json_option, print_json, reported, run, say

STYLES = {"failed": "red", "skipped": "yellow"}


@click.group("images")
def command() -> None:
    """The base image that servers run on."""


@command.command("rebuild")
@json_option
@reported
def rebuild_command(as_json: bool) -> None:
    """Build the base image again and prove every server on it before it moves there. One that fails
    stays on the base it was proved on. The control plane does this each week.
    """

    def tell(found: Reproved) -> None:
        if not as_json:
            reason = f": {found.reason}" if found.reason else ""
            say(f"{found.server}: {found.verdict}{reason}", STYLES.get(found.verdict, "green"))

    def progress(line: str) -> None:
        if not as_json:
            say(line, "dim")

    built = run(rebuild(load_settings(), progress, tell))
    if as_json:
        print_json(asdict(built))
    elif not built.changed:
        say(f"The base image came out as it was: {built.image[:19]}.")
    if any(each.verdict == "failed" for each in built.servers):
        raise SystemExit(FAILED)
