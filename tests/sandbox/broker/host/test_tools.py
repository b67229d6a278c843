"""One write in one call, also where called tools make it."""

from __future__ import annotations

import asyncio
import json

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.host.tools import (
    KnownCalls,
    ToolCallResult,
    build_success,
    parse_call_request,
)
from sandbox.broker.sender import build_refused_exchange
from sandbox.bundle.example import parse_answers
from sandbox.wire.exchange import Capture, Exchange, Release, WireRequest, WriteMode
from sandbox.wire.policy import Policy
from tests.engine.samples import body

WIRE = WireRequest("POST", "https://api.test/x", (), b"1")


class Writers:
    """Tools that write where they may, all of them together."""

    def __init__(self) -> None:
        self.modes: list[WriteMode] = []

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        self.modes.append(writes)
        await asyncio.sleep(0)
        if isinstance(writes, Capture):
            return ToolCallResult(
                build_refused_exchange(request, "captured", "held"), captured=WIRE
            )
        if writes is None:
            return ToolCallResult(build_refused_exchange(request, "refused", "no write"))
        return ToolCallResult(
            Exchange(request, build_success({})), written=Exchange(WIRE, build_success({}))
        )


def asked(writes: WriteMode, times: int) -> tuple[Broker, Writers, list[str]]:
    broker, calls = Broker(Policy(()), body(b"{}"), writes=writes), Writers()
    request = parse_call_request({"tool": "a.b"}, b"{}")
    assert request

    async def work() -> list[Exchange]:
        together = [broker.perform(request, calls) for _ in range(times)]
        return [*await asyncio.gather(*together), await broker.perform(request, calls)]

    return broker, calls, [exchange.refusal for exchange in asyncio.run(work())]


def test_of_calls_made_at_once_one_may_write() -> None:
    broker, calls, refusals = asked(Release(None), 3)
    assert refusals == ["", "refused", "refused", "refused"]
    assert calls.modes == [Release(None), None, None, None]
    assert broker.released
    assert broker.written


def test_the_first_write_is_the_one_that_is_held() -> None:
    broker, _, refusals = asked(Capture(), 2)
    assert set(refusals) == {"captured"}
    assert broker.captured is WIRE
    assert not broker.released


def test_a_session_that_reads_lends_no_right_to_write() -> None:
    _, calls, refusals = asked(None, 1)
    assert (calls.modes, refusals) == ([None, None], ["refused", "refused"])


@pytest.mark.parametrize(
    ("tool", "content"),
    [("a.b", b"[]"), ("a.b", b"{"), ("", b"{}"), ("a b", b"{}"), ("a" * 200, b"{}"), (7, b"{}")],
)
def test_what_is_no_call_is_not_asked(tool: object, content: bytes) -> None:
    assert parse_call_request({"tool": tool}, content) is None


KEYED = {
    "request": "POST https://api.test/x",
    "headers": {"Idempotency-Key": {"$any": "string"}, "X-Mode": "once"},
    "status": 201,
    "body": {"id": 7},
}


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ((("idempotency-key", "k1"), ("x-mode", "once"), ("accept", "*/*")), True),
        ((("idempotency-key", "k1"), ("x-mode", "twice")), False),
        ((("x-mode", "once"),), False),
        ((("idempotency-key", "k1"), ("idempotency-key", "k2"), ("x-mode", "once")), False),
    ],
)
def test_a_case_can_say_which_headers_a_request_has_to_have(
    headers: tuple[tuple[str, str], ...], taken: bool
) -> None:
    request = WireRequest("POST", "https://api.test/x", headers, b"{}")
    exchange = KnownCalls(parse_answers([KEYED])).answer_request(request)
    assert (exchange.response is not None) is taken
    if not taken:
        assert "idempotency-key, x-mode" in exchange.reason


def poll(*states: str) -> KnownCalls:
    asked = "GET https://api.test/jobs/7"
    bodies = [{"request": asked, "status": 200, "body": {"state": state}} for state in states]
    other = {"request": "GET https://api.test/jobs/8", "status": 200, "body": {"state": "other"}}
    return KnownCalls(parse_answers([bodies[0], other, *bodies[1:]]))


def ask(calls: KnownCalls, number: int) -> str:
    request = WireRequest("GET", f"https://api.test/jobs/{number}", (), b"")
    response = calls.answer_request(request).response
    assert response is not None
    return str(json.loads(response.body)["state"])


def test_several_answers_to_one_request_are_given_in_order_and_the_last_from_then_on() -> None:
    calls = poll("pending", "done")
    assert [ask(calls, n) for n in (7, 8, 7, 8, 7)] == ["pending", "other", "done", "other", "done"]
    assert ask(calls.restart(), 7) == "pending"


def test_several_answers_to_one_call_are_given_in_order_and_other_calls_do_not_count() -> None:
    answers = [
        {"tool": "jobs.get", "arguments": {"id": number}, "result": state}
        for number, state in ((7, "pending"), (8, "other"), (7, "done"))
    ]
    calls, got = KnownCalls(parse_answers(answers)), []
    for number in (7, 8, 7, 7):
        request = parse_call_request({"tool": "jobs.get"}, b'{"id": %d}' % number)
        assert request
        response = asyncio.run(calls.perform(request, None)).exchange.response
        assert response is not None
        got.append(json.loads(response.body)["result"])
    assert got == ["pending", "other", "done", "done"]
