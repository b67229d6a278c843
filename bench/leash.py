"""The cost of the leash, and how fast it holds.

    python -m bench.leash [--requests 2000] [--kills 20] [--stubborn 20] [--rows 20000]

Prints, with the bars of each: what the broker adds to a request, beside httpx asking the same
upstream directly; from `POST /kill` on the control plane to the last byte that an upstream could
send to another process; from a freeze to the last of some containers that ignore SIGTERM; and how
many audit rows a second the chain's verification reads. Times in ms are medians with the 95th
percentile. Needs Docker for the containers; without it that line is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import psutil

from orchestrator.processes.control_client import ControlAddress, find_control
from orchestrator.processes.signals import Signals
from orchestrator.settings import Settings, load_settings
from registry.models import Process
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.engines.docker.engine import (
    ContainerLabels,
    DockerRunner,
    connect_engine,
    kill_instance,
    list_containers,
)
from sandbox.engines.docker.image import find_base_image
from sandbox.errors import EngineUnavailable
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.policy import Origin, build_read_policy

ROOT = Path(__file__).parents[1]
ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"id":1}'
CHUNK = b"x" * 16384
SERVER = """from toolwright import http, tool


@tool
def fetch():
    return http.request("GET", "/items")
"""


def figures(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:.2f} ({ordered[int(len(ordered) * 0.95)] * 1e3:.2f})"


def tell(what: str, value: str, bar: str = "") -> None:
    print(f"{what:52}{value:>18}  {bar}".rstrip(), flush=True)


def bundle(port: int) -> Bundle:
    base = f"http://127.0.0.1:{port}"
    pattern = RequestPattern("GET", f"{base}/items")
    schema = {"type": "object"}
    return Bundle(
        name="leash",
        version=1,
        title="Leash",
        base_url=base,
        source_code=SERVER,
        tools=(ToolDefinition("fetch", "A sample.", schema, schema, "read", requests=(pattern,)),),
        provenance=Provenance("bench", "0" * 64),
        permissions=(f"network:127.0.0.1:{port}",),
    )


class Upstream:
    """An API on loopback: small answers at `/items`, and one without end at `/endless`.

    `last` is when it last could send something.
    """

    port: int

    def __init__(self) -> None:
        self.last = 0.0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Upstream]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*ended):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"/endless" in head:
                    await self._send_on(writer)
                writer.write(ANSWER)
                await writer.drain()
        writer.close()

    async def _send_on(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        while True:
            writer.write(CHUNK)
            await writer.drain()
            self.last = time.perf_counter()
            await asyncio.sleep(0.001)


async def brokered(requests: int) -> tuple[list[float], list[float]]:
    """A request by httpx alone, and through the broker; in turns, so that load hits both alike."""
    async with Upstream().listening() as upstream:
        url = f"http://127.0.0.1:{upstream.port}/items"
        private = frozenset({Origin("http", "127.0.0.1", upstream.port)})
        live = LiveHttp(private, response_bytes=1 << 20)
        broker = Broker(build_read_policy(bundle(upstream.port)), live, caps=Caps(exchanges=10**9))
        direct: list[float] = []
        through: list[float] = []
        async with httpx.AsyncClient(trust_env=False) as client:
            for _ in range(requests):
                started = time.perf_counter()
                (await client.get(url)).raise_for_status()
                direct.append(time.perf_counter() - started)
                started = time.perf_counter()
                exchange = await broker.perform(WireRequest("GET", url))
                through.append(time.perf_counter() - started)
                assert exchange.response is not None, exchange.reason
        await live.close()
        return direct, through


@asynccontextmanager
async def control_plane(settings: Settings) -> AsyncIterator[ControlAddress]:
    """The control plane as a process of its own."""
    command = (sys.executable, "-m", "orchestrator", "control")
    environment = {**os.environ, "TOOLWRIGHT_HOME": str(settings.home), "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        while (address := await asyncio.to_thread(find_control, settings)) is None:
            await asyncio.sleep(0.05)
        yield address
    finally:
        process.terminate()
        await process.wait()


@contextlib.contextmanager
def serving(store: Store, kill_switch: KillSwitch) -> Iterator[None]:
    """What of `serve` a freeze has to reach: this process, registered, with its pulse."""
    now, me = time.time(), psutil.Process()
    store.processes.register(Process("bench", me.pid, me.create_time(), "serve", now, now))
    signals = Signals(store, kill_switch, "bench", lambda: None, lambda found: found)
    with signals.watch_signals():
        yield
    store.processes.remove("bench")


async def last_byte(rounds: int) -> tuple[str, str]:
    """From `POST /kill` to the last byte that an upstream could still send to another process, and
    to the answer of the request.
    """
    late, answered = [], []
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        settings = load_settings(home=Path(directory))
        store = stack.enter_context(Store.open(settings.database_url, "bench"))
        kill_switch = KillSwitch()
        stack.enter_context(serving(store, kill_switch))
        async with (
            control_plane(settings) as address,
            Upstream().listening() as upstream,
            httpx.AsyncClient(trust_env=False, headers=address.headers, timeout=30) as client,
        ):
            for _ in range(rounds):
                started, ended = await one_kill(kill_switch, upstream, client, address.url)
                late.append(max(0.0, upstream.last - started))
                answered.append(ended - started)
                upstream.last = 0.0
                await asyncio.to_thread(
                    store.processes.unfreeze, time.time(), "bench", Signer.generate().sign
                )
                while kill_switch.engaged:
                    await asyncio.sleep(0.005)
    return figures(late), figures(answered)


async def one_kill(
    kill_switch: KillSwitch, upstream: Upstream, client: httpx.AsyncClient, control: str
) -> tuple[float, float]:
    """Freeze while an endless answer comes in: when that was asked for, and when answered."""
    url = f"http://127.0.0.1:{upstream.port}/endless"
    sample = bundle(upstream.port)
    tool = replace(sample.tools[0], requests=(RequestPattern("GET", url),))
    private = frozenset({Origin("http", "127.0.0.1", upstream.port)})
    async with LiveHttp(private, response_bytes=1 << 40) as live:
        policy = build_read_policy(replace(sample, tools=(tool,)))
        broker = Broker(policy, live, caps=Caps(response_bytes=1 << 40), kill_switch=kill_switch)
        task = asyncio.create_task(broker.perform(WireRequest("GET", url)))
        with kill_switch.on_engage(lambda: void(task.cancel())):
            while not upstream.last:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            started = time.perf_counter()
            (await client.post(f"{control}/kill", json={})).raise_for_status()
            ended = time.perf_counter()
            await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.05)
    return started, ended


def void(_: object) -> None:
    """A callback's result that nobody wants."""


async def stubborn(count: int) -> str:
    """From the order to the last container gone. Ours ignore SIGTERM: they are processes 1."""
    client = connect_engine()
    image = find_base_image(client)
    assert image is not None, "build the base image first: toolwright setup --engine-only"
    instance = f"bench{uuid.uuid4().hex[:8]}"
    sample = bundle(9)
    async with AsyncExitStack() as stack:
        runner = await stack.enter_async_context(
            DockerRunner(client, image.reference, ContainerLabels(instance, "bench"))
        )
        for _ in range(count):
            broker = Broker(
                build_read_policy(sample), LiveHttp(frozenset(), response_bytes=1 << 20)
            )
            await stack.enter_async_context(runner.open(sample, broker))
        assert len(list_containers(client, instance=instance)) == count
        started = time.perf_counter()
        while await asyncio.to_thread(kill_instance, instance):
            pass
        took = time.perf_counter() - started
        assert not list_containers(client, instance=instance)
    client.close()
    return f"{took * 1e3:.0f}"


def verified(rows: int) -> str:
    with tempfile.TemporaryDirectory() as directory:
        with Store.open(f"sqlite:///{Path(directory) / 'bench.db'}", "bench") as store:
            for number in range(rows):
                store.audit.add_note(
                    "bench", f"s{number}", {"number": number, "text": "x" * 200}, 0.0
                )
            started = time.perf_counter()
            assert store.audit.verify_chains() is None
            return f"{rows / (time.perf_counter() - started):,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stubborn", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    given = parser.parse_args()
    direct, through = asyncio.run(brokered(given.requests))
    tell("a request by httpx directly, ms", figures(direct))
    tell("the same through the broker, ms", figures(through))
    added = statistics.median(through) - statistics.median(direct)
    tell("  added at the median, ms", f"{added * 1e3:.2f}", "<= 1")
    late, answered = asyncio.run(last_byte(given.kills))
    tell("POST /kill to the last upstream byte, ms", late, "<= 50")
    tell("  to the answer of POST /kill, ms", answered)
    with contextlib.suppress(EngineUnavailable):
        title = f"freeze to the last of {given.stubborn} containers gone, ms"
        tell(title, asyncio.run(stubborn(given.stubborn)), "<= 1000")
    tell("audit rows verified a second", verified(given.rows))
    tell("load of this machine, 1 and 5 minutes", "{:.1f} {:.1f}".format(*os.getloadavg()))


if __name__ == "__main__":
    main()
