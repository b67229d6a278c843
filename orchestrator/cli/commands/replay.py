"""`toolwright replay`: run again what was recorded, and compare."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from orchestrator.app import open_app
from orchestrator.replay import Replayed, Replays
from orchestrator.settings import EngineName, Settings, load_settings
from orchestrator.terminal import (
    FAILED,
    json_option,
    print_json,
    reported,
    run,
    say,
)

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
@reported
def command(identity: str, engine: EngineName | None, as_json: bool) -> None:
    """Run the call, task run or forge job ID again from what was recorded, offline, and compare.

    ID may be the beginning of one. Leaves with 0 if all is the same, 1 at a difference, 4 if
    something could not be run again. Nothing runs while Toolwright is frozen.
    """
    replays = run(_replayed(load_settings(), engine, identity))
    verdicts = {replay.verdict for replay in replays}
    verdict = next(v for v in ("different", "not replayed", "same") if v in verdicts)
    if as_json:
        print_json({"verdict": verdict, "replays": [_to_json(replay) for replay in replays]})
    else:
        for replay in replays:
            _print(replay)
    if verdict != "same":
        raise SystemExit(FAILED if verdict == "different" else NOT_REPLAYED)


async def _replayed(
    settings: Settings, engine: EngineName | None, identity: str
) -> tuple[Replayed, ...]:
    async with open_app(replace(settings, spares=0), "replay") as app:
        async with Replays(app, engine) as replays:
            return await replays.replay(identity)


def _to_json(replay: Replayed) -> dict[str, Any]:
    return {**asdict(replay), "verdict": replay.verdict}


def _print(replay: Replayed) -> None:
    ran = f", {replay.engine}" if replay.engine else ""
    what = f"{replay.subject} version {replay.version} ({replay.id}{ran})"
    say(f"{replay.verdict}: {what}", STYLES[replay.verdict])
    if replay.reason:
        say(f"  {replay.reason}")
    if replay.difference:
        say(f"  at {replay.difference.where or '/'}")
        say(f"  expected {replay.difference.expected}")
        say(f"  got      {replay.difference.got}")
    for note in replay.notes:
        say(f"  {note}")
