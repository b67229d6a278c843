"""Options that several commands take, apart from what the commands themselves load."""

from __future__ import annotations

import click

from orchestrator.settings import ENGINES

engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="Where servers run; by default Docker if it answers, else the embedded WASM engine.",
)
