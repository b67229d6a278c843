"""`toolwright kill` and `unfreeze`: freeze everything now, and lift the freeze."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import click

from orchestrator.approvals.signing_key import sign_audit
from orchestrator.cli.terminal import (
    FAILED,
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_text,
    report_errors,
)
from orchestrator.errors import ControlUnreachable
from orchestrator.processes.control_client import post_to_control
from orchestrator.processes.kill import freeze_everything
from orchestrator.settings import load_settings
from registry.store import Store
from sandbox.clock import SystemClock


@click.command("kill")
@click.option("--reason", default="", help="Kept with the freeze.")
@json_option
@report_errors
def kill_command(reason: str, as_json: bool) -> None:
    """Freeze everything now: calls are cut, sandboxes killed, new work refused."""
    settings = load_settings()
    try:
        killed = post_to_control(settings, "/kill", {"by": "terminal", "reason": reason})
    except ControlUnreachable:
        # Docker's SDK takes longest to load, and the control plane has it ready.
        engine = importlib.import_module("sandbox.engines.docker.engine")
        with Store.open(settings.database_url) as store:
            done = freeze_everything(
                store.processes,
                settings.reserve,
                "terminal",
                reason,
                lambda: engine.kill_instance(settings.instance),
                SystemClock(),
                settings.silence_seconds,
            )
            sign_audit(settings, store.audit)
        killed = done.to_json()
    if as_json:
        print_json(killed)
    else:
        print_text(
            f"Frozen in {killed['milliseconds']} ms: {killed['acknowledged']} of "
            f"{killed['processes']} processes stopped, {killed['sigkilled']} were killed, "
            f"{killed['containers']} sandboxes killed, {killed['left']} left."
        )
    if killed["left"]:
        raise SystemExit(FAILED)


@click.command("unfreeze")
@pin_option
@json_option
@report_errors
def unfreeze_command(pin_file: Path | None, as_json: bool) -> None:
    """Lift the freeze. Asks for the PIN."""
    settings = load_settings()
    signer = ask_pin(settings, pin_file)
    with Store.open(settings.database_url) as store:
        state = store.processes.unfreeze(time.time(), "terminal", signer.sign)
    if as_json:
        print_json(vars(state))
    else:
        print_text("Not frozen any more.")
