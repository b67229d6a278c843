"""`toolwright classify`: say what an operation does, whatever its description says."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.allowing import classify, present_level
from orchestrator.calls import split_name
from orchestrator.errors import UnknownTool
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, reported, say
from registry.overrides import LEVELS, Level
from registry.store import Store


@click.command("classify")
@click.argument("tool", metavar="SERVER.TOOL")
@click.argument("level", type=click.Choice(LEVELS))
@pin_option
@json_option
@reported
def command(tool: str, level: Level, pin_file: Path | None, as_json: bool) -> None:
    """Say that SERVER.TOOL reads, writes or is destructive.

    What makes it less strict asks for the PIN. It holds for later versions of the same operation;
    less strictness only while its requests stay the same.
    """
    server, _, name = tool.partition(".")
    if split_name(tool) is None:
        raise UnknownTool(tool)
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        bundle = Shelf(settings.home, store).bundle(store.entry(server))
        try:
            before = present_level(store, bundle, name, None)
        except KeyError as error:
            raise UnknownTool(tool) from error
        now = time.time()
        if not classify(store, bundle, name, level, None, now):
            classify(store, bundle, name, level, ask_pin(settings, pin_file), now)
    if as_json:
        print_json({"tool": tool, "before": before, "level": level})
    else:
        say(f"{tool}: {before} → {level}")
