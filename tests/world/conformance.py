"""The official conformance suite, and what it said."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.world.node import install, node

PATIENCE = ("--timeout", "120000")
"""Milliseconds for a scenario: its own 30 s say more of a busy machine than of a server."""
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z\Z")


def conform(
    url: str, directory: Path, *options: str, seconds: float = 480.0
) -> dict[str, set[str]]:
    """What failed by scenario: the ids of its checks, none where all passed.

    `options` choose what is run: `--requirements 2026-07-28`, or `--scenario ping`.
    """
    suite = install() / ".bin/conformance"
    done = subprocess.run(
        [node(), str(suite), "server", "--url", url, "-o", str(directory), *PATIENCE, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    reports = {STAMP.sub("", path.parent.name): path for path in directory.glob("*/checks.json")}
    assert reports, done.stdout + done.stderr
    return {name.removeprefix("server-"): _failed(path) for name, path in reports.items()}


def _failed(report: Path) -> set[str]:
    checks = json.loads(report.read_text())
    return {check["id"] for check in checks if check["status"] == "FAILURE"}
