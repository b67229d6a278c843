"""Where `toolwright` begins: the resident process answers, or the command does its work itself."""

from __future__ import annotations

import importlib
import os
import sys

from orchestrator.cli.resident.client import ask_resident
from orchestrator.cli.resident.protocol import is_answerable, is_switched_off

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
    # Loaded by name, and only now: it takes longer than an answer of the resident process.
    garbage = importlib.import_module("orchestrator.processes.garbage")
    garbage.collect_rarely()
    command = importlib.import_module("orchestrator.cli.main").toolwright
    try:
        command(prog_name="toolwright", args=words)
    finally:
        if resident:
            importlib.import_module("orchestrator.cli.resident.starting").start_for_next()
        garbage.skip_last_collection()
