"""`toolwright demo`: the whole story, in a home of its own."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click

from orchestrator.control_process import answering
from orchestrator.demo import SERVER, Story, example_api
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import FAILED, engine_option, reported, run, say
from registry.errors import Unknown
from registry.pin import set_pin
from registry.store import Store


@click.command("demo")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="Use this home, with what is registered there, instead of an empty one. Its PIN is reset.",
)
@engine_option
@reported
def command(home: Path | None, engine: str | None) -> None:
    """Watch the whole story run against a small example API: forge, read, write, freeze."""
    with tempfile.TemporaryDirectory(prefix="toolwright-demo-") as scratch:
        place = (home or Path(scratch, "home")).absolute()
        settings = load_settings(home=place, engine=engine)
        pin_file = Path(scratch, "pin")
        pin_file.touch(0o600)
        pin_file.write_text(secrets.token_hex(8))
        set_pin(settings.pin, pin_file.read_text())
        _retire_earlier(settings)
        try:
            held = run(_told(settings, pin_file, Path(scratch)))
        finally:
            _stop_control(settings)
    if not held:
        say("\nNot everything held.", "bold red")
        raise SystemExit(FAILED)
    say("\nEverything held.", "bold green")


async def _told(settings: Settings, pin_file: Path, scratch: Path) -> bool:
    async with example_api(scratch) as harbour:
        return await Story(settings, pin_file, harbour).tell()


def _retire_earlier(settings: Settings) -> None:
    """Take out of use what an earlier demo forged in this home: its API is gone."""
    with Store.open(settings.database_url) as store, suppress(Unknown):
        store.archive(SERVER, time.time(), "demo", "an earlier demo's")


def _stop_control(settings: Settings) -> None:
    address = answering(settings)
    if address:
        with suppress(ProcessLookupError):
            os.kill(address.pid, signal.SIGTERM)
