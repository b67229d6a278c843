"""The official conformance suite, and what it said."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.world.node import install, node

PATIENCE = ("--timeout", "120000")
"""Milliseconds for a scenario: its own 30 s say more of a busy machine than of a server."""
OUT_OF_TIME = re.compile(r"\b(aborted|timed out)\b")
"""How it words that a limit within a scenario (5 or 10 s, not to be set) passed."""
ATTEMPTS = 4
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z\Z")


@dataclass(frozen=True)
class _Report:
    failed: Mapping[str, set[str]]
    is_out_of_time: bool


def conform(
    url: str, directory: Path, *options: str, seconds: float = 480.0
) -> Mapping[str, set[str]]:
    """What failed by scenario: the ids of its checks, none where all passed.

    `options` choose what is run: `--requirements 2026-07-28`, or `--scenario ping`. What failed
    for want of time is asked again: that says something of the machine only.
    """
    for attempt in range(ATTEMPTS):
        report = _run(url, directory / str(attempt), options, seconds)
        if not report.is_out_of_time:
            break
    return report.failed


def _run(url: str, directory: Path, options: Sequence[str], seconds: float) -> _Report:
    suite = install() / ".bin/conformance"
    done = subprocess.run(
        [node(), str(suite), "server", "--url", url, "-o", str(directory), *PATIENCE, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    checks = {
        STAMP.sub("", path.parent.name).removeprefix("server-"): json.loads(path.read_text())
        for path in directory.glob("*/checks.json")
    }
    assert checks, done.stdout + done.stderr
    failing = {
        name: [check for check in of_it if check["status"] == "FAILURE"]
        for name, of_it in checks.items()
    }
    words = [check.get("errorMessage") or "" for some in failing.values() for check in some]
    return _Report(
        {name: {check["id"] for check in some} for name, some in failing.items()},
        any(map(OUT_OF_TIME.search, words)),
    )
