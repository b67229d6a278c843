"""`toolwright replay`: run a recorded call, task or forge again offline and compare."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from orchestrator.app import open_app
from orchestrator.cli.terminal import (
    FAILED,
    json_option,
    print_json,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.replay.replay import ReplayResult
from orchestrator.settings import EngineName, Settings, load_settings

NOT_REPLAYED = 4
STYLES = {"same": "green", "different": "red", "not replayed": "yellow"}


@click.command("replay")
@click.argument("identity", metavar="ID")
@click.option(
    "--engine",
    type=click.Choice(("docker", "wasm")),
    help="Run it there, and not on the engine that it ran on first.",
)
@json_option
@report_errors
def replay_command(identity: str, engine: EngineName | None, as_json: bool) -> None:
    """Run the call, task run or forge job ID again from what was recorded, offline, and compare.

    The beginning of an ID is enough. The exit code is 0 if all is the same, 1 at a difference, 4 if
    something could not be run again. Nothing runs while Toolwright is frozen.
    """
    replays = run_coroutine(_run_replay(load_settings(), engine, identity))
    verdicts = {replay.verdict for replay in replays}
    verdict = next(v for v in ("different", "not replayed", "same") if v in verdicts)
    if as_json:
        print_json({"verdict": verdict, "replays": [_encode_replay(replay) for replay in replays]})
    else:
        for replay in replays:
            _print_replay(replay)
    if verdict != "same":
        raise SystemExit(FAILED if verdict == "different" else NOT_REPLAYED)


async def _run_replay(
    settings: Settings, engine: EngineName | None, identity: str
) -> tuple[ReplayResult, ...]:
    async with open_app(replace(settings, spares=0), "replay") as app:
        async with app.replays(engine) as replays:
            return await replays.replay_recorded(identity)


def _encode_replay(replay: ReplayResult) -> dict[str, Any]:
    return {**asdict(replay), "verdict": replay.verdict}


def _print_replay(replay: ReplayResult) -> None:
    ran = f", {replay.engine}" if replay.engine else ""
    what = f"{replay.subject} version {replay.version} ({replay.id}{ran})"
    print_text(f"{replay.verdict}: {what}", STYLES[replay.verdict])
    if replay.reason:
        print_text(f"  {replay.reason}")
    if replay.difference:
        print_text(f"  at {replay.difference.where or '/'}")
        print_text(f"  expected {replay.difference.expected}")
        print_text(f"  got      {replay.difference.got}")
    for note in replay.notes:
        print_text(f"  {note}")
