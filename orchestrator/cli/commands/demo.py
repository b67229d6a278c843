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
from orchestrator.enrolling import choose_pin
from orchestrator.errors import WrongPin
from orchestrator.pin import check_pin
from orchestrator.pinprompt import pin_option
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import FAILED, engine_option, read_line, reported, run, say
from registry.errors import Unknown
from registry.store import Store


@click.command("demo")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="Use this home, with what is registered there, instead of an empty one; asks for its PIN.",
)
@pin_option
@engine_option
@reported
def command(home: Path | None, pin_file: Path | None, engine: str | None) -> None:
    """Watch the whole story run against a small example API: forge, read, write, freeze."""
    with tempfile.TemporaryDirectory(prefix="toolwright-demo-") as scratch:
        place = (home or Path(scratch, "home")).absolute()
        settings = load_settings(home=place, engine=engine)
        own_pin = Path(scratch, "pin")
        own_pin.touch(0o600)
        own_pin.write_text(_pin(settings, pin_file))
        _retire_earlier(settings)
        try:
            held = run(_told(settings, own_pin, Path(scratch)))
        finally:
            _stop_control(settings)
    if not held:
        say("\nNot everything held.", "bold red")
        raise SystemExit(FAILED)
    say("\nEverything held.", "bold green")


def _pin(settings: Settings, pin_file: Path | None) -> str:
    """The home's PIN, or a first one."""
    if settings.pin.exists():
        pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
        refused = check_pin(settings, pin, time.time())
        if refused:
            raise WrongPin(refused)
        return pin
    pin = secrets.token_hex(8)
    with Store.open(settings.database_url) as store:
        choose_pin(settings, store, pin)
    return pin


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
