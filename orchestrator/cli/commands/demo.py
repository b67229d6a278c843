"""`toolwright demo`: run the demo against an example API, by default in a temporary home."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click

from orchestrator.approvals.signing_key import check_pin
from orchestrator.cli.demo import SERVER, DemoStory, run_example_api
from orchestrator.cli.enroll import choose_pin
from orchestrator.cli.terminal import (
    FAILED,
    engine_option,
    pin_option,
    print_text,
    read_pin,
    report_errors,
    run_coroutine,
)
from orchestrator.errors import WrongPin
from orchestrator.processes.control_client import find_control
from orchestrator.settings import Settings, load_settings
from registry.errors import RowNotFound
from registry.store import Store


@click.command("demo")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="Use this home, with what is registered there, instead of an empty one; asks for its PIN.",
)
@pin_option
@engine_option
@report_errors
def demo_command(home: Path | None, pin_file: Path | None, engine: str | None) -> None:
    """Forge, read, write and freeze against a small example API, and show each step."""
    with tempfile.TemporaryDirectory(prefix="toolwright-demo-") as scratch:
        place = (home or Path(scratch, "home")).absolute()
        settings = load_settings(home=place, engine=engine)
        own_pin = Path(scratch, "pin")
        own_pin.touch(0o600)
        own_pin.write_text(_obtain_pin(settings, pin_file))
        _archive_earlier(settings)
        try:
            held = run_coroutine(_run_story(settings, own_pin, Path(scratch)))
        finally:
            _stop_control(settings)
    if not held:
        print_text("\nNot everything held.", "bold red")
        raise SystemExit(FAILED)
    print_text("\nEverything held.", "bold green")


def _obtain_pin(settings: Settings, pin_file: Path | None) -> str:
    """The home's PIN, asked for and checked; a random one where the home has none."""
    if settings.pin.exists():
        pin = read_pin(pin_file)
        refused = check_pin(settings, pin, time.time())
        if refused:
            raise WrongPin(refused)
        return pin
    pin = secrets.token_hex(8)
    with Store.open(settings.database_url) as store:
        choose_pin(settings, store.audit, pin)
    return pin


async def _run_story(settings: Settings, pin_file: Path, scratch: Path) -> bool:
    async with run_example_api(scratch) as harbour:
        return await DemoStory(settings, pin_file, harbour).run_story()


def _archive_earlier(settings: Settings) -> None:
    """Archive the server that an earlier demo forged in this home: its API is gone."""
    with Store.open(settings.database_url) as store, suppress(RowNotFound):
        store.servers.archive(SERVER, time.time(), "demo", "an earlier demo's")


def _stop_control(settings: Settings) -> None:
    address = find_control(settings)
    if address:
        with suppress(ProcessLookupError):
            os.kill(address.pid, signal.SIGTERM)
