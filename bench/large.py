"""The cost of a large answer in `serve`: time, CPU and memory, given whole and by reference.

    python -m bench.large [--megabytes 1,5,10]

An echo server in a container answers a small question with so many megabytes of text, once without
a session and once in one, where the client gets the shape, a sample and a handle. Memory is what
the process holds after the answer, and the most that it ever held.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.call import BUNDLE, Peer
from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store

MEGABYTE = 1_000_000


def read_memory(process: int) -> tuple[float, float]:
    """Megabytes that a process holds, and the most that it held."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    said = dict(line.split(":", 1) for line in lines)
    held, most = (int(said[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return held, most


@dataclass(frozen=True)
class LargeAnswer:
    """What one large answer took of a `serve` of its own: megabytes, and seconds."""

    answer: float
    wall: float
    cpu: float
    before: float
    held: float
    most: float
    refusal: str


def measure(megabytes: int, session: str) -> LargeAnswer:
    with tempfile.TemporaryDirectory() as home:
        # The encoder takes 200 MB by itself, a while after the start.
        own = {"TOOLWRIGHT_HOME": home, "PYTHONPATH": os.getcwd(), "TOOLWRIGHT_SEMANTIC": "off"}
        environment = {**os.environ, **own}
        with Store.open(load_settings(environment).database_url) as store:
            entry = build_entry(BUNDLE, time.time())
            Bundles(Path(home), store.servers).publish_bundle(BUNDLE, entry, (), None)
        peer = Peer([sys.executable, "-m", "orchestrator", "serve", "--no-control"], environment)

        def call(times: int) -> Any:
            asked: dict[str, Any] = {"text": "x" * 100, "times": times}
            given = {"tool": "echo.echo", "arguments": asked}
            given |= {"session": session} if session else {}
            return peer.request("tools/call", {"name": "call_read", "arguments": given})

        call(1)
        before, used, started = read_memory(peer.process_id)[0], peer.cpu(), time.perf_counter()
        result = call(megabytes * MEGABYTE // 100)
        seconds, used = time.perf_counter() - started, peer.cpu() - used
        held, most = read_memory(peer.process_id)
        peer.close()
    text = result["content"][0]["text"]
    said = text[:60].replace("\n", " ") if result.get("isError") else ""
    size = len(json.dumps(result)) / MEGABYTE
    return LargeAnswer(size, seconds, used, before, held, most, said)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", default="1,5,10")
    args = parser.parse_args()
    print(
        f"{'megabytes':>9}{'session':>9}{'answer MB':>12}{'s':>8}{'CPU s':>8}"
        f"{'before':>8}{'after':>8}{'most':>8}"
    )
    for megabytes in map(int, args.megabytes.split(",")):
        for session in ("", "large"):
            told = measure(megabytes, session)
            print(
                f"{megabytes:9}{session or 'none':>9}{told.answer:12.2f}{told.wall:8.2f}"
                f"{told.cpu:8.2f}{told.before:8.0f}{told.held:8.0f}{told.most:8.0f}"
                f"  {told.refusal}",
                flush=True,
            )


if __name__ == "__main__":
    main()
