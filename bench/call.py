"""The cost that the gateway adds to a call: CPU and time of `call_read` against the session itself.

    python -m bench.call [--calls 2000] [--peer 'COMMAND ...']

Both ways lead to the same echo server in the same kind of container. `--peer` is a command that
serves some other gateway to a comparable echo tool over stdio (its first tool is called), measured
in the same run. CPU is that of the gateway's process (user and system), not of the container.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.engines.docker.engine import ContainerLabels, DockerRunner, connect_engine
from sandbox.engines.docker.image import find_base_image
from sandbox.wire.policy import Policy

SERVER = """from toolwright import tool


@tool
def echo(text):
    return {"text": text}
"""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
BUNDLE = Bundle(
    name="echo",
    version=1,
    title="Echo",
    base_url="http://127.0.0.1:9",
    source_code=SERVER,
    tools=(ToolDefinition("echo", "Echo a text.", TEXT, TEXT, "read"),),
    provenance=Provenance("bench", "0" * 64),
)
ARGUMENTS = {"text": "x" * 100}


@dataclass(frozen=True)
class Figures:
    name: str
    median_ms: float
    p99_ms: float
    cpu_us: float


class Peer:
    """An MCP server on stdio, spoken to in raw JSON-RPC."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._ids = itertools.count(1)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.request("initialize", {**hello, "clientInfo": {"name": "bench", "version": "0"}})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        identity = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == identity:
                return message["result"]
        raise SystemExit(f"{self._process.args!r} ended")

    def cpu(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def figures(name: str, times: list[float], cpu: float) -> Figures:
    ordered = sorted(times)
    p99 = ordered[int(len(ordered) * 0.99)]
    return Figures(name, statistics.median(times) * 1e3, p99 * 1e3, cpu / len(times) * 1e6)


def measure_peer(name: str, peer: Peer, call: Callable[[], Any], calls: int) -> Figures:
    for _ in range(50):
        call()
    before, times = peer.cpu(), []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return figures(name, times, peer.cpu() - before)


async def measure_direct(calls: int) -> Figures:
    client = connect_engine()
    image = find_base_image(client)
    assert image is not None, "run `toolwright setup` first"
    async with DockerRunner(client, image.reference, ContainerLabels("bench", "bench")) as runner:
        broker = Broker(Policy(()), Cassette(()))
        async with runner.open(BUNDLE, broker) as session:
            for _ in range(50):
                await session.call("echo", ARGUMENTS)
            before, times = time.process_time(), []
            for _ in range(calls):
                started = time.perf_counter()
                await session.call("echo", ARGUMENTS)
                times.append(time.perf_counter() - started)
            cpu = time.process_time() - before
    client.close()
    return figures("session directly", times, cpu)


def measure_gateway(calls: int) -> Figures:
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "TOOLWRIGHT_HOME": scratch, "PYTHONPATH": os.getcwd()}
        settings = load_settings(environment)
        with Store.open(settings.database_url) as store:
            entry = build_entry(BUNDLE, time.time())
            Bundles(Path(scratch), store.servers).publish_bundle(BUNDLE, entry, (), None)
        command = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
        peer = Peer(command, environment)
        call = {"name": "call_read", "arguments": {"tool": "echo.echo", "arguments": ARGUMENTS}}
        measured = measure_peer("call_read", peer, lambda: peer.request("tools/call", call), calls)
        peer.close()
    return measured


def measure_other(command: str, calls: int) -> Figures:
    peer = Peer(shlex.split(command), dict(os.environ))
    tool = peer.request("tools/list", {})["tools"][0]["name"]
    call = {"name": tool, "arguments": {"n": 100}}
    measured = measure_peer("peer", peer, lambda: peer.request("tools/call", call), calls)
    peer.close()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--peer", help="command of another gateway")
    args = parser.parse_args()
    rows = [asyncio.run(measure_direct(args.calls)), measure_gateway(args.calls)]
    if args.peer:
        rows.append(measure_other(args.peer, args.calls))
    print(f"{'':20}{'median ms':>11}{'p99 ms':>9}{'CPU us':>9}{'added CPU us':>14}")
    for row in rows:
        added = row.cpu_us - rows[0].cpu_us
        print(f"{row.name:20}{row.median_ms:11.2f}{row.p99_ms:9.2f}{row.cpu_us:9.0f}{added:14.0f}")


if __name__ == "__main__":
    main()
