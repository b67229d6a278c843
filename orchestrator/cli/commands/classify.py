"""`toolwright classify`: set the level of an operation to read, write or destructive."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.approvals.rules import classify_operation, find_present_level
from orchestrator.approvals.signing_key import sign_audit
from orchestrator.calls import split_tool_name
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_json,
    print_text,
    report_errors,
)
from orchestrator.errors import UnknownTool
from orchestrator.settings import load_settings
from registry.servers.bundles import Bundles
from registry.servers.classifications import LEVELS, Level
from registry.store import Store


@click.command("classify")
@click.argument("tool", metavar="SERVER.TOOL", type=StoredName("tool", new=True))
@click.argument("level", type=click.Choice(LEVELS))
@pin_option
@json_option
@report_errors
def classify_command(tool: str, level: Level, pin_file: Path | None, as_json: bool) -> None:
    """Say that SERVER.TOOL reads, writes or is destructive.

    It holds for later versions too. Making it less strict asks for the PIN, and holds only while
    the tool's requests stay the same.
    """
    server, _, name = tool.partition(".")
    if split_tool_name(tool) is None:
        raise UnknownTool(tool)
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        bundle = Bundles(settings.home, store.servers).load_bundle(store.servers.get(server))
        try:
            before = find_present_level(store.classifications, bundle, name, None)
        except KeyError as error:
            raise UnknownTool(tool) from error
        now = time.time()
        if not classify_operation(store.classifications, bundle, name, level, None, now):
            classify_operation(
                store.classifications, bundle, name, level, ask_pin(settings, pin_file), now
            )
        sign_audit(settings, store.audit)
    if as_json:
        print_json({"tool": tool, "before": before, "level": level})
    else:
        print_text(f"{tool}: {before} → {level}")
