"""Setting up what a home lacks: its PIN, and the engine that its servers run on."""

from __future__ import annotations

import importlib
from contextlib import closing
from pathlib import Path

import click

from orchestrator.cli.enroll import choose_pin
from orchestrator.cli.terminal import err, is_terminal, print_note, read_line
from orchestrator.processes.resident import stop_resident
from orchestrator.settings import ENGINE_FILE, Settings, load_settings
from registry.database.files import write_atomically
from registry.secrets.pin import MIN_LENGTH
from registry.secrets.signing import compute_fingerprint
from registry.store import Store
from sandbox.errors import EngineUnavailable
from sandbox.sanitize import clean_text

PIN_RULES = (
    f"A PIN of at least {MIN_LENGTH} characters approves writes and grants. Nobody can read it "
    "back: without it nothing can be approved. Keep it where no program of yours reads it."
)

TRIES = 3
"""How often a PIN is asked for that keeps to its rules."""


def read_new_pin(pin_file: Path | None) -> str:
    """A PIN to be set: from a file, or chosen at the terminal once its rules were said. One that is
    too short is asked for again there; the last try is given back as it is.
    """
    if pin_file is not None:
        return read_line(pin_file)
    print_note(PIN_RULES)
    asked = f"Choose a PIN of at least {MIN_LENGTH} characters"
    for _ in range(TRIES):
        chosen: str = click.prompt(asked, hide_input=True, confirmation_prompt=True, err=True)
        if len(chosen) >= MIN_LENGTH:
            break
        print_note(f"That has {len(chosen)}, and a PIN has at least {MIN_LENGTH} characters.")
    return chosen


def set_up_first_pin(settings: Settings, pin_file: Path | None, quiet: bool) -> None:
    """Have the first PIN chosen where the home has none: at the terminal, or from the file. Where
    nobody can be asked the command goes on without one, and is told how to give it.

    Raises PinUnusable, OrchestratorError.
    """
    if settings.pin.exists():
        return
    if pin_file is None and not is_terminal(quiet):
        print_note(
            "This home has no PIN, and nobody can be asked for one here: give --pin-file FILE, or "
            "run `toolwright setup --pin-file FILE`. Until then nothing can be allowed."
        )
        return
    print_note(f"Setting up {settings.home}")
    with Store.open(settings.database_url) as store:
        signer = choose_pin(settings, store.audit, read_new_pin(pin_file))
    print_note(
        f"PIN: set; your decisions are signed with the key {compute_fingerprint(signer.public)}"
    )


def keep_engine(settings: Settings, engine: str) -> Settings:
    """Keep in the home where servers run, `auto` nothing; the settings with it. What answers
    commands ends, so that the next one starts with it.
    """
    path = settings.home / ENGINE_FILE
    if engine == "auto":
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, f"{engine}\n".encode())
    stop_resident(settings.home)
    return load_settings(home=settings.home, engine=engine)


def prepare_engine(settings: Settings) -> str:
    """Build Docker's base image; where no Docker answers, the WASM engine's component. What is
    ready, in words.

    Raises EngineUnavailable where Docker alone is wanted, BaseImageBuildFailed,
    ComponentBuildFailed.
    """
    if settings.engine != "wasm":
        try:
            return _build_image()
        except EngineUnavailable as error:
            if settings.engine == "docker":
                raise
            print_note(f"{error}\nServers will run on the embedded WASM engine.")
    # Loading wasmtime and its tools is only for who needs them.
    wasm = importlib.import_module("sandbox.engines.wasm.component")
    component = wasm.build_component(settings.cache, _tell_step)
    return f"WASM component: {component.digest[:12]}"


def _build_image() -> str:
    # The Docker SDK takes 0.2 s to load, which a home that has its engine does without.
    engine = importlib.import_module("sandbox.engines.docker.engine")
    images = importlib.import_module("sandbox.engines.docker.image")
    with closing(engine.connect_engine()) as client:
        image = images.build_base(client, _tell_step)
    return f"base image: {image.reference}"


def _tell_step(line: str) -> None:
    err.print(clean_text(line), style="dim", markup=False)
