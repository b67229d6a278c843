"""The example API as a process of its own, and its log as the proof of what reached it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLOW_SECONDS = 120
"""What the slow report takes, the most that the API lets it: no test waits for its end."""
SLOW_PATH = f"/report?seconds={SLOW_SECONDS}"
EXAMPLE = Path(__file__).parents[2] / "examples" / "harbour"


@dataclass(frozen=True)
class HarbourApi:
    url: str
    log: Path

    def entries(self) -> list[dict[str, Any]]:
        """The log's lines, oldest first; see `examples/harbour/api.py` for their shape."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def received(self, method: str) -> list[dict[str, Any]]:
        """The requests with that method that reached the API."""
        return [e for e in self.entries() if e["event"] == "received" and e["method"] == method]


@contextmanager
def harbour_api(directory: Path, *options: str) -> Iterator[HarbourApi]:
    """Start it on a free port with its log in the directory; stopped when the block ends."""
    log = directory / "requests.jsonl"
    command = [sys.executable, str(EXAMPLE / "api.py"), "--port", "0", "--log", str(log), *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["port"]
            yield HarbourApi(f"http://127.0.0.1:{port}", log)
        finally:
            process.terminate()


def slow_reports(harbour: HarbourApi) -> int:
    return len([e for e in harbour.received("GET") if e["path"] == SLOW_PATH])


def cut(harbour: HarbourApi) -> bool:
    """Whether every slow report that was asked for has ended as `cut`."""
    entries = harbour.entries()
    slow = {e["id"] for e in entries if e.get("path") == SLOW_PATH}
    return slow <= {e["id"] for e in entries if e["event"] == "cut"}
