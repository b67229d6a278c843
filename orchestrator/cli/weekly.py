"""Weekly rebuild of the base image, started by the control plane."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from orchestrator.processes.control_client import spawn_command
from orchestrator.settings import Settings
from registry.database.files import write_atomically
from registry.processes import ProcessTable

WEEK = 7 * 86_400.0
STAMP = "images.json"


def write_stamp(home: Path, now: float) -> None:
    write_atomically(home / STAMP, json.dumps({"rebuilt": now}).encode())


def is_rebuild_due(home: Path, now: float) -> bool:
    """Whether the last rebuild was a week ago; the first look at a home begins the week."""
    try:
        last = float(json.loads((home / STAMP).read_text())["rebuilt"])
    except (OSError, ValueError, KeyError, TypeError):
        write_stamp(home, now)
        return False
    return now - last >= WEEK


async def rebuild_weekly(
    settings: Settings, processes: ProcessTable, period: float = 3600.0
) -> None:
    """Start a rebuild in a process of its own each week, never while frozen."""
    while True:
        await asyncio.sleep(period)
        frozen = await asyncio.to_thread(processes.get_freeze)
        if (
            settings.engine != "wasm"
            and not frozen.frozen
            and is_rebuild_due(settings.home, time.time())
        ):
            spawn_command(settings, "images", "rebuild")
