"""`toolwright setup`: prepare this machine."""

from __future__ import annotations

import importlib
import sys
import time
from contextlib import closing
from pathlib import Path

import click

from orchestrator.clients import CLIENTS
from orchestrator.enlisting import enlist
from orchestrator.enrolling import another_key, another_pin, choose_pin, pin_key
from orchestrator.errors import WrongPin
from orchestrator.pin import open_key
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import engine_option, read_line, reported, say
from registry.signing import fingerprint
from registry.store import Store
from sandbox.docker_engine import connect
from sandbox.errors import EngineUnavailable
from sandbox.image import build_base


@click.command("setup")
@click.option(
    "--client", type=click.Choice(tuple(CLIENTS)), help="Write this client's configuration."
)
@click.option("--print", "only_print", is_flag=True, help="With --client: print, do not write.")
@click.option("--remove", is_flag=True, help="With --client: take Toolwright out again.")
@click.option("--engine-only", is_flag=True, help="Only make the engine ready, if it is not yet.")
@click.option("--change-pin", is_flag=True, help="Choose another PIN; asks for the present one.")
@click.option("--new-key", is_flag=True, help="With the PIN, replace the key of your decisions.")
@click.option("--key", "only_key", is_flag=True, help="With the PIN, make a missing key.")
@click.option(
    "--present-pin-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="With --change-pin: read the present PIN from a file.",
)
@pin_option
@engine_option
@reported
def command(
    client: str | None,
    only_print: bool,
    remove: bool,
    engine_only: bool,
    change_pin: bool,
    new_key: bool,
    only_key: bool,
    present_pin_file: Path | None,
    pin_file: Path | None,
    engine: str | None,
) -> None:
    """Prepare this machine: database, PIN, engine; or, with --client, the client."""
    settings = load_settings(engine=engine)
    if client:
        enlist(settings.home, client, only_print=only_print, remove=remove)
        return
    if new_key or only_key:
        _key(settings, pin_file, new_key)
        return
    if not engine_only:
        with Store.open(settings.database_url) as store:
            say(f"home: {settings.home}")
            _pin(settings, store, pin_file, present_pin_file if change_pin else None, change_pin)
    _make_engine_ready(settings)


def _pin(
    settings: Settings, store: Store, pin_file: Path | None, present: Path | None, change: bool
) -> None:
    """Choose the PIN, once; another one only for who knows the present one."""
    if settings.pin.exists() and not change:
        say("PIN: chosen earlier")
        return
    signer = ask_pin(settings, present) if settings.pin.exists() else None
    if pin_file is None and not sys.stdin.isatty():
        say("PIN: none yet. Run `toolwright setup` at a terminal, or give --pin-file.", "yellow")
        return
    pin = (
        read_line(pin_file)
        if pin_file
        else click.prompt("Choose a PIN", hide_input=True, confirmation_prompt=True)
    )
    if signer is None:
        signer = choose_pin(settings, store, pin)
    else:
        another_pin(settings, store, signer, pin)
    say(f"PIN: set; your decisions are signed with the key {fingerprint(signer.public)}")


def _key(settings: Settings, pin_file: Path | None, replace: bool) -> None:
    """Make the key of a home that is older than keys, or replace it."""
    pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
    with Store.open(settings.database_url) as store:
        opened = open_key(settings, pin, time.time())
        if opened.signer is None:
            raise WrongPin(opened.refused)
        signer = another_key(settings, store, opened.signer, pin) if replace else opened.signer
        pin_key(settings, store, signer)
    say(f"your decisions are signed with the key {fingerprint(signer.public)}")


def _make_engine_ready(settings: Settings) -> None:
    """Build the base image for Docker; where none answers, the component of the WASM engine."""
    if settings.engine != "wasm":
        try:
            _build_image()
            return
        except EngineUnavailable as error:
            if settings.engine == "docker":
                raise
            say(f"{error}\nServers will run on the embedded WASM engine.", "yellow")
    # Loading wasmtime and its tools is only for who needs them.
    wasm = importlib.import_module("sandbox.wasm_component")
    component = wasm.build_component(settings.cache, lambda line: say(line, "dim"))
    say(f"WASM component: {component.digest[:12]}")


def _build_image() -> None:
    with closing(connect()) as client:
        image = build_base(client, lambda line: say(line, "dim"))
    say(f"base image: {image.reference}")
