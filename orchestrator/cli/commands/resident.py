"""`toolwright resident`: answer commands of this home, with everything loaded once."""

from __future__ import annotations

import importlib

import click

from orchestrator.processes.resident import hold_residence
from orchestrator.settings import load_settings

IDLE_SECONDS = 300.0


@click.command("resident", hidden=True)
@click.option(
    "--idle",
    default=IDLE_SECONDS,
    show_default=True,
    help="Seconds without a command to end after.",
)
def resident_command(idle: float) -> None:
    """Answer `list`, `find`, `show`, `call` and others that only look, so that they need not load
    anything. The first of them starts this; TOOLWRIGHT_RESIDENT=off does without it.
    """
    settings = load_settings()
    with hold_residence(settings.home) as held:
        if held:
            # Loaded by name, and only by the one of several that stays.
            server = importlib.import_module("orchestrator.cli.resident.server")
            server.serve_commands(settings, idle)
