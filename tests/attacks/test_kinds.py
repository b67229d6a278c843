"""What a forged server asks for besides HTTP, and who answers it, meaning ill.

What counts is what a listening server hears, or what the code that asked is told.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rrset
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from orchestrator.calls import Call
from orchestrator.gateway.nested import InnerCalls
from sandbox.broker.addresses import Resolver, resolve_by_system
from sandbox.broker.broker import Broker
from sandbox.broker.host.network import NetworkAccess
from sandbox.broker.host.network_requests import parse_network_request
from sandbox.broker.host.tools import ToolCallResult, build_success, parse_call_request
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission, build_request_pattern, parse_permission
from sandbox.wire.exchange import Capture, Exchange, Release, WireRequest, WriteMode, digest_request
from sandbox.wire.policy import Policy
from tests.attacks.wire import brokered, listener, rule
from tests.engine.samples import body, bundle

SECONDS, SHORT = 60.0, 0.4
"""What an exchange may take; the short one is for those that are to take too long."""
HERE = "127.0.0.1"
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Datagrams = Callable[[bytes], list[bytes]]


def broker(
    *granted: str,
    private: Collection[tuple[str, int]] = (),
    resolve: Resolver = resolve_by_system,
    writes: WriteMode = None,
    seconds: float = SECONDS,
    server_seconds: float = SECONDS,
) -> Broker:
    """What stands before the network of a session that has these permissions."""
    allowed = tuple(map(parse_permission, granted))
    access = NetworkAccess(lambda: allowed, lambda: private, resolve, seconds, server_seconds)
    return Broker(Policy(()), body(b"{}"), writes=writes, local=access)


def wire(data: bytes = b"", **params: Any) -> WireRequest:
    request = parse_network_request(params, data)
    assert request is not None
    return request


def at(address: str) -> Resolver:
    async def resolve(host: str, port: int) -> list[str]:
        return [address]

    return resolve


@dataclass
class Peer:
    """A server that means ill; `heard` is what reached it, `open` how many connections are."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)
    open: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def gone(self) -> None:
        """Return once all connections ended, as the server sees it."""
        async with asyncio.timeout(SECONDS):
            while self.open:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def peer(
    answer: Connected | None = None,
    datagrams: Datagrams | None = None,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[Peer]:
    """It says to each connection what `answer` says, and to each datagram what `datagrams` does."""
    made = Peer()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.open += 1
        try:
            made.heard.append(await reader.read(1 << 16))
            if answer is not None:
                await answer(reader, writer)
            while await reader.read(1 << 16):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            made.open -= 1
            made.changed.set()
            writer.transport.abort()

    class Names(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: Any) -> None:
            made.heard.append(data)
            for each in datagrams(data) if datagrams else []:
                self.transport.sendto(each, addr)

    server = await asyncio.start_server(connected, HERE, 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Names, local_addr=(HERE, made.port))
    try:
        yield made
    finally:
        transport.close()
        server.close()


class Carrier:
    """Notes what would be called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def carry_call(
        self, call: Call, request: WireRequest, writes: WriteMode
    ) -> ToolCallResult:
        self.called.append(f"{call.server}.{call.tool}")
        return ToolCallResult(Exchange(request, build_success({"n": 1})))


class All:
    """Everything is granted to everybody."""

    def find_permissions(self, server: str) -> Mapping[str, str]:
        return {"call:leaf.one": ""}


def relay() -> Bundle:
    made = bundle("", "relay", pure=True)
    (asked,) = filter(None, [build_request_pattern("call:leaf.one")])
    tool = made.tools[0]
    tools = (type(tool)(**{**vars(tool), "requests": (asked,)}),)
    return type(made)(**{**vars(made), "tools": tools, "permissions": ("call:leaf.one",)})


def called(tool: object, arguments: bytes = b"{}") -> tuple[Exchange | None, list[str]]:
    """What becomes of a call, None where it is no request at all; and what was called."""
    carrier = Carrier()
    request = parse_call_request({"tool": tool}, arguments)
    if request is None:
        return None, carrier.called
    made = relay()
    calls = InnerCalls(carrier, All(), made, Call(made.name, "relay", {}), "1")
    exchange = asyncio.run(Broker(Policy(()), body(b"{}")).perform(request, calls))
    return exchange, carrier.called


@pytest.mark.parametrize(
    "name",
    [
        "leaf.one\n",
        "leaf.one\0",
        "leaf.one ",
        "leaf.one#x",
        "leaf.one?x",
        "leaf.one/../two",
        "leaf.two",
        "leaf.one.two",
        "LEAF.one",
        "call:leaf.one",
        "leaf%2Eone",
        "leaf",
        ".one",
        "leaf.",
        "other.leaf.one",
        "le\u0430f.one",
        "leaf\uff0eone",
        "",
        "x" * 101,
        ["leaf.one"],
        None,
    ],
)
def test_a_name_that_is_not_letter_for_letter_the_declared_one_is_not_called(name: object) -> None:
    exchange, reached = called(name)
    assert reached == []
    assert exchange is None or exchange.refusal == "refused"


def test_the_declared_name_is_called() -> None:
    exchange, reached = called("leaf.one", b'{"n": 12345678901234567890, "t": "\\u00e9"}')
    assert reached == ["leaf.one"]
    assert exchange is not None
    assert exchange.response is not None


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"a": ' * 150 + b"1" + b"}" * 150,
        b'{"a": [' + b"[]," * 300_000 + b"[]]}",
        b'{"a": NaN}',
        b'{"a": NaN, "b": 12345678901234567890}',
        b'{"a": "\\ud800"}',
        b'{"a": "\\ud800", "b": 12345678901234567890}',
        b'{"a": 1' + b"0" * 5000 + b"}",
        b"[]",
        b"null",
        b'{"a": 1',
        b"\xff",
        b"",
    ],
    ids=[
        *("deep lists", "deep objects", "many lists", "not a number", "not a number, long"),
        *("half a letter", "half a letter, long", "endless number", "list", "null", "cut"),
        *("no text", "nothing"),
    ],
)
def test_arguments_that_some_part_of_the_way_cannot_read_are_no_call(arguments: bytes) -> None:
    assert called("leaf.one", arguments) == (None, [])


def named(
    datagrams: Datagrams | None, stream: Connected | None = None, seconds: float = SECONDS
) -> tuple[Exchange, Peer]:
    """What becomes of a question to a name server that answers so."""

    async def run() -> tuple[Exchange, Peer]:
        async with peer(stream, datagrams) as server:
            place = f"{HERE}:{server.port}"
            asking = broker(f"dns:shop.test@{place}", seconds=seconds)
            request = wire(kind="dns", name="shop.test", type="TXT", server=place)
            exchange = await asking.perform(request)
            await server.gone()
            return exchange, server

    return asyncio.run(run())


def answer_to(question: bytes, *texts: str, ident: int = 0, name: str = "shop.test.") -> bytes:
    asked = dns.message.from_wire(question)
    made = dns.message.make_response(asked)
    made.id = asked.id ^ ident
    made.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *(f'"{t}"' for t in texts)))
    return made.to_wire(max_size=65535)


def cut(question: bytes) -> list[bytes]:
    made = dns.message.make_response(dns.message.from_wire(question))
    made.flags |= dns.flags.TC
    return [made.to_wire()]


def looping(question: bytes) -> list[bytes]:
    """An answer whose name points at itself."""
    record = struct.pack(">HHHIH", 0xC000 | len(question), 16, 1, 60, 2) + b"\x01x"
    counts = struct.pack(">HHHH", 1, 1, 0, 0)
    return [question[:2] + b"\x81\x80" + counts + question[12:] + record]


def other_question(question: bytes) -> list[bytes]:
    made = dns.message.make_response(dns.message.make_query("evil.test", "TXT"))
    made.id = dns.message.from_wire(question).id
    return [made.to_wire()]


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A long answer, a byte now and then."""
    writer.write(b"\xff\xff")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\xff\xffcut")
    await writer.drain()
    writer.write_eof()


@pytest.mark.parametrize(
    ("datagrams", "stream"),
    [
        (lambda q: [], None),
        (lambda q: [answer_to(q, "x", ident=1)] * 50, None),
        (other_question, None),
        (lambda q: [q], None),
        (looping, None),
        (lambda q: [q[:2]], None),
        (lambda q: [q[:2] + b"\xff" * 60_000], None),
        (cut, dripping),
        (cut, short),
    ],
    ids=[
        *("silence", "another id", "another question", "the question", "a loop", "an id alone"),
        *("rubbish", "a byte now and then", "an answer that is cut"),
    ],
)
def test_an_answer_of_the_name_system_that_is_none_is_told_in_time(
    datagrams: Datagrams, stream: Connected | None
) -> None:
    exchange, server = named(datagrams, stream, SHORT)
    assert exchange.refusal == "unreachable"
    assert len(server.heard) <= 2


def test_an_answer_among_others_is_found() -> None:
    exchange, _ = named(lambda q: [answer_to(q, "no", ident=1), b"", answer_to(q, "yes")])
    assert exchange.response is not None
    assert json.loads(exchange.response.body)["answers"] == ['"yes"']


def test_a_long_answer_is_told_in_part_and_without_what_steers_a_terminal() -> None:
    texts = [f"{n}\\027[2J" + "x" * 100 for n in range(400)]

    async def long(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = answer_to(asked[0], *texts)
        writer.write(struct.pack(">H", len(made)) + made)

    asked: list[bytes] = []

    def noted(question: bytes) -> list[bytes]:
        asked.append(question)
        return cut(question)

    exchange, _ = named(noted, long)
    assert exchange.response is not None
    answers = json.loads(exchange.response.body)["answers"]
    assert len(answers) == 200
    assert all(answer.isprintable() for answer in answers)


@pytest.mark.parametrize("address", [HERE, "169.254.169.254", "10.0.0.1", "::1"])
def test_a_name_server_that_a_name_leads_to_inside_is_not_asked(address: str) -> None:
    async def run() -> tuple[str, str, list[bytes]]:
        async with peer(datagrams=lambda q: [answer_to(q, "in")]) as server:
            place = f"ns.shop.test:{server.port}"
            permission = f"dns:*@{place}"
            request = wire(kind="dns", name="a.test", server=place)
            one = await broker(permission, resolve=at(address)).perform(request)
            elsewhere = wire(kind="dns", name="a.test", server=f"{address}".replace("::1", "[::1]"))
            other = await broker(permission, resolve=at(address)).perform(elsewhere)
            return one.refusal, other.refusal, server.heard

    assert asyncio.run(run()) == ("not_allowed", "refused", [])


def test_what_the_name_system_says_is_no_address_that_a_request_goes_to() -> None:
    """A name whose answer changes between the question and the request (rebinding)."""

    async def run() -> tuple[str, str, list[bytes]]:
        async with listener() as api, peer(datagrams=lambda q: [answer_to(q, HERE)]) as server:
            place = f"{HERE}:{server.port}"
            request = wire(kind="dns", name="api.test", type="TXT", server=place)
            told = await broker(f"dns:api.test@{place}").perform(request)
            async with brokered(rule(api.origin), resolve=at(HERE)) as web:
                by_name = await web.perform(WireRequest("GET", api.url("/items/a")))
                url = f"http://{HERE}:{api.port}/items/a"
                by_address = await web.perform(WireRequest("GET", url))
            assert told.response is not None
            return by_name.refusal, by_address.refusal, api.heard

    assert asyncio.run(run()) == ("not_allowed", "refused", [])


def certificate(
    directory: Path,
    name: str = "shop.test",
    names: Collection[str] = ("shop.test",),
    swap: tuple[bytes, bytes] = (b"", b""),
) -> ssl.SSLContext:
    """A server's context with a certificate in which some bytes are others, so that what signed it
    did not sign this.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2031, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, names)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    written = made.public_bytes(serialization.Encoding.DER)
    assert swap[0] in written
    pem = ssl.DER_cert_to_PEM_cert(written.replace(*swap, 1))
    path = directory / "peer.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + pem.encode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def shaken(context: ssl.SSLContext | None, *granted: str, seconds: float = SECONDS) -> Exchange:
    """What becomes of a handshake with that server, called localhost."""

    async def run() -> Exchange:
        async with peer(context=context) as server:
            request = wire(kind="tls", host="localhost", port=server.port)
            allowed = granted or (f"tls:localhost:{server.port}",)
            exchange = await broker(*allowed, seconds=seconds, resolve=at(HERE)).perform(request)
            await server.gone()
            return exchange

    return asyncio.run(run())


def told_by(exchange: Exchange) -> dict[str, Any]:
    assert exchange.response is not None, exchange.reason
    found: dict[str, Any] = json.loads(exchange.response.body)
    return found


def test_a_certificate_is_told_as_it_is(tmp_path: Path) -> None:
    told = told_by(shaken(certificate(tmp_path)))
    assert (told["subject"], told["names"], told["verified"]) == (
        "CN=shop.test",
        ["shop.test"],
        False,
    )


@pytest.mark.parametrize(
    "swap",
    [
        (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07"),
        (b"310101000000Z", b"319901000000Z"),
    ],
    ids=["a version that there is not", "a thirteenth month"],
)
def test_a_certificate_that_cannot_be_read_is_told(
    tmp_path: Path, swap: tuple[bytes, bytes]
) -> None:
    exchange = shaken(certificate(tmp_path, swap=swap))
    assert exchange.refusal == "unreachable"
    assert "cannot be read" in exchange.reason


def test_a_certificate_of_many_and_long_names_is_told_in_part(tmp_path: Path) -> None:
    many = [f"{'a' * 30}{n}.test" for n in range(1000)]
    told = told_by(shaken(certificate(tmp_path, names=["b" * 20_000, *many])))
    assert len(told["names"]) == 200
    assert max(map(len, told["names"])) == 500
    endless = shaken(certificate(tmp_path, names=[f"{'a' * 40}{n}.test" for n in range(4000)]))
    assert endless.refusal == "unreachable"


def test_names_of_a_certificate_cannot_steer_a_terminal(tmp_path: Path) -> None:
    told = told_by(
        shaken(
            certificate(
                tmp_path,
                name="shop\x1b[2J\u202etest\r\nCN=bank.test",
                swap=(b"\x82\x09shop.test", b"\x82\x09sh\x1b[2Jt\x00t"),
            )
        )
    )
    shown = [told["subject"], told["issuer"], *told["names"]]
    assert not any(letter in text for text in shown for letter in "\x1b\u202e\r\x00")


def test_a_handshake_without_an_end_ends_in_time() -> None:
    exchange = shaken(None, seconds=0.3)
    assert exchange.refusal == "unreachable"
    assert "within 0.3 s" in exchange.reason


def test_a_handshake_names_the_host_that_is_granted(tmp_path: Path) -> None:
    asked: list[str | None] = []
    context = certificate(tmp_path)
    context.sni_callback = lambda _, name, __: asked.append(name)
    assert shaken(context, "tls:*:443").refusal == "refused"
    assert asked == []
    assert told_by(shaken(context))["problem"]
    assert set(asked) == {"localhost"}


def test_a_port_or_host_that_is_not_granted_sees_no_handshake() -> None:
    async def run() -> tuple[list[str], list[bytes]]:
        async with peer() as server:
            request = wire(kind="tls", host="localhost", port=server.port)
            refusals = []
            for granted in (
                f"tls:localhost:{server.port - 1}",
                f"tls:{HERE}:{server.port}",
                f"tcp:localhost:{server.port}",
                f"tls:*:{server.port - 1}",
                f"network:localhost:{server.port}",
            ):
                refusals.append((await broker(granted).perform(request)).refusal)
            anyone = await broker(f"tls:*:{server.port}").perform(request)
            return [*refusals, anyone.refusal], server.heard

    assert asyncio.run(run()) == (["refused"] * 5 + ["not_allowed"], [])


def talked(
    answer: Connected | None = None, seconds: float = SECONDS, **params: Any
) -> tuple[Exchange, Peer]:
    async def run() -> tuple[Exchange, Peer]:
        async with peer(answer) as server:
            request = wire(b"hello\n", kind="tcp", host=HERE, port=server.port, **params)
            asking = broker(f"tcp:{HERE}:{server.port}", seconds=seconds)
            exchange = await asking.perform(request)
            await server.gone()
            return exchange, server

    return asyncio.run(run())


async def flooding(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def polite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hi\nand more\n")
    writer.write_eof()


def test_an_answer_without_an_end_is_cut() -> None:
    exchange, _ = talked(flooding, max_bytes=100_000, until="never")
    assert exchange.response is not None
    assert exchange.response.body == b"x" * 100_000
    dripped, _ = talked(dripping, SHORT)
    assert dripped.refusal == "unreachable"


def test_an_answer_ends_where_it_was_to_end() -> None:
    exchange, server = talked(polite, until="\n")
    assert exchange.response is not None
    assert (exchange.response.body, server.heard) == (b"hi\n", [b"hello\n"])


def test_a_peer_that_takes_nothing_and_says_nothing_is_left_in_time() -> None:
    exchange, server = talked(None, SHORT)
    assert (exchange.refusal, server.open) == ("unreachable", 0)


@pytest.mark.parametrize(
    "data",
    [
        b"EHLO a\r\nMAIL FROM:<a@a.test>\r\n",
        b"hello\r\n",
        b"hello\n\n",
        b"hello",
        b"hello\nFLUSHALL\n",
        b"*1\r\n$8\r\nFLUSHALL\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"",
    ],
)
def test_no_other_bytes_leave_than_those_that_a_person_saw(data: bytes) -> None:
    async def run() -> tuple[str, str, list[bytes]]:
        async with peer(polite) as server:
            permission = f"tcp:{HERE}:{server.port}"
            place = {"kind": "tcp", "host": HERE, "port": server.port}
            holding = broker(permission, writes=Capture())
            held = await holding.perform(wire(b"hello\n", **place))
            assert holding.captured is not None
            assert holding.captured.body == b"hello\n"
            release = Release(digest_request(holding.captured))
            other = await broker(permission, writes=release).perform(wire(data, **place))
            return held.refusal, other.refusal, server.heard

    assert asyncio.run(run()) == ("captured", "refused", [])


def test_bytes_that_a_person_saw_leave_once() -> None:
    async def run() -> tuple[list[str], list[bytes]]:
        async with peer(polite) as server:
            request = wire(b"hello\n", kind="tcp", host=HERE, port=server.port)
            asking = broker(f"tcp:{HERE}:{server.port}", writes=Release(digest_request(request)))
            return [(await asking.perform(request)).refusal for _ in range(3)], server.heard

    assert asyncio.run(run()) == (["", "refused", "refused"], [b"hello\n"])


def test_a_host_or_port_that_is_not_granted_hears_nothing() -> None:
    async def run() -> tuple[list[str], list[bytes]]:
        async with peer(polite) as server:
            request = wire(b"hello\n", kind="tcp", host="localhost", port=server.port)
            refusals = []
            for granted in (
                f"tcp:localhost:{server.port - 1}",
                f"tcp:{HERE}:{server.port}",
                f"tls:localhost:{server.port}",
                f"tls:*:{server.port}",
                f"network:localhost:{server.port}",
            ):
                refusals.append((await broker(granted).perform(request)).refusal)
            named = Permission("tcp", f"mail.test:{server.port}")
            access = NetworkAccess(lambda: (named,), frozenset, at(HERE), SECONDS)
            inside = wire(b"hello\n", kind="tcp", host="mail.test", port=server.port)
            led = await Broker(Policy(()), body(b"{}"), local=access).perform(inside)
            return [*refusals, led.refusal], server.heard

    assert asyncio.run(run()) == (["refused"] * 5 + ["not_allowed"], [])
