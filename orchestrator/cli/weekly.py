"""What the control plane has done once a week: the base image is built again."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from orchestrator.control_process import spawn
from orchestrator.settings import Settings
from registry.files import write_atomically
from registry.store import Store

WEEK = 7 * 86_400.0
STAMP = "images.json"


def stamp(home: Path, now: float) -> None:
    write_atomically(home / STAMP, json.dumps({"rebuilt": now}).encode())


def is_due(home: Path, now: float) -> bool:
    """Whether the last rebuilding was a week ago; the first look at a home begins the week."""
    try:
        last = float(json.loads((home / STAMP).read_text())["rebuilt"])
    except (OSError, ValueError, KeyError, TypeError):
        stamp(home, now)
        return False
    return now - last >= WEEK


async def weekly(settings: Settings, store: Store, period: float = 3600.0) -> None:
    """Start a rebuilding in a process of its own each week, never while frozen."""
    while True:
        await asyncio.sleep(period)
        frozen = await asyncio.to_thread(store.freeze_state)
        if settings.engine != "wasm" and not frozen.frozen and is_due(settings.home, time.time()):
            spawn(settings, "images", "rebuild")
