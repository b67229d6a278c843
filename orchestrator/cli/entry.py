"""Where `toolwright` begins: the resident process answers, or the command does its work itself."""

from __future__ import annotations

import importlib
import io
import os
import sys

from orchestrator.cli.resident.client import ask_resident
from orchestrator.cli.resident.protocol import is_answerable, is_switched_off

COMPLETING = "_TOOLWRIGHT_COMPLETE"
"""The variable by which a shell's completion script asks."""


def main() -> None:
    """The entry point of the distribution."""
    words = sys.argv[1:]
    _show_every_letter()
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


def _show_every_letter() -> None:
    """Have a letter that the terminal's encoding does not know shown by its number (`\\u25c2`), as
    Python does on standard error: it is no reason to fail, and `?` may be any letter.
    """
    # A stream is None where it was closed when this process was started.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
