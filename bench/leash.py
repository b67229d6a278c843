"""What the leash costs, and how fast it holds.

    python -m bench.leash [--requests 2000] [--stubborn 20] [--rows 20000]

Prints: what the broker adds to a request, beside httpx asking the same upstream directly; from a
freeze to the last byte of an upload's upstream; from a freeze to the last of some containers
that ignore SIGTERM; and how many audit rows a second the chain's verification reads. Times in ms
are medians with the 95th percentile. Needs Docker for the containers; without it that line is
left out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from registry.store import Store
from sandbox.brake import Brake
from sandbox.broker import Broker, Caps
from sandbox.bundle import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.docker_engine import DockerRunner, Labels, connect, kill_instance, list_containers
from sandbox.errors import EngineUnavailable
from sandbox.exchange import WireRequest
from sandbox.image import base_image
from sandbox.livehttp import LiveHttp
from sandbox.policy import Origin, read_policy

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


async def brokered(requests: int) -> tuple[str, str]:
    """A request by httpx alone, and through the broker; in turns, so that load hits both alike."""
    async with Upstream().listening() as upstream:
        url = f"http://127.0.0.1:{upstream.port}/items"
        private = frozenset({Origin("http", "127.0.0.1", upstream.port)})
        live = LiveHttp(private, response_bytes=1 << 20)
        broker = Broker(read_policy(bundle(upstream.port)), live, caps=Caps(exchanges=10**9))
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
        return figures(direct), figures(through)


async def last_byte(rounds: int) -> str:
    """From a freeze to the last byte that an upstream could still send."""
    late = []
    async with Upstream().listening() as upstream:
        base = f"http://127.0.0.1:{upstream.port}"
        private = frozenset({Origin("http", "127.0.0.1", upstream.port)})
        endless = RequestPattern("GET", f"{base}/endless")
        for _ in range(rounds):
            brake, live = Brake(), LiveHttp(private, response_bytes=1 << 40)
            sample = bundle(upstream.port)
            tool = sample.tools[0]
            policy = read_policy(
                Bundle(
                    **{
                        **vars(sample),
                        "tools": (ToolDefinition(**{**vars(tool), "requests": (endless,)}),),
                    }
                )
            )
            broker = Broker(policy, live, caps=Caps(response_bytes=1 << 40), brake=brake)
            task = asyncio.create_task(broker.perform(WireRequest("GET", f"{base}/endless")))
            with brake.on_engage(task.cancel):
                while not upstream.last:
                    await asyncio.sleep(0.005)
                await asyncio.sleep(0.05)
                frozen = time.perf_counter()
                brake.engage()
                await asyncio.gather(task, return_exceptions=True)
                await live.close()
            await asyncio.sleep(0.1)
            late.append(max(0.0, upstream.last - frozen))
            upstream.last = 0.0
    return figures(late)


async def stubborn(count: int) -> str:
    """From the order to the last container gone. Ours ignore SIGTERM: they are processes 1."""
    client = connect()
    image = base_image(client)
    assert image is not None, "build the base image first: toolwright setup --engine-only"
    instance = f"bench{uuid.uuid4().hex[:8]}"
    sample = bundle(9)
    async with AsyncExitStack() as stack:
        runner = await stack.enter_async_context(
            DockerRunner(client, image.reference, Labels(instance, "bench"))
        )
        for _ in range(count):
            broker = Broker(read_policy(sample), LiveHttp(frozenset(), response_bytes=1 << 20))
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
                store.note("bench", f"s{number}", {"number": number, "text": "x" * 200}, 0.0)
            started = time.perf_counter()
            assert store.verify_audit() is None
            return f"{rows / (time.perf_counter() - started):,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--stubborn", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    given = parser.parse_args()
    direct, through = asyncio.run(brokered(given.requests))
    print(f"{'a request by httpx directly, ms':52}{direct:>18}")
    print(f"{'the same through the broker, ms':52}{through:>18}", flush=True)
    print(
        f"{'freeze to the last upstream byte, ms':52}{asyncio.run(last_byte(20)):>18}", flush=True
    )
    with contextlib.suppress(EngineUnavailable):
        title = f"freeze to the last of {given.stubborn} containers gone, ms"
        print(f"{title:52}{asyncio.run(stubborn(given.stubborn)):>18}", flush=True)
    print(f"{'audit rows verified a second':52}{verified(given.rows):>18}")


if __name__ == "__main__":
    main()
