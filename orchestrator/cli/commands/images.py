"""`toolwright images`: rebuild the base image of the servers' containers."""

from __future__ import annotations

from dataclasses import asdict

import click

from orchestrator.cli.rebuild import rebuild_and_reprove
from orchestrator.cli.terminal import (
    FAILED,
    json_option,
    print_json,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.healing.reprove import ReproofResult
from orchestrator.settings import load_settings

STYLES = {"failed": "red", "skipped": "yellow"}


@click.group("images")
def images_command() -> None:
    """The base image that servers run on."""


@images_command.command("rebuild")
@json_option
@report_errors
def rebuild_command(as_json: bool) -> None:
    """Build the base image again and prove every server on it before it moves there. One that fails
    stays on the base it was proved on. The control plane does this each week.
    """

    def tell(found: ReproofResult) -> None:
        if not as_json:
            reason = f": {found.reason}" if found.reason else ""
            print_text(
                f"{found.server}: {found.verdict}{reason}", STYLES.get(found.verdict, "green")
            )

    def progress(line: str) -> None:
        if not as_json:
            print_text(line, "dim")

    built = run_coroutine(rebuild_and_reprove(load_settings(), progress, tell))
    if as_json:
        print_json(asdict(built))
    elif not built.changed:
        print_text(f"The base image came out as it was: {built.image[:19]}.")
    if any(each.verdict == "failed" for each in built.servers):
        raise SystemExit(FAILED)
