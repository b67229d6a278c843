"""The cost that the gateway adds to a call: CPU and time of `call_read` against the session itself.

    python -m venv FASTMCP && FASTMCP/bin/pip install 'fastmcp>=4'
    python -m bench.call [--calls 2000] [--concurrent 1,8,64] [--bytes 100] [--rows 0]
        [--fastmcp FASTMCP/bin/python] [--peer 'COMMAND ...']

Both ways lead to the same echo server in the same kind of container. `--concurrent` is how many
calls wait for their answers at a time, one figure after the other in the same processes. In the
same run are measured, with `--fastmcp`, FastMCP's proxy before such an echo server in a process of
its own, and with `--peer` whatever a command serves over stdio (its first tool is called). CPU is
that of the gateway's process (user and system), not of the container or the server behind it;
`beside` is that of the process that stores its calls while there are many
(`registry/calls/record_process.py`). What is measured begins when that one is there, and all that
a gateway loads ahead.
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
from sandbox.session.interface import Session
from sandbox.wire.policy import Policy

ECHO = """\
    row = {"price": 1.5, "tags": ["a", "b"], "note": text[:40]}
    listed = [{"id": number, "name": f"row {number}", **row} for number in range(rows)]
    return {"text": text * times, **({"rows": listed} if rows else {})}
"""
SERVER = f"""from toolwright import tool


@tool
def echo(text, times=1, rows=0):
{ECHO}"""
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TAKES = {"type": "object", "properties": {"text": TEXT, "times": NUMBER, "rows": NUMBER}}
ROW = {"id": NUMBER, "name": TEXT, "price": {"type": "number"}, "note": TEXT}
TAGS = {"type": "array", "items": TEXT}
ROWS = {"type": "array", "items": {"type": "object", "properties": {**ROW, "tags": TAGS}}}
GIVES = {"type": "object", "properties": {"text": TEXT, "rows": ROWS}, "required": ["text"]}
BUNDLE = Bundle(
    name="echo",
    version=1,
    title="Echo",
    base_url="http://127.0.0.1:9",
    source_code=SERVER,
    tools=(ToolDefinition("echo", "Echo a text.", TAKES, GIVES, "read"),),
    # Not by the compiler, whose description would be looked at meanwhile.
    provenance=Provenance("bench", "0" * 64, author="client"),
)
RECORDER = "registry.calls.record_process"
WARM_CALLS = 300
LOOK_SECONDS, IDLE_LOOKS, IDLE_SHARE = 1.0, 5, 0.03
"""A process is at rest once it took no more than this share of a CPU in so many looks at it."""
FASTMCP_ECHO = f"""from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool
def echo(text: str, times: int = 1, rows: int = 0) -> dict:
{ECHO}

server.run(show_banner=False)
"""
FASTMCP_PROXY = """import sys
from fastmcp.server.server import create_proxy

echo = {"command": sys.executable, "args": ["-c", sys.argv[1]]}
create_proxy({"mcpServers": {"echo": echo}}).run(show_banner=False)
"""


@dataclass(frozen=True)
class Load:
    """So many calls, of which so many are under way at a time, one figure after the other."""

    calls: int
    concurrent: tuple[int, ...]
    arguments: dict[str, Any]

    @property
    def warm_calls(self) -> int:
        """How many calls come before it."""
        return min(WARM_CALLS, self.calls)


@dataclass(frozen=True)
class Figures:
    name: str
    concurrent: int
    median_ms: float
    p99_ms: float
    cpu_us: float
    beside_us: float = 0.0


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

    @property
    def process_id(self) -> int:
        return self._process.pid

    def request(self, method: str, params: dict[str, Any]) -> Any:
        asked = self._ask(method, params)
        answered, result, _ = self._receive()
        assert asked == answered
        return result

    def measure(self, params: dict[str, Any], calls: int, concurrent: int) -> list[float]:
        """The seconds until the line of each answer has come, of so many `tools/call`, of which
        some are always under way.
        """
        begun: dict[int, float] = {}
        times = []
        for number in range(calls + concurrent):
            if number >= concurrent:
                answered, result, came = self._receive()
                assert not result.get("isError"), result
                times.append(came - begun.pop(answered))
            if number < calls:
                started = time.perf_counter()
                begun[self._ask("tools/call", params)] = started
        return times

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        identity = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        return identity

    def _receive(self) -> tuple[int, Any, float]:
        """The id and result of the next answer, and when its line had come."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            came = time.perf_counter()
            message = json.loads(line)
            if "method" not in message:
                return message["id"], message["result"], came
        raise SystemExit(f"{self._process.args!r} ended")

    def cpu(self) -> float:
        return read_cpu(psutil.Process(self._process.pid))

    def cpu_beside(self) -> float:
        """The CPU of its processes that store calls."""
        children = psutil.Process(self._process.pid).children()
        return sum(read_cpu(child) for child in children if RECORDER in child.cmdline())

    def wait_idle(self) -> None:
        """Return once it does nothing of its own any more, as `serve` does that loads ahead what
        the first task takes.
        """
        looks, used = 0, self.cpu()
        while looks < IDLE_LOOKS:
            time.sleep(LOOK_SECONDS)
            before, used = used, self.cpu()
            looks = looks + 1 if used - before <= IDLE_SHARE * LOOK_SECONDS else 0

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def read_cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def figures(
    name: str, concurrent: int, times: list[float], cpu: float, beside: float = 0.0
) -> Figures:
    ordered, per_call = sorted(times), 1e6 / len(times)
    median, p99 = statistics.median(times) * 1e3, ordered[int(len(ordered) * 0.99)] * 1e3
    return Figures(name, concurrent, median, p99, cpu * per_call, beside * per_call)


def measure_peer(name: str, peer: Peer, call: dict[str, Any], load: Load) -> list[Figures]:
    peer.measure(call, load.warm_calls, 1)
    peer.wait_idle()
    found = []
    for concurrent in load.concurrent:
        before, beside = peer.cpu(), peer.cpu_beside()
        times = peer.measure(call, load.calls, concurrent)
        used = peer.cpu() - before, peer.cpu_beside() - beside
        found.append(figures(name, concurrent, times, *used))
    return found


async def measure_session(session: Session, load: Load, calls: int, concurrent: int) -> list[float]:
    times = []

    async def call_in_turn(turns: int) -> None:
        for _ in range(turns):
            started = time.perf_counter()
            await session.call("echo", load.arguments)
            times.append(time.perf_counter() - started)

    await asyncio.gather(*(call_in_turn(calls // concurrent) for _ in range(concurrent)))
    return times


async def measure_direct(load: Load) -> list[Figures]:
    client = connect_engine()
    image = find_base_image(client)
    assert image is not None, "run `toolwright setup` first"
    async with DockerRunner(client, image.reference, ContainerLabels("bench", "bench")) as runner:
        broker = Broker(Policy(()), Cassette(()))
        async with runner.open(BUNDLE, broker) as session:
            await measure_session(session, load, load.warm_calls, 1)
            found = []
            for concurrent in load.concurrent:
                before = time.process_time()
                times = await measure_session(session, load, load.calls, concurrent)
                cpu = time.process_time() - before
                found.append(figures("session directly", concurrent, times, cpu))
    client.close()
    return found


def measure_gateway(load: Load) -> list[Figures]:
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "TOOLWRIGHT_HOME": scratch, "PYTHONPATH": os.getcwd()}
        settings = load_settings(environment)
        with Store.open(settings.database_url) as store:
            entry = build_entry(BUNDLE, time.time())
            Bundles(Path(scratch), store.servers).publish_bundle(BUNDLE, entry, (), None)
        command = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
        peer = Peer(command, environment)
        call = {
            "name": "call_read",
            "arguments": {"tool": "echo.echo", "arguments": load.arguments},
        }
        measured = measure_peer("call_read", peer, call, load)
        peer.close()
    return measured


def measure_other(
    name: str, command: list[str], arguments: dict[str, Any], load: Load
) -> list[Figures]:
    peer = Peer(command, dict(os.environ))
    tool = peer.request("tools/list", {})["tools"][0]["name"]
    measured = measure_peer(name, peer, {"name": tool, "arguments": arguments}, load)
    peer.close()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrent", default="1", help="calls at a time, such as 1,8,64")
    parser.add_argument("--bytes", type=int, default=100, help="of the text that is answered")
    parser.add_argument("--rows", type=int, default=0, help="of 120 bytes, answered beside it")
    parser.add_argument("--fastmcp", help="the interpreter of FastMCP's environment")
    parser.add_argument("--peer", help="command of another gateway")
    args = parser.parse_args()
    load = Load(
        args.calls,
        tuple(map(int, args.concurrent.split(","))),
        {"text": "x" * 100, "times": args.bytes // 100, "rows": args.rows},
    )
    direct = asyncio.run(measure_direct(load))
    rows = [direct, measure_gateway(load)]
    if args.fastmcp:
        command = [args.fastmcp, "-c", FASTMCP_PROXY, FASTMCP_ECHO]
        rows.append(measure_other("FastMCP's proxy", command, load.arguments, load))
    if args.peer:
        rows.append(measure_other("peer", shlex.split(args.peer), {"n": 100}, load))
    times = f"{'median ms':>11}{'p99 ms':>9}{'CPU us':>9}"
    print(f"{'':20}{'at once':>8}{times}{'added CPU us':>14}{'beside us':>11}")
    for least, *row in zip(direct, *rows, strict=True):
        for each in row:
            times = f"{each.median_ms:11.2f}{each.p99_ms:9.2f}{each.cpu_us:9.0f}"
            added = each.cpu_us - least.cpu_us
            print(f"{each.name:20}{each.concurrent:8}{times}{added:14.0f}{each.beside_us:11.0f}")


if __name__ == "__main__":
    main()
