"""What a call took in survives being stored, whole or not at all."""

from __future__ import annotations

import asyncio
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import ReplayBroker
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.session import recording as recordings
from sandbox.session.pipe import CUT
from sandbox.session.recording import (
    CallInputs,
    CallLog,
    CallRecording,
    pack_recording,
    unpack_recording,
)
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy
from tests.engine.samples import FETCH, body, broker, bundle
from tests.sandbox.local import LocalRunner

texts = st.text(st.characters(exclude_categories=()), max_size=20)
headers = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
requests = st.builds(WireRequest, texts, texts, headers, st.binary(max_size=20))
responses = st.builds(WireResponse, st.integers(100, 599), headers, st.binary(max_size=20))
exchanges = st.builds(Exchange, requests, st.none() | responses, texts, texts, st.integers(0, 3))
arguments = st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(texts), max_size=3)
made = st.builds(
    CallRecording,
    texts,
    texts,
    arguments,
    st.none() | st.builds(CallInputs, st.integers(0), texts),
    st.lists(exchanges).map(tuple),
)
GET = WireRequest("GET", "https://api.test/a")
POST = WireRequest("POST", "https://api.test/a", body=b"{}")
FIRST = Exchange(GET, WireResponse(200, body=b"1"))
SECOND = Exchange(POST, WireResponse(201, body=b"2"))


@given(made)
def test_a_packed_recording_is_unpacked_as_it_was(recording: CallRecording) -> None:
    packed = pack_recording(recording)
    assert packed is not None
    assert unpack_recording(packed) == recording


@pytest.mark.parametrize("size", [recordings.MAX_BYTES, recordings.MAX_BYTES + 1])
def test_what_is_too_large_to_keep_is_not_packed(size: int) -> None:
    answer = WireResponse(200, body=bytes(size))
    assert pack_recording(CallRecording("docker", "", exchanges=(Exchange(GET, answer),))) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        zlib.compress(b""),
        zlib.compress(b"[]"),
        zlib.compress(b'{"engine": 1}'),
        zlib.compress(b"[" * 100_000),
        zlib.compress(bytes(recordings.MAX_BYTES + 2)),
    ],
)
def test_what_is_no_recording_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="recording"):
        unpack_recording(content)


def test_a_recording_that_was_cut_is_refused() -> None:
    packed = pack_recording(CallRecording("docker", "sha256:1", exchanges=(FIRST,)))
    assert packed is not None
    with pytest.raises(ValueError, match="recording"):
        unpack_recording(packed[:-5])


def performed(replay: ReplayBroker, *asked: WireRequest) -> list[Exchange]:
    async def run() -> list[Exchange]:
        return [await replay.perform(request) for request in asked]

    return asyncio.run(run())


def test_a_replay_answers_in_the_recorded_order_and_nothing_else() -> None:
    replay = ReplayBroker((FIRST, SECOND))
    assert performed(replay, GET) == [FIRST]
    assert replay.unused == (SECOND,)
    assert performed(replay, POST) == [SECOND]
    assert not replay.unused
    assert not replay.surprises
    (refused,) = performed(replay, GET)
    assert (refused.response, refused.refusal) == (None, "refused")
    assert replay.surprises == [(2, GET)]


def test_a_replay_refuses_what_comes_before_its_turn() -> None:
    replay = ReplayBroker((FIRST, SECOND))
    (early, first) = performed(replay, POST, GET)
    assert (early.refusal, first) == ("refused", FIRST)
    assert replay.surprises == [(0, POST)]
    assert replay.unused == (SECOND,)


class Deaf:
    """An upstream that never answers."""

    async def send(self, request: WireRequest) -> WireResponse:
        await asyncio.Event().wait()
        raise AssertionError("it was answered")


def test_what_a_call_was_cut_off_waiting_for_is_on_its_tape() -> None:
    made = bundle(FETCH, "fetch")

    async def run() -> CallLog:
        tape = CallLog()
        async with LocalRunner().open(made, Broker(build_read_policy(made), Deaf())) as session:
            with pytest.raises(CallTimedOut, match="its sandbox was stopped"):
                await session.call("fetch", {"key": "a"}, 1.0, tape)
        return tape

    (exchange,) = asyncio.run(run()).exchanges
    assert exchange.request.url == "https://api.test/v1/items/a"
    assert (exchange.response, exchange.refusal) == (None, CUT)


def test_what_a_call_exchanged_before_its_sandbox_ended_is_on_its_tape() -> None:
    source = FETCH.replace("return http", "import os; http") + "    os._exit(1)\n"
    made = bundle(source, "fetch")

    async def run() -> CallLog:
        tape = CallLog()
        async with LocalRunner().open(made, broker(made, body(b"{}"))) as session:
            with pytest.raises(SessionBroken):
                await session.call("fetch", {"key": "a"}, tape=tape)
        return tape

    tape = asyncio.run(run())
    assert [e.response and e.response.status for e in tape.exchanges] == [200]
    assert tape.inputs is None
