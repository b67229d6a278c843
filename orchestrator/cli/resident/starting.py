"""Starting the resident process, behind a command that had to do without it."""

from __future__ import annotations

from contextlib import suppress

from orchestrator.errors import OrchestratorError
from orchestrator.processes.resident import start_resident
from orchestrator.settings import load_settings


def start_for_next() -> None:
    """Start it for the commands to come. Where that cannot be done, they go on without it."""
    with suppress(OSError, OrchestratorError):
        start_resident(load_settings())
