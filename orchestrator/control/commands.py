"""Commands of ours that the control plane runs in a process of their own and waits for.

What calls a tool or runs a recording must not live in the process that kills: it registers itself
and ends with a freeze like any other.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any

from orchestrator.settings import Settings
from sandbox.modulepath import RUN_MODULE, join_module_path

MAX_OUTPUT = 4 << 20
"""Bytes of a command's output that are read."""
MAX_PROBLEM = 1_000


def run_command(
    settings: Settings, *arguments: str, seconds: float, told: str = ""
) -> dict[str, Any]:
    """The JSON object that a command prints, a list as its `items`, or one with an `error`. `told`
    is written to its standard input, which no other user of the machine can read, unlike arguments.
    """
    command = [*RUN_MODULE, "orchestrator", *arguments]
    own = {"TOOLWRIGHT_HOME": str(settings.home), "PYTHONPATH": join_module_path()}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as problems:
        try:
            subprocess.run(
                command,
                env={**os.environ, **own},
                input=told.encode(),
                stdout=output,
                stderr=problems,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took longer than {seconds:g} s and was ended"}
        size = output.seek(0, os.SEEK_END)
        if size > MAX_OUTPUT:
            return {"error": f"its answer has {size} bytes, which is too much to be shown here"}
        output.seek(0)
        told_problem = _read_end(problems.seek(0, os.SEEK_END), problems)
        return _parse_output(output.read(), told_problem)


def _read_end(size: int, file: Any) -> str:
    file.seek(max(0, size - MAX_PROBLEM))
    return str(file.read().decode("utf-8", "replace")).strip()


def _parse_output(output: bytes, problem: str) -> dict[str, Any]:
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return {"error": problem or "it ended without an answer"}
    return said if isinstance(said, dict) else {"items": said}
