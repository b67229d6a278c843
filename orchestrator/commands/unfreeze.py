"""`toolwright unfreeze`: lift the freeze."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, reported, say
from registry.store import Store


@click.command("unfreeze")
@pin_option
@json_option
@reported
def command(pin_file: Path | None, as_json: bool) -> None:
    """Lift the freeze. Asks for the PIN."""
    settings = load_settings()
    ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        state = store.unfreeze(time.time(), "terminal")
    if as_json:
        print_json(vars(state))
    else:
        say("Not frozen any more.")
