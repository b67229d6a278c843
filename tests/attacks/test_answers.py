"""Answers that were made to hurt whoever reads them, and redirects that were made to lead away."""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from dataclasses import replace

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.credential import Credential
from sandbox.clock import VirtualClock
from sandbox.credentials.source import CredentialSource
from sandbox.errors import UpstreamUnreachable
from sandbox.wire.exchange import Caps, Exchange, WireRequest, WireResponse
from sandbox.wire.policy import Policy
from tests.attacks.wire import FINE, asked, brokered, listener, rule
from tests.sandbox import scripted
from tests.sandbox.scripted import Told, get, performed

SMALL = Caps(response_bytes=100_000, seconds=60.0, retry_budget_seconds=0.1, attempts=1)
SHORT = 0.4
"""What an answer may take that never ends."""
SECRET = "canary-4711-abcdefgh"
HEAD = b"HTTP/1.1 200 OK\r\n"


def whole(body: bytes, *headers: str) -> bytes:
    lines = [*headers, f"Content-Length: {len(body)}", "", ""]
    return HEAD + "\r\n".join(lines).encode() + body


def answered(
    *writes: bytes, forever: bytes = b"", pause: float = 0.0, seconds: float = SMALL.seconds
) -> Exchange:
    """What becomes of a request to a server that writes this, then the rest without end."""

    async def write(writer: asyncio.StreamWriter) -> None:
        for part in writes:
            writer.write(part)
        while forever:
            writer.write(forever)
            await writer.drain()
            await asyncio.sleep(pause)

    async def run() -> Exchange:
        caps = replace(SMALL, seconds=seconds)
        async with listener(write) as api, asyncio.timeout(2 * SMALL.seconds):
            return await asked(api, WireRequest("GET", api.url("/items/a")), caps=caps)

    return asyncio.run(run())


def packed(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return packer.compress(bytes(size)) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "wbits"), [("gzip", 31), ("deflate", 15), ("x-gzip", 31), ("GZIP", 31)]
)
def test_a_decompression_bomb_is_cut_at_the_cap(coding: str, wbits: int) -> None:
    body = packed(50_000_000, wbits)
    assert len(body) < SMALL.response_bytes
    assert answered(whole(body, f"Content-Encoding: {coding}")).refusal == "too_large"


def test_a_packed_answer_of_ordinary_size_is_unpacked() -> None:
    exchange = answered(whole(gzip.compress(b"fine" * 100), "Content-Encoding: gzip"))
    assert exchange.response is not None
    assert exchange.response.body == b"fine" * 100


def test_a_bomb_in_a_bomb_is_not_unpacked_twice() -> None:
    inner = gzip.compress(bytes(50_000_000))
    exchange = answered(whole(gzip.compress(inner), "Content-Encoding: gzip, gzip"))
    assert exchange.response is None or len(exchange.response.body) <= SMALL.response_bytes


@pytest.mark.parametrize(
    ("begun", "forever"),
    [
        (HEAD + b"\r\n", b"x" * 60_000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"x" * 60_000),
    ],
    ids=["until-close", "chunked", "declared"],
)
def test_an_endless_body_is_cut_at_the_cap(begun: bytes, forever: bytes) -> None:
    assert answered(begun, forever=forever).refusal == "too_large"


@pytest.mark.parametrize(
    ("begun", "forever"),
    [
        (HEAD + b"Content-Length: 1000\r\n\r\n", b"x"),
        (HEAD, b"X: 1\r\n"),
        (b"", b"H"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["body", "header", "status", "chunks"],
)
def test_an_answer_that_only_drips_runs_into_the_time_limit(begun: bytes, forever: bytes) -> None:
    exchange = answered(begun, forever=forever, pause=0.05, seconds=SHORT)
    assert exchange.refusal in ("timeout", "unreachable")


def test_an_answer_in_pieces_within_the_limit_is_whole() -> None:
    exchange = answered(HEAD, b"Content-Len", b"gth: 4\r\n\r\nfi", b"ne")
    assert exchange.response is not None
    assert exchange.response.body == b"fine"


@pytest.mark.parametrize(
    ("begun", "forever"),
    [
        (HEAD + b"X: ", b"x" * 60_000),
        (HEAD, b"X-Many: 1\r\n" * 5000),
        (b"HTTP/1.1 200 ", b"O" * 60_000),
        (b"", b"x" * 60_000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 60_000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: 1\r\n" * 5000),
    ],
    ids=["value", "headers", "status", "noise", "chunk-extension", "trailers"],
)
def test_an_endless_head_is_given_up(begun: bytes, forever: bytes) -> None:
    assert answered(begun, forever=forever).refusal in ("unreachable", "timeout")


def test_a_storm_of_provisional_answers_ends() -> None:
    storm = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100
    assert answered(forever=storm, pause=0.01, seconds=SHORT).refusal in ("timeout", "unreachable")


def test_a_few_provisional_answers_are_passed_over() -> None:
    exchange = answered(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + FINE)
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.body) == (200, b"fine")


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nfine!",
        HEAD + b"Content-Length: -4\r\n\r\nfine",
        HEAD + b"Content-Length: 0x4\r\n\r\nfine",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nfine\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffffff\r\nfine\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\nfine0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
        HEAD + b"X Y: 1\r\nContent-Length: 4\r\n\r\nfine",
        HEAD + b"X: a\0b\r\nContent-Length: 4\r\n\r\nfine",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 4\r\n\r\nfine",
        b"HTTP/1.1 -1 OK\r\nContent-Length: 4\r\n\r\nfine",
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\0\0",
        whole(b"not gzip", "Content-Encoding: gzip"),
        whole(gzip.compress(b"fine" * 100, mtime=0)[:-12], "Content-Encoding: gzip"),
    ],
)
def test_an_answer_that_is_none_is_a_failure_and_no_crash(answer: bytes) -> None:
    exchange = answered(answer, seconds=SHORT)
    assert exchange.response is None
    assert exchange.refusal in ("unreachable", "timeout")


REDIRECT = "HTTP/1.1 {status} Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"


def redirected(
    target: str, status: int = 302, method: str = "GET", follows: str = "/items/b"
) -> tuple[Exchange, list[bytes], list[bytes]]:
    """What becomes of a redirect, and what each of two servers hears; `OTHER` is the second's
    port, `PORT` the first's. The second is declared for nothing.
    """

    async def run() -> tuple[Exchange, list[bytes], list[bytes]]:
        async with listener() as other:
            made = target.replace("OTHER", str(other.port))

            async def write(writer: asyncio.StreamWriter) -> None:
                port = writer.get_extra_info("sockname")[1]
                first = len(api.heard) == 1
                moved = REDIRECT.format(status=status, target=made.replace("PORT", str(port)))
                writer.write(moved.encode("latin-1") if first else FINE)

            async with listener(write) as api:
                request = WireRequest(method, api.url("/items/a"))
                exchange = await asked(api, request, caps=SMALL)
            return exchange, api.heard, other.heard

    return asyncio.run(run())


@pytest.mark.parametrize(
    "target",
    [
        "http://api.test:OTHER/items/b",
        "http://evil.test:OTHER/items/b",
        "//evil.test:OTHER/items/b",
        "http://127.0.0.1:OTHER/items/b",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:OTHER/",
        "https://api.test:PORT/items/b",
        "http://api.test:PORT@evil.test:OTHER/items/b",
        "/secrets",
        "/items/b/../../secrets",
        "/items/%2e%2e",
        "file:///etc/passwd",
        "env:HOME",
        "javascript:1",
    ],
)
def test_a_redirect_to_what_was_not_declared_is_not_followed(target: str) -> None:
    exchange, heard, other = redirected(target)
    assert (exchange.refusal, len(heard), other) == ("redirect", 1, [])


@pytest.mark.parametrize(
    "target",
    [
        "http://[",
        "http://[x",
        "//[redacted].test/",
        "/items/b?q=\xe9",
        "/items/\xe9",
        "http://x:y/",
    ],
)
def test_a_redirect_to_nowhere_is_refused_and_no_crash(target: str) -> None:
    exchange, heard, other = redirected(target)
    assert (exchange.refusal, len(heard), other) == ("redirect", 1, [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_what_may_write_is_not_followed(status: int) -> None:
    exchange, heard, other = redirected("/items/b", status, "POST")
    assert (exchange.refusal, len(heard), other) == ("redirect", 1, [])


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.test:OTHER/items/a/",
        "//evil.test:OTHER/items/a/",
        "/items/a//",
        "/items/a/?to=x",
        "/items/a/%2e",
        "/items/a/b",
        "/items/",
    ],
)
def test_a_redirect_to_more_than_a_slash_is_not_followed(target: str) -> None:
    exchange, heard, other = redirected(target)
    assert (exchange.refusal, len(heard), other) == ("redirect", 1, [])


@pytest.mark.parametrize("target", ["/items/a/", "http://api.test:PORT/items/a/"])
def test_a_redirect_that_adds_a_slash_is_followed(target: str) -> None:
    exchange, heard, other = redirected(target)
    assert (exchange.refusal, len(heard), other) == ("", 2, [])


@pytest.mark.parametrize("target", ["/items/b", "b", "http://api.test:PORT/items/b"])
def test_a_redirect_to_what_was_declared_is_followed(target: str) -> None:
    exchange, heard, _ = redirected(target)
    assert exchange.response is not None
    assert [line.split()[1] for line in heard] == [b"/items/a", b"/items/b"]


def source(secret: str = SECRET) -> CredentialSource:
    declared = {"key": Credential("key", "apiKey", "header", "X-Key")}
    return CredentialSource(declared, lambda name: secret)


def test_a_redirect_takes_the_credential_nowhere_else() -> None:
    """Both targets are declared; the second one without the credential."""

    async def run(security: tuple[tuple[str, ...], ...]) -> tuple[list[bytes], list[bytes]]:
        async with listener() as other:
            moved = REDIRECT.format(status=302, target=other.url("/items/b")).encode()
            async with listener(moved) as api:
                rules = (
                    rule(api.origin, security=(("key",),)),
                    rule(other.origin, security=security),
                )
                granted = [api.origin, other.origin]
                async with brokered(*rules, granted=granted, credentials=source()) as broker:
                    exchange = await broker.perform(WireRequest("GET", api.url("/items/a")))
                assert exchange.response is not None
                return api.heard, other.heard

    first, second = asyncio.run(run(()))
    assert SECRET.encode() in first[0]
    assert SECRET.encode() not in second[0]
    _, declared = asyncio.run(run((("key",),)))
    assert SECRET.encode() in declared[0]


BOMB = base64.b64encode(gzip.compress(b"\0" * 30_000_000)).decode()


@pytest.mark.parametrize(
    "answer",
    [
        WireResponse(200, (), f"a {BOMB}".encode()),
        WireResponse(200, (("x-a", BOMB),), b""),
        WireResponse(200, (), gzip.compress(b"\0" * 30_000_000)),
    ],
    ids=["body", "header", "gzip"],
)
def test_nothing_waits_until_a_small_answer_is_unpacked(answer: WireResponse) -> None:
    allowed = scripted.rule(security=(("key",),))
    made = scripted.broker(Told([answer]), allowed, credentials=source())

    async def run() -> int:
        asking = asyncio.create_task(made.perform(WireRequest("GET", "https://api.test/items/a")))
        turns = 0
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
        assert (await asking).response is not None
        return turns

    assert asyncio.run(run()) > 100


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        SECRET.upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"x" + SECRET.encode()).decode(),
        base64.b64encode(b"xy" + SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe" + SECRET.encode()).decode(),
        SECRET.encode().hex(),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        "".join(f"%25{byte:02X}" for byte in SECRET.encode()),
        "".join(f"\\u{byte:04x}" for byte in SECRET.encode()),
        "".join(f"&#{byte};" for byte in SECRET.encode()),
    ],
)
@pytest.mark.parametrize("place", ["body", "header", "split", "location", "error"])
def test_a_secret_that_an_api_echoes_does_not_come_back(echo: str, place: str) -> None:
    middle = len(echo) // 2
    answers = {
        "body": WireResponse(200, (), f"you sent {echo}.".encode()),
        "header": WireResponse(200, (("x-echo", echo), (echo, "1")), b""),
        "split": WireResponse(200, (("x-a", echo[:middle]), ("x-b", echo[middle:])), b""),
        "location": WireResponse(302, (("location", f"https://{echo}.evil.test/{echo}"),), b""),
        "error": WireResponse(500, (), f'{{"error": "bad key {echo}"}}'.encode()),
    }
    allowed = scripted.rule(security=(("key",),))
    made = scripted.broker(Told([answers[place]]), allowed, credentials=source())
    exchange = performed(made.perform(get()))
    assert not carries(exchange, SECRET)
    assert not carries(exchange, echo)


def test_a_failure_that_names_the_secret_does_not_tell_it() -> None:
    class Down:
        async def send(self, request: WireRequest) -> WireResponse:
            raise UpstreamUnreachable(f"no route for {request.headers!r}")

    made = Broker(
        Policy((scripted.rule(security=(("key",),)),)),
        Down(),
        clock=VirtualClock(),
        credentials=source(),
    )
    exchange = performed(made.perform(get()))
    assert exchange.refusal == "unreachable"
    assert "no route" in exchange.reason
    assert SECRET not in exchange.reason


def test_what_only_resembles_a_secret_comes_back() -> None:
    upstream = Told([WireResponse(200, (("x-a", SECRET[:-1]),), SECRET[:-1].encode())])
    made = scripted.broker(upstream, scripted.rule(security=(("key",),)), credentials=source())
    exchange = performed(made.perform(get()))
    assert exchange.response is not None
    assert exchange.response.body == SECRET[:-1].encode()
    assert upstream.requests[0].get_header("x-key") == SECRET


def carries(exchange: Exchange, text: str) -> bool:
    shown = [exchange.reason]
    if exchange.response is not None:
        headers = exchange.response.headers
        shown += [exchange.response.body.decode(), *(name + value for name, value in headers)]
        shown += ["".join(value for _, value in headers)]
    return any(text.lower() in each.lower() for each in shown)
