"""The exit of a third-party server, with its own forwarder as a plain process."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sandbox.broker.live import LiveHttp
from sandbox.bundle.target import NetworkTarget
from sandbox.killswitch import KillSwitch
from sandbox.thirdparty.egress import EgressCaps, EgressProxy, Tunnel
from sandbox.thirdparty.link import CREDIT, DATA, END, HEADER, OPEN, Link
from sandbox.wire.policy import Origin
from tests.functional.home import SECONDS
from tests.sandbox.upstreams import HOST, Outside, outside, to_this_machine

FORWARDER = Path(__file__).parents[3] / "images" / "exit" / "forwarder.py"
GET = b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"


@dataclass
class Way:
    """A running exit: where its proxy and its doors listen, and what it told of."""

    exit: EgressProxy
    proxy: int
    tunnels: list[Tunnel]
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(
        self, target: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """A CONNECT to the proxy, and the first line of its answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy)
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        line = await reader.readline()
        while (await reader.readline()).strip():
            pass
        return reader, writer, line

    async def said(self, data: bytes) -> bytes:
        """All that the proxy answers to some bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer

    async def last(self) -> Tunnel:
        """The one connection there was, once it has ended."""
        async with asyncio.timeout(SECONDS):
            await self.ended.wait()
        return self.tunnels[-1]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def way_out(
    *targets: NetworkTarget,
    private: NetworkTarget | None = None,
    caps: EgressCaps | None = None,
    kill_switch: KillSwitch | None = None,
) -> AsyncIterator[Way]:
    granted = frozenset({private} if private else ())
    origins = frozenset(Origin("http", each.host, each.port) for each in granted)
    tunnels: list[Tunnel] = []
    async with LiveHttp(origins, resolve=to_this_machine) as upstream:
        made = EgressProxy(
            frozenset(targets),
            upstream,
            private=granted,
            caps=caps or EgressCaps(),
            kill_switch=kill_switch or KillSwitch(),
            resolve=to_this_machine,
        )
        way = Way(made, free_port(), tunnels)

        def told(tunnel: Tunnel) -> None:
            tunnels.append(tunnel)
            way.ended.set()

        made.told = told
        # Outside a container only root may listen at the ports below 1024.
        doors = [(at, port if port >= 1024 else free_port()) for at, port in made.listeners[1:]]
        listeners = [("127.0.0.1", way.proxy), *doors]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-B", str(FORWARDER), json.dumps(listeners)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin
        assert process.stdout
        link = Link(process.stdin.write, made.serve_stream)
        reading = asyncio.ensure_future(_read(process.stdout, link.feed))
        try:
            assert await link.wait_ready()
            yield way
        finally:
            await link.end_and_wait()
            process.stdin.close()
            await process.wait()
            await reading


async def _read(stream: asyncio.StreamReader, feed: Callable[[bytes], None]) -> None:
    while chunk := await stream.read(65536):
        feed(chunk)


def run(work: Callable[[], object]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS):
            await work()  # type: ignore[misc]

    asyncio.run(bounded())


async def over_tls(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Outside, name: str = HOST
) -> bytes:
    """What the server answers to a GET over TLS on a connection."""
    context = server.trusting()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    await writer.start_tls(context, server_hostname=name)
    writer.write(GET)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_declared_host_is_reached_by_the_proxy_and_by_its_own_address() -> None:
    async def work() -> None:
        async with outside() as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer, line = await way.connect(str(target))
                assert b" 200 " in line
                assert (await over_tls(reader, writer, server)).endswith(b"hello")
                assert (await way.last()).refusal == ""
                assert (await way.last()).sent > 300
                assert (await way.last()).received > 300
                way.ended.clear()
                address = way.exit.hosts[HOST]
                assert address.startswith("127.1.")
                reader, writer = await asyncio.open_connection(address, server.port)
                assert (await over_tls(reader, writer, server)).endswith(b"hello")
                assert server.heard == [GET, GET]
                last = await way.last()
                assert (last.host, last.port, last.kind) == (HOST, server.port, "tls")

    run(work)


@pytest.mark.parametrize(
    "wanted", ["other.test:443", "api.test:22", "127.0.0.1:443", "[::1]:443", "169.254.169.254:80"]
)
def test_an_undeclared_host_or_port_is_refused_and_told(wanted: str) -> None:
    async def work() -> None:
        async with way_out(NetworkTarget(HOST, 443)) as way:
            way.exit.server = "notes"
            _, writer, line = await way.connect(wanted)
            writer.close()
            assert b" 403 " in line
            # Clients of a proxy show no more of a refused CONNECT than this line.
            assert f"Toolwright allows no connection to {wanted}.".encode() in line
            assert f"`toolwright grant notes network:{wanted}`".encode() in line
            assert (await way.last()).refusal == "refused"

    run(work)


def test_a_declared_host_at_a_private_address_is_refused_unless_it_was_granted() -> None:
    async def work() -> None:
        async with outside() as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target) as way:
                reader, writer, _ = await way.connect(str(target))
                with pytest.raises((ssl.SSLError, OSError)):
                    await over_tls(reader, writer, server)
                assert (await way.last()).refusal == "unreachable"
                assert "private address" in (await way.last()).reason
                assert server.heard == []

    run(work)


@pytest.mark.parametrize("name", ["evil.test", "api.test.evil.test", "API.TEST"])
def test_tls_must_ask_for_the_host_of_its_tunnel(name: str) -> None:
    async def work() -> None:
        async with outside() as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer, _ = await way.connect(str(target))
                if name.lower() == HOST:
                    assert await over_tls(reader, writer, server, name)
                    return
                with pytest.raises((ssl.SSLError, OSError)):
                    await over_tls(reader, writer, server, name)
                assert "in a tunnel to" in (await way.last()).reason
                assert server.heard == []

    run(work)


@pytest.mark.parametrize(
    "first", [b"SSH-2.0-x\r\n", GET, b"\x00\x01\x02", b"\x16\x03\x01\x00\x02\x02\x00"]
)
def test_what_is_not_tls_does_not_pass_a_tunnel(first: bytes) -> None:
    async def work() -> None:
        async with outside(tls=False) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer, _ = await way.connect(str(target))
                writer.write(first)
                assert await reader.read() == b""
                writer.close()
                assert (await way.last()).refusal == "refused"
                assert server.heard == []

    run(work)


def test_a_target_that_does_not_answer_in_tls_is_cut_off() -> None:
    async def work() -> None:
        async with outside(b"220 smtp ready\r\n", tls=False) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer, _ = await way.connect(str(target))
                with pytest.raises((ssl.SSLError, OSError)):
                    await over_tls(reader, writer, server)
                assert "does not answer in TLS" in (await way.last()).reason

    run(work)


def test_plain_http_goes_through_for_a_declared_port_only_and_as_one_request() -> None:
    async def work() -> None:
        async with outside(tls=False) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                url = f"http://{target}"
                smuggled = (
                    f"GET {url}/a HTTP/1.1\r\nHost: evil.test\r\n\r\nGET {url}/b HTTP/1.1\r\n\r\n"
                )
                answer = await way.said(smuggled.encode())
                assert answer.startswith(b"HTTP/1.1 200 ")
                assert answer.endswith(b"hello")
                (heard,) = server.heard
                assert heard.startswith(b"GET /a HTTP/1.1\r\n")
                assert b"evil.test" not in heard
                assert b"/b" not in heard
                refused = await way.said(b"GET http://other.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
                assert refused.startswith(b"HTTP/1.1 403 ")

    run(work)


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT api.test HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT http://api.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
        b"GET https://api.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://api.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://u:p@api.test/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST http://api.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\nx",
        b"nonsense\r\n\r\n",
        b"GET http://api.test/ HTTP/1.1\r\nX: " + b"y" * 40_000,
    ],
)
def test_what_is_no_proxy_request_gets_a_plain_answer(head: bytes) -> None:
    async def work() -> None:
        async with way_out(NetworkTarget(HOST, 80)) as way:
            assert (await way.said(head)).startswith(b"HTTP/1.1 400 ")
            assert (await way.last()).refusal == "refused"

    run(work)


def test_the_address_of_one_host_serves_no_other() -> None:
    async def work() -> None:
        async with outside(tls=False) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer = await asyncio.open_connection(way.exit.hosts[HOST], server.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
                assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
                writer.close()
                assert server.heard == []

    run(work)


def test_the_brake_cuts_running_tunnels_and_refuses_new_ones() -> None:
    async def work() -> None:
        kill_switch, hold = KillSwitch(), asyncio.Event()
        async with outside(hold=hold) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target, kill_switch=kill_switch) as way:
                kill_switch.engage()
                _, writer = await asyncio.open_connection("127.0.0.1", way.proxy)
                writer.write(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
                assert (await way.last()).refusal == "frozen"
                assert server.heard == []
                writer.close()
        hold.set()

    run(work)


def test_a_tunnel_carries_no_more_than_it_may() -> None:
    async def work() -> None:
        caps = replace(EgressCaps(), tunnel_bytes=20_000)
        async with outside(b"x" * 200_000) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target, caps=caps) as way:
                reader, writer, _ = await way.connect(str(target))
                with pytest.raises((ssl.SSLError, OSError, AssertionError)):
                    assert len(await over_tls(reader, writer, server)) == 200_000
                assert (await way.last()).refusal == "too_large"

    run(work)


def test_large_answers_arrive_whole_past_the_window() -> None:
    async def work() -> None:
        async with outside(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 3_000_000) as server:
            target = NetworkTarget(HOST, server.port)
            async with way_out(target, private=target) as way:
                reader, writer, _ = await way.connect(str(target))
                assert (await over_tls(reader, writer, server)).count(b"z") == 3_000_000

    run(work)


def test_a_session_makes_only_so_many_connections() -> None:
    async def work() -> None:
        async with way_out(NetworkTarget(HOST, 443), caps=replace(EgressCaps(), tunnels=2)) as way:
            for _ in range(4):
                way.ended.clear()
                assert b"400" in (await way.said(b"x\r\n\r\n"))[:20] or way.tunnels
            assert len(way.tunnels) <= 3

    run(work)


def test_a_link_that_breaks_the_rules_is_ended() -> None:
    async def work() -> None:
        for frames in (
            [(OPEN, 1, b"")],
            [(OPEN, 1, b"\0\0"), (OPEN, 1, b"\0\0")],
            [(OPEN, 1, b"\0\0"), (9, 1, b"")],
            [(OPEN, 1, b"\0\0"), (CREDIT, 1, b"\0")],
            [(OPEN, 1, b"\0\0"), (DATA, 1, b"")],
            [(OPEN, 1, b"\0\0"), *[(DATA, 1, b"x" * 60_000)] * 20],
            [(OPEN, n, b"\0\0") for n in range(1, 1000)],
        ):
            written: list[bytes] = []
            forever = asyncio.Event()

            async def serve(_: object, forever: asyncio.Event = forever) -> None:
                await forever.wait()

            link = Link(written.append, serve)
            for kind, number, payload in frames:
                link.feed(HEADER.pack(kind, number, len(payload)) + payload)
            assert await link.wait_ready() is False
            await link.end_and_wait()

    run(work)


def _split(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _in_records(data: bytes) -> bytes:
    return b"".join(b"\x16\x03\x01\x00\x01" + part for part in _split(data, 1))


HEAD = b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n"
POST = b"POST http://api.test:443/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
MUCH_WORK = {
    "a hello byte by byte": [HEAD, *_split(_in_records(b"\1\0\xea\x60" + b"a" * 10_000), 1)],
    "a hello in records of a byte": _split(HEAD + _in_records(b"\1\0\xea\x60" + b"a" * 10_000), 9),
    "a body in chunks of a byte": _split(POST + b"1\r\na\r\n" * 60_000, 30_000),
}


@pytest.mark.parametrize("sent", MUCH_WORK)
def test_nobody_waits_until_a_connection_s_first_words_are_read(sent: str) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def work() -> None:
        tunnels: list[Tunnel] = []
        target = NetworkTarget(HOST, 443)
        async with LiveHttp(resolve=to_this_machine) as upstream:
            made = EgressProxy(frozenset({target}), upstream, told=tunnels.append)
            link = Link(lambda _: None, made.serve_stream)
            # All of it is there before any of it is read.
            for kind, payload in [
                (OPEN, b"\0\0"),
                *((DATA, part) for part in MUCH_WORK[sent]),
                (END, b""),
            ]:
                link.feed(HEADER.pack(kind, 1, len(payload)) + payload)
            others = asyncio.create_task(take_turns())
            while not tunnels:
                await asyncio.sleep(0)
            others.cancel()
            await link.end_and_wait()
        assert tunnels[0].refusal == "refused"

    run(work)
    assert turns > 10
