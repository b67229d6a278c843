"""The app for a command that may register something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.app import App, open_app
from orchestrator.cli.progress.working import open_shown
from orchestrator.frontends.instructions import find_instructions
from orchestrator.settings import Settings


@asynccontextmanager
async def open_registering(
    settings: Settings, kind: str, quiet: bool = False
) -> AsyncIterator[App]:
    """The app, with a line while it is opened and closed. What clients are told of the servers is
    kept at the end: else the next `serve` answers them only once it is loaded.
    """
    async with open_shown(open_app(settings, kind), quiet) as app:
        yield app
        find_instructions(settings, app.store, app.consents)
