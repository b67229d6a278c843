"""`toolwright kill` and `unfreeze`: freeze everything now, and lift the freeze."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from types import ModuleType

import click

from forge.text import render_count
from orchestrator.approvals.freezing import FreezeWatch
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, sign_audit
from orchestrator.cli.terminal import (
    FAILED,
    ask_pin,
    err,
    json_option,
    pin_option,
    print_done,
    print_json,
    print_text,
    report_errors,
)
from orchestrator.errors import ControlUnreachable
from orchestrator.processes.control_client import post_to_control
from orchestrator.processes.kill import freeze_everything, kill_until_gone
from orchestrator.settings import Settings, load_settings
from registry.models import Freeze
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
        with Store.open(settings.database_url) as store:
            done = freeze_everything(
                store.processes,
                settings.reserve,
                "terminal",
                reason,
                lambda: _load_engine().kill_instance(settings.instance),
                SystemClock(),
                settings.silence_seconds,
                _tell_left,
            )
            sign_audit(settings, store.audit)
        killed = done.to_json()
    if killed["left"] and not killed["engine_silent"]:
        gone = kill_until_gone(
            lambda: _load_engine().kill_instance(settings.instance), SystemClock(), tell=_tell_left
        )
        killed |= {"left": gone.left, "engine_silent": gone.silent}
    if as_json:
        print_json(killed)
    else:
        processes = render_count(killed["processes"], "process")
        print_text(
            f"Frozen in {killed['milliseconds']} ms: {killed['acknowledged']} of {processes} "
            f"stopped, {killed['sigkilled']} were killed, "
            f"{render_count(killed['containers'], 'sandbox')} killed, {killed['left']} left."
        )
    if killed["engine_silent"]:
        err.print(
            "The container engine does not answer, so nobody knows what still runs in it. Nothing "
            "can be called while frozen. Restart the engine, then `toolwright kill` again."
        )
    if killed["left"] or killed["engine_silent"]:
        raise SystemExit(FAILED)


def _load_engine() -> ModuleType:
    """Docker's SDK takes longest to load, and the control plane has it ready."""
    return importlib.import_module("sandbox.engines.docker.engine")


def _tell_left(left: int) -> None:
    err.print(f"{left} sandboxes left, killing on" if left else "asking the container engine")


@click.command("unfreeze")
@pin_option
@json_option
@report_errors
def unfreeze_command(pin_file: Path | None, as_json: bool) -> None:
    """Lift the freeze. Asks for the PIN."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        state = _find_lifted(settings, store)
        told = "Nothing is frozen."
        if state is None:
            signer = ask_pin(settings, pin_file)
            state = store.processes.unfreeze(time.time(), "terminal", signer.sign)
            told = "Not frozen any more."
    print_done(as_json, told, **vars(state))


def _find_lifted(settings: Settings, store: Store) -> Freeze | None:
    """The state of a home in which nothing is frozen; None where a lift is wanted, also of a freeze
    that counts although its row says otherwise.
    """
    found = store.processes.get_freeze()
    if found.frozen:
        return None
    if not settings.pin.exists():
        return found if not found.epoch else None
    watch = FreezeWatch(SignedPolicy(store, build_authority(settings)))
    return found if watch.is_lifted(found) else None
