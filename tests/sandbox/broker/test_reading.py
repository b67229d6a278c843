"""Answers that are much work to take apart, and content codings as servers write them."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpcore
import pytest

from sandbox.broker.live import LiveHttp
from sandbox.broker.reading import LEAST_READ, MOST_READ, FairStream, create_decoder
from sandbox.errors import UpstreamUnreachable
from sandbox.offload import INLINE_SECONDS
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.world.loopback import Answering, served

MANY = 40_000
TEXT = b"name,berth\n" + b"Aurora,7\n" * 200


class Endless(httpcore.AsyncNetworkStream):
    """A connection that has as many bytes as are asked for."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Take it."""


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_who_takes_long_over_what_was_read_lets_others_go_first_and_is_given_less() -> None:
    async def run() -> tuple[list[int], list[str]]:
        stream, sizes, told = FairStream(Endless()), list[int](), list[str]()
        for number in range(5):
            other = asyncio.get_running_loop().create_task(note(told, f"other {number}"))
            sizes.append(len(await stream.read(MOST_READ)))
            told.append(f"read {number}")
            work(2 * INLINE_SECONDS)
            await other
        return sizes, told

    async def note(told: list[str], what: str) -> None:
        told.append(what)

    sizes, told = asyncio.run(run())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == LEAST_READ < sizes[0]
    assert told[2:4] == ["other 1", "read 1"]


def test_what_is_taken_up_quickly_is_read_in_large_pieces() -> None:
    async def run() -> list[int]:
        stream = FairStream(Endless())
        return [len(await stream.read(MOST_READ)) for _ in range(20)]

    assert MOST_READ in asyncio.run(run())


def test_what_is_done_between_two_requests_is_not_laid_to_the_host() -> None:
    async def run() -> tuple[int, int]:
        stream = FairStream(Endless())
        before = len(await stream.read(MOST_READ))
        work(2 * INLINE_SECONDS)
        await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        return before, len(await stream.read(MOST_READ))

    before, after = asyncio.run(run())
    assert after == before


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n"
LABORIOUS: dict[str, tuple[bytes, bytes]] = {
    "chunks of a byte": (CHUNKED % (b"1\r\nA\r\n" * MANY), b"A" * MANY),
    "interim answers": (
        b"HTTP/1.1 103 \r\n\r\n" * (MANY // 4) + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"{}",
    ),
}


@contextmanager
def saying(content: bytes) -> Iterator[str]:
    """The URL of a host that answers every request with these bytes."""

    class Saying(Answering):
        def do_GET(self) -> None:
            self.wfile.write(content)
            self.close_connection = True

    with served(Saying, lambda url: url) as url:
        yield url


@pytest.mark.parametrize("what", LABORIOUS)
def test_nobody_waits_until_an_answer_that_is_much_work_is_taken_apart(what: str) -> None:
    said, body = LABORIOUS[what]

    async def run(url: str) -> tuple[WireResponse, float, float]:
        origin = parse_origin(url)
        assert origin is not None
        async with LiveHttp(frozenset({origin})) as live:
            began = last = time.thread_time()
            longest = 0.0
            sending = asyncio.create_task(live.send(WireRequest("GET", f"{url}/x")))
            while not sending.done():
                await asyncio.sleep(0)
                longest, last = max(longest, time.thread_time() - last), time.thread_time()
            return await sending, longest, time.thread_time() - began

    with saying(said) as url:
        answer, longest, whole = asyncio.run(run(url))
    assert answer.body == body
    assert longest < whole / 5


def deflated(content: bytes, wbits: int) -> bytes:
    packing = zlib.compressobj(wbits=wbits)
    return packing.compress(content) + packing.flush()


CODED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip.compress(TEXT)),
    "gzip of several members": (
        "gzip",
        lambda: b"".join(gzip.compress(TEXT[at : at + 300]) for at in range(0, len(TEXT), 300)),
    ),
    "gzip with zeros behind it": ("x-gzip", lambda: gzip.compress(TEXT) + bytes(512)),
    "deflate": ("deflate", lambda: deflated(TEXT, zlib.MAX_WBITS)),
    "deflate without a head": ("deflate", lambda: deflated(TEXT, -zlib.MAX_WBITS)),
}


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("what", CODED)
def test_a_body_is_decoded_as_servers_write_it(what: str, size: int) -> None:
    coding, write = CODED[what]
    written, decoder = write(), create_decoder([("content-encoding", coding)])
    assert decoder is not None
    parts = [written[at : at + size] for at in range(0, len(written), size)]
    assert b"".join(decoder.decode(part, 1 << 20) for part in parts) == TEXT
    decoder.check_end()


@pytest.mark.parametrize("what", sorted(set(CODED) - {"gzip with zeros behind it"}))
def test_a_coding_that_breaks_off_is_no_answer(what: str) -> None:
    coding, write = CODED[what]
    written = write()
    for end in (1, 2, 12, len(written) // 2, len(written) - 1):
        decoder = create_decoder([("content-encoding", coding)])
        assert decoder is not None
        decoder.decode(written[:end], 1 << 20)
        with pytest.raises(UpstreamUnreachable, match="a part is missing"):
            decoder.check_end()


def test_an_answer_without_a_body_may_name_a_coding() -> None:
    decoder = create_decoder([("content-encoding", "gzip")])
    assert decoder is not None
    decoder.check_end()


def test_no_more_is_decoded_than_there_is_room_for() -> None:
    written = gzip.compress(bytes(1 << 20)) + gzip.compress(bytes(1 << 20))
    decoder = create_decoder([("content-encoding", "gzip")])
    assert decoder is not None
    assert len(decoder.decode(written, 1000)) == 1000


@pytest.mark.parametrize("headers", [[], [("content-encoding", "identity")], [("etag", "gzip")]])
def test_a_body_that_has_no_coding_stays_as_it_is(headers: list[tuple[str, str]]) -> None:
    assert create_decoder(headers) is None


def test_a_coding_that_is_broken_is_no_answer() -> None:
    decoder = create_decoder([("content-encoding", "gzip")])
    assert decoder is not None
    with pytest.raises(UpstreamUnreachable, match="gzip coding is broken"):
        decoder.decode(b"plain text", 1000)
