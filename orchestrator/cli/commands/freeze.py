"""`toolwright kill`: freeze everything now."""

from __future__ import annotations

import importlib
import time

import click

from orchestrator.control_process import post
from orchestrator.errors import ControlUnreachable
from orchestrator.freeze import kill
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, json_option, print_json, reported, say
from registry.store import Store


@click.command("kill")
@click.option("--reason", default="", help="Kept with the freeze.")
@json_option
@reported
def command(reason: str, as_json: bool) -> None:
    """Freeze everything now: calls are cut, sandboxes killed, new work refused."""
    settings = load_settings()
    try:
        killed = post(settings, "/kill", {"by": "terminal", "reason": reason})
    except ControlUnreachable:
        # Docker's SDK takes longest to load, and the control plane has it ready.
        engine = importlib.import_module("sandbox.docker_engine")
        with Store.open(settings.database_url) as store:
            done = kill(
                store,
                settings.reserve,
                "terminal",
                reason,
                lambda: engine.kill_instance(settings.instance),
                time.time,
            )
        killed = done.as_json()
    if as_json:
        print_json(killed)
    else:
        say(
            f"Frozen in {killed['milliseconds']} ms: {killed['acknowledged']} of "
            f"{killed['processes']} processes stopped, {killed['sigkilled']} were killed, "
            f"{killed['containers']} sandboxes killed, {killed['left']} left."
        )
    if killed["left"]:
        raise SystemExit(FAILED)
