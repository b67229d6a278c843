"""Answers that are given as they happen: events that go on, and those that end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sandbox.broker.live import LiveHttp
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.world.loopback import Answering, served

SECONDS = 5.0
"""In which the first events come also on a busy machine."""
EVENTS = b'event: change\ndata: {"n": 1}\n\ndata: 2\r\n\r\n'


@dataclass
class Stream:
    """What is sent, of which type, and whether more may come; it ends with the test."""

    url: str
    content: bytes = EVENTS
    type: str = "text/event-stream; charset=utf-8"
    goes_on: bool = True
    ended: threading.Event = field(default_factory=threading.Event)


class _Streaming(Answering):
    def do_GET(self) -> None:
        self.body()
        self.answer(200, b"", [("Content-Type", self.world.type)], self._send)

    do_POST = do_GET

    def _send(self) -> Iterator[bytes]:
        yield self.world.content
        if self.world.goes_on:
            self.world.ended.wait()


@pytest.fixture
def stream() -> Iterator[Stream]:
    with served(_Streaming, Stream) as made:
        yield made
        made.ended.set()


async def send(stream: Stream, method: str = "GET", seconds: float = SECONDS) -> WireResponse:
    origin = parse_origin(stream.url)
    assert origin is not None
    async with LiveHttp(frozenset({origin}), stream_seconds=seconds) as upstream:
        return await upstream.send(WireRequest(method, f"{stream.url}/events"))


def test_of_a_stream_that_goes_on_its_events_until_then_are_the_answer(stream: Stream) -> None:
    response = asyncio.run(send(stream))
    assert response.status == 200
    assert response.body.startswith(EVENTS)
    told = response.body.removeprefix(EVENTS)
    assert told == b": the stream goes on; these are its events of the first 5 s\n"


def test_an_event_that_has_not_come_whole_is_left_out(stream: Stream) -> None:
    stream.content = EVENTS + b"data: half\n"
    assert asyncio.run(send(stream)).body.startswith(EVENTS + b": the stream goes on")


def test_a_stream_without_an_event_says_that_none_came(stream: Stream) -> None:
    stream.content = b": ping\n"
    assert asyncio.run(send(stream, seconds=SECONDS / 10)).body.startswith(b": the stream goes on")


def test_a_stream_that_ends_is_the_answer_as_it_came(stream: Stream) -> None:
    stream.goes_on, stream.content = False, EVENTS + b"data: half"
    assert asyncio.run(send(stream)).body == EVENTS + b"data: half"


@pytest.mark.parametrize(
    ("method", "kind"), [("GET", "application/json"), ("POST", "text/event-stream")]
)
def test_what_is_no_stream_of_a_read_is_waited_for_until_its_end(
    method: str, kind: str, stream: Stream
) -> None:
    stream.type = kind

    async def scenario() -> None:
        async with asyncio.timeout(SECONDS):
            await send(stream, method, seconds=SECONDS / 10)

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())
