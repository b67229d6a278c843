"""An answer that a limit cuts: of a write it is told that the write happened."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from orchestrator.gateway.record import find_write_state
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.clock import VirtualClock
from sandbox.session.interface import Failure, Outcome
from sandbox.wire.exchange import (
    Caps,
    Exchange,
    Release,
    WireRequest,
    WireResponse,
    digest_request,
    from_json,
    to_json,
)
from sandbox.wire.policy import Policy, parse_origin
from tests.sandbox.scripted import API, Told, answer, broker, get, performed, rule
from tests.world.loopback import Answering, served

SMALL = Caps(response_bytes=10)
WRITE = WireRequest("POST", f"{API}/things")
LARGE = "x" * 50


class _Large(Answering):
    def do_POST(self) -> None:
        self.body()
        self.answer(201, b"x" * 5000)

    def do_GET(self) -> None:
        self.answer(200, gzip.compress(b"x" * 5000), headers=[("Content-Encoding", "gzip")])


def test_a_write_whose_answer_is_too_large_is_told_to_have_happened() -> None:
    upstream = Told([answer(201, LARGE)])
    released = broker(upstream, rule("POST", read=False), writes=Release(None), caps=SMALL)
    exchange = performed(released.perform(WRITE))
    assert (exchange.kind, exchange.answered, exchange.response) == ("too_large", 201, None)
    assert "the API answered 201, so what was asked for is done" in exchange.reason
    assert "must not be repeated" in exchange.reason
    assert "has 50 bytes, more than the 10 bytes that are taken" in exchange.reason
    assert "Ask for less" not in exchange.reason
    assert from_json(to_json(exchange)) == exchange
    assert exchange.replace_elapsed(3.0).answered == 201


@pytest.mark.parametrize("status", [400, 500])
def test_a_refused_write_is_not_told_to_have_happened(status: int) -> None:
    upstream = Told([answer(status, LARGE)])
    released = broker(upstream, rule("POST", read=False), writes=Release(None), caps=SMALL)
    exchange = performed(released.perform(WRITE))
    assert exchange.kind == "too_large"
    assert "is done" not in exchange.reason


def test_a_read_whose_answer_is_too_large_is_only_too_large() -> None:
    exchange = performed(broker(Told([answer(200, LARGE)]), caps=SMALL).perform(get()))
    assert exchange.kind == "too_large"
    assert "done" not in exchange.reason
    assert "Ask for less where an argument allows it: one page" in exchange.reason


class _Late(Told):
    """Answers after a minute of its clock."""

    clock = VirtualClock()

    async def send(self, request: WireRequest) -> WireResponse:
        await self.clock.sleep(60)
        return await super().send(request)


def test_an_answer_that_takes_too_long_says_how_long_it_may_and_of_a_read_what_to_ask_for() -> None:
    late = _Late([answer(200, "x")])
    told = performed(broker(late, clock=late.clock).perform(get()))
    assert told.kind == "timeout"
    assert "within 30 s, which is what an API has for one" in told.reason
    assert "ask for less where an argument allows it" in told.reason
    writing = broker(
        late, rule("POST", read=False), clock=late.clock, writes=Release(digest_request(WRITE))
    )
    assert "ask for less" not in performed(writing.perform(WRITE)).reason


@pytest.mark.parametrize(("answered", "state"), [(201, "done"), (500, "failed"), (0, "unknown")])
def test_an_approved_write_is_done_also_where_its_answer_was_cut(answered: int, state: str) -> None:
    released = broker(Told([]), rule("POST", read=False), writes=Release(None))
    released.released = True
    cut = Exchange(WRITE, None, "too_large", "cut", answered=answered)
    outcome = Outcome("t", {}, Failure("too_large", "cut"), (cut,))
    assert find_write_state(released, Release(digest_request(WRITE)), outcome) == state


def _cut_by_the_network(method: str) -> Exchange:
    async def scenario(url: str) -> Exchange:
        origin = parse_origin(url)
        assert origin is not None
        policy = Policy((rule(method, read=method == "GET", url=url),))
        async with LiveHttp(frozenset({origin}), response_bytes=100) as upstream:
            sender = Broker(policy, upstream, writes=Release(None))
            return await sender.perform(WireRequest(method, f"{url}/things"))

    with served(_Large, lambda url: url) as url:
        return asyncio.run(scenario(url))


def test_the_network_tells_the_status_and_size_of_an_answer_that_it_cuts() -> None:
    exchange = _cut_by_the_network("POST")
    assert (exchange.kind, exchange.answered) == ("too_large", 201)
    assert "is done" in exchange.reason
    assert "has 5000 bytes, more than the 100 bytes" in exchange.reason


def test_a_size_that_is_that_of_the_compressed_answer_is_not_told() -> None:
    exchange = _cut_by_the_network("GET")
    assert exchange.kind == "too_large"
    assert "the answer is larger than the 100 bytes that are taken of one" in exchange.reason
