"""`toolwright doctor`: is everything consistent?"""

from __future__ import annotations

import click

from orchestrator.checkup import check_all
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, json_option, print_json, print_table, reported
from registry.store import Store


@click.command("doctor")
@json_option
@reported
def command(as_json: bool) -> None:
    """Check files against rows, jobs, the audit log, sandboxes and the engine."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        checks = check_all(settings, store)
    if as_json:
        print_json([vars(check) for check in checks])
    else:
        print_table(
            ("", "check", "found", "do"),
            ((check.verdict, check.name, check.found, check.hint) for check in checks),
        )
    if any(check.verdict == "failed" for check in checks):
        raise SystemExit(FAILED)
