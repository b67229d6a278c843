"""Asking a person for the PIN in the terminal."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.errors import WrongPin
from orchestrator.pin import open_key
from orchestrator.settings import Settings
from orchestrator.terminal import read_line
from registry.signing import Signer

pin_option = click.option(
    "--pin-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the PIN from a file, or from standard input with `-`, instead of asking for it.",
)


def ask_pin(settings: Settings, pin_file: Path | None) -> Signer:
    """The key of the person who has given the PIN. Raises WrongPin or OrchestratorError."""
    pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
    opened = open_key(settings, pin, time.time())
    if opened.signer is None:
        raise WrongPin(opened.refused)
    return opened.signer
