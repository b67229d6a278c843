"""The same call with the same recording gives the same bytes, whenever and wherever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exchange import Exchange, WireRequest, WireResponse
from sandbox.runner import Outcome
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_recording import (
    Entropy,
    Inputs,
    RecordedOutcome,
    Recording,
    Replay,
    from_json,
    live_inputs,
    to_json,
)
from sandbox.wasm_state import keeps_state
from tests.engine.samples import FETCH, JSON, Api, body, broker, bundle

Wasm = Callable[..., Any]
AT = Inputs(1_700_000_000_123_456_789, "cd" * 32)
SOURCE = """
import datetime, random, statistics, time, uuid
from toolwright import http, tool

SEEN = []

class Thing:
    pass

@tool
def moments(n):
    return {"now": str(datetime.datetime.now()), "today": str(datetime.date.today()),
            "time": time.time(), "monotonic": time.monotonic(), "year": time.gmtime().tm_year}

@tool
def chances(n):
    return {"random": [random.random() for _ in range(n)], "gauss": random.gauss(0, 1),
            "pick": random.sample(range(1000), 5), "bits": random.SystemRandom().getrandbits(64)}

@tool
def names(n):
    return {"four": [str(uuid.uuid4()) for _ in range(n)], "one": str(uuid.uuid1())}

@tool
def orders(n):
    return {"words": list({f"word {i}" for i in range(n)}), "hash": hash("word"),
            "things": repr({Thing() for _ in range(n)}), "id": id(Thing())}

@tool
def numbers(n):
    return {"sum": sum(0.1 for _ in range(n)), "power": [1.0000001 ** i for i in range(n)],
            "stdev": statistics.stdev([i ** 0.3 for i in range(n)]), "tiny": 5e-324 / 3}

@tool
def memories(n):
    SEEN.append(n)
    return {"seen": len(SEEN)}

@tool
def questions(n):
    first = http.request("GET", "/items/{key}", path={"key": uuid.uuid4().hex}).body
    try:
        http.request("DELETE", "/items/x")
    except Exception as error:
        refused = error.kind
    again = http.request("GET", "/items/{key}", path={"key": first["n"]}).body
    return {"first": first, "again": again, "refused": refused, "chance": random.random()}
"""
TOOLS = ("moments", "chances", "names", "orders", "numbers", "memories", "questions")
SERVER = bundle(SOURCE, *TOOLS)


class Counting:
    """An upstream that never gives the same answer twice."""

    def __init__(self) -> None:
        self.count = 0

    async def send(self, request: WireRequest) -> WireResponse:
        self.count += 1
        return WireResponse(200, JSON, json.dumps({"n": self.count}).encode())


def content(outcome: Outcome) -> bytes:
    return json.dumps([outcome.result, repr(outcome.exchanges)], ensure_ascii=False).encode()


async def call(runner: Any, upstream: Any, tool: str) -> RecordedOutcome:
    async with runner.open(SERVER, broker(SERVER, upstream)) as session:
        outcome: RecordedOutcome = await session.call(tool, {"n": 7})
        return outcome


async def replayed(runner: Any, tool: str, recording: Recording, times: int) -> set[bytes]:
    async with runner.open(SERVER, broker(SERVER, Api(nothing)), recording=recording) as session:
        return {content(await session.call(tool, {"n": 7})) for _ in range(times)}


def nothing(request: WireRequest) -> WireResponse:
    raise AssertionError("a replay asked the upstream")


def recorded(wasm: Wasm, tool: str, times: int = 1) -> list[RecordedOutcome]:
    async def run() -> list[RecordedOutcome]:
        async with wasm() as runner:
            return [await call(runner, Counting(), tool) for _ in range(times)]

    return asyncio.run(run())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_recording_gives_the_same_bytes_a_hundred_times_in_two_sessions(
    wasm: Wasm, tool: str
) -> None:
    async def run() -> None:
        async with wasm(spares=1) as runner:
            first = await call(runner, Counting(), tool)
            assert first.ok, first.failure
            assert first.recording is not None
            recording = from_json(json.loads(json.dumps(to_json(first.recording))))
            assert recording == first.recording
            found = await asyncio.gather(
                *(replayed(runner, tool, recording, times=50) for _ in range(2))
            )
            assert found == [{content(first)}] * 2

    asyncio.run(run())


@pytest.mark.parametrize("tool", ["moments", "chances", "names"])
def test_without_a_recording_time_and_chance_are_fresh(wasm: Wasm, tool: str) -> None:
    one, other = recorded(wasm, tool, times=2)
    assert one.structured != other.structured
    assert one.recording != other.recording


@pytest.mark.parametrize("tool", ["orders", "numbers", "memories"])
def test_what_takes_neither_is_the_same_without_a_recording(wasm: Wasm, tool: str) -> None:
    one, other = recorded(wasm, tool, times=2)
    assert one.result == other.result


def test_a_fault_is_replayed_like_an_answer(wasm: Wasm) -> None:
    made = bundle(FETCH, "fetch")

    async def run() -> None:
        async with wasm() as runner:
            async with runner.open(made, broker(made, body(b"{", 503))) as session:
                first = await session.call("fetch", {"key": "a"})
            async with runner.open(
                made, broker(made, Api(nothing)), recording=first.recording
            ) as session:
                again = await session.call("fetch", {"key": "a"})
                other = await session.call("fetch", {"key": "b"})
        assert first.failure is not None
        assert (again.result, again.exchanges) == (first.result, first.exchanges)
        assert other.failure.kind == "refused"
        assert "not the request that was recorded" in other.failure.message

    asyncio.run(run())


def test_a_recording_names_the_component_it_was_made_in(
    wasm: Wasm, component: LoadedComponent
) -> None:
    (outcome,) = recorded(wasm, "moments")
    assert outcome.recording is not None
    assert outcome.recording.component == component.digest


@given(st.text("0123456789abcdef", min_size=64, max_size=64), st.lists(st.integers(0, 300)))
def test_entropy_is_one_stream_however_it_is_read(seed: str, sizes: list[int]) -> None:
    pieces = Entropy(seed)
    assert b"".join(map(pieces.read, sizes)) == Entropy(seed).read(sum(sizes))


def test_live_inputs_differ() -> None:
    one, other = live_inputs(), live_inputs()
    assert one.seed != other.seed
    assert len(one.seed) == 64
    assert one.time_ns <= other.time_ns


texts = st.text(max_size=20)
headers = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
requests = st.builds(WireRequest, texts, texts, headers, st.binary(max_size=20))
responses = st.builds(WireResponse, st.integers(100, 599), headers, st.binary(max_size=20))
exchanges = st.builds(Exchange, requests, st.none() | responses, texts, texts, st.integers(0, 3))
recordings = st.builds(
    Recording, texts, st.builds(Inputs, st.integers(0), texts), st.lists(exchanges).map(tuple)
)


@given(recordings)
def test_a_recording_survives_being_written_as_json(recording: Recording) -> None:
    assert from_json(json.loads(json.dumps(to_json(recording)))) == recording


@given(st.lists(exchanges, min_size=1, max_size=4))
def test_a_replay_answers_in_order_and_starts_again(made: list[Exchange]) -> None:
    async def run() -> None:
        replay = Replay(tuple(made))
        for exchange in [*made, *made]:
            assert await replay.perform(exchange.request) == exchange

    asyncio.run(run())


@pytest.mark.parametrize(
    ("source", "keeps"),
    [
        (FETCH, False),
        ("import re\nX = re.compile('a')\nY: int = -1\nZ = (1, 'a', X)\n", False),
        ("def f(a=1, *, b=(2, 3)):\n    rows = []\n    rows.append(a)\n    return rows\n", False),
        ("SEEN = []\n", True),
        ("SEEN = dict()\n", True),
        ("def f(a=[]): return a\n", True),
        ("def f(*, a={}): return a\n", True),
        ("class A:\n    n = 0\n", True),
        ("def f():\n    f.n = 1\n", True),
        ("def f():\n    global n\n    n = 1\n", True),
        ("def f(c):\n    exec(c)\n", True),
        ("import csv\ndef f():\n    csv.register_dialect('x')\n", True),
        ("import decimal\ndef f():\n    decimal.getcontext().clear_traps()\n", True),
        ("import json\ndef f():\n    json.__dict__['x'] = 1\n", True),
        ("def (\n", True),
    ],
)
def test_code_that_could_keep_something_is_known(source: str, keeps: bool) -> None:
    assert keeps_state(source) is keeps
