"""Where `toolwright` begins: the resident process answers, or the command does its work itself."""

from __future__ import annotations

import importlib
import os
import sys

from orchestrator.cli.resident.client import ask_resident
from orchestrator.cli.resident.protocol import is_answerable, is_switched_off
from orchestrator.processes.garbage import collect_rarely, skip_last_collection

COMPLETING = "_TOOLWRIGHT_COMPLETE"
"""The variable by which a shell's completion script asks."""


def main() -> None:
    """The entry point of the distribution."""
    words = sys.argv[1:]
    resident = (
        is_answerable(words) and not is_switched_off(os.environ) and COMPLETING not in os.environ
    )
    if resident:
        status = ask_resident(words, os.environ, os.getuid())
        if status is not None:
            sys.exit(status)
    collect_rarely()
    # Loaded by name, and only now: it takes longer than an answer of the resident process.
    command = importlib.import_module("orchestrator.cli.main").toolwright
    try:
        command(prog_name="toolwright", args=words)
    finally:
        if resident:
            importlib.import_module("orchestrator.cli.resident.starting").start_for_next()
        skip_last_collection()
