"""The demo in a crowd: forge every specification of a directory first, then tell the demo's story.

    python -m bench.crowded_demo DIRECTORY [--home HOME] [--seconds 120]

DIRECTORY holds folders with an `index.json` that names each folder's main document. Every one goes
through the real forge, in one process, two at a time; its servers are replaced by an address where
nobody answers. A document that takes longer than `--seconds` is given up. Ends with the demo's
own status.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from forge.errors import ForgeError
from orchestrator.app import App, open_app
from orchestrator.errors import OrchestratorError
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import load_settings
from registry.errors import RegistryError
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.docker.image import build_base
from sandbox.errors import SandboxError
from tests.granted import allow

NOWHERE = "127.0.0.1:9"
AT_ONCE = 2
FAILURES = (ForgeError, OrchestratorError, RegistryError, SandboxError, OSError, TimeoutError)


@dataclass(frozen=True)
class Result:
    """What became of one document; `reason` is empty where it is registered."""

    name: str
    seconds: float
    tools: int = 0
    left_out: int = 0
    reason: str = ""

    def line(self) -> str:
        told = self.reason or f"{self.tools} tools, {self.left_out} problems"
        return f"{self.name:12}{self.seconds:8.1f} s  {told[:160]}"


def build_base_image() -> None:
    with closing(connect_engine()) as client:
        build_base(client, print)


def documents(directory: Path) -> list[Path]:
    """The main document of every folder, by name."""
    indexes = sorted(directory.glob("*/index.json"))
    return [index.parent / json.loads(index.read_text())["main"] for index in indexes]


async def forged(app: App, document: Path, name: str, seconds: float) -> Result:
    order = ForgeOrder(task=name, source=str(document), base_url=f"http://{NOWHERE}")
    started = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            done = await app.forge.forge_server(order, lambda step: None)
    except FAILURES as error:
        reason = str(error) or type(error).__name__
        return Result(name, time.perf_counter() - started, reason=reason)
    took = time.perf_counter() - started
    return Result(name, took, len(done.bundle.tools), len(done.left_out))


async def crowd(home: Path, directory: Path, seconds: float) -> None:
    """Forge them all into the home, telling of each."""
    room = asyncio.Semaphore(AT_ONCE)
    async with open_app(load_settings(home=home), "forge") as app:
        allow(app.settings, app.store, f"http://{NOWHERE}")

        async def one(document: Path) -> Result:
            async with room:
                name = document.relative_to(directory).parts[0]
                result = await forged(app, document, name, seconds)
            print(result.line(), flush=True)
            return result

        started = time.perf_counter()
        results = await asyncio.gather(*map(one, documents(directory)))
        registered = [result for result in results if not result.reason]
        print(
            f"{len(registered)} of {len(results)} documents in "
            f"{time.perf_counter() - started:.0f} s: {len(app.store.servers.find())} servers, "
            f"{sum(result.tools for result in registered)} tools"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--seconds", type=float, default=120)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        build_base_image()
        home = (args.home or Path(scratch)).absolute()
        asyncio.run(crowd(home, args.directory.absolute(), args.seconds))
        command = [sys.executable, "-m", "orchestrator", "demo", "--home", str(home)]
        raise SystemExit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
