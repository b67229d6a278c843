"""The same call with the same recording gives the same bytes, whenever and wherever."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.broker.cassette import ReplayBroker
from sandbox.bundle.model import Bundle
from sandbox.engines.wasm.purity import keeps_state
from sandbox.session.interface import Outcome
from sandbox.session.recording import (
    FROZEN_TIME_NS,
    CallInputs,
    CallLog,
    CallRecording,
    SeededRandom,
    choose_inputs,
    create_live_inputs,
    pack_recording,
    unpack_recording,
)
from sandbox.wire.exchange import WireRequest, WireResponse
from tests.engine.samples import FETCH, JSON, body, broker, bundle

Wasm = Callable[..., Any]
AT = CallInputs(1_700_000_000_123_456_789, "cd" * 32)
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
def all_of_them(n):
    examples = (moments, chances, names, orders, numbers, memories)
    return {example.__name__: example(n) for example in examples}

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
EXAMPLES = ("moments", "chances", "names", "orders", "numbers", "memories")
TOOLS = (*EXAMPLES, "all_of_them", "questions")
SERVER, PURE = bundle(SOURCE, *TOOLS), bundle(SOURCE, *TOOLS, pure=True)


class Counting:
    """An upstream that never gives the same answer twice."""

    def __init__(self) -> None:
        self.count = 0

    async def send(self, request: WireRequest) -> WireResponse:
        self.count += 1
        return WireResponse(200, JSON, json.dumps({"n": self.count}).encode())


def content(outcome: Outcome) -> bytes:
    return json.dumps([outcome.result, repr(outcome.exchanges)], ensure_ascii=False).encode()


async def call(
    runner: Any, of: Bundle, tool: str, upstream: Any = None, times: int = 1
) -> list[tuple[Outcome, CallLog]]:
    """Calls of a tool in one session, with what each took in."""
    made = []
    async with runner.open(of, broker(of, upstream or Counting())) as session:
        for _ in range(times):
            tape = CallLog()
            made.append((await session.call(tool, {"n": 7}, tape=tape), tape))
    return made


async def replayed(runner: Any, tool: str, recording: CallRecording, times: int) -> set[bytes]:
    replay = ReplayBroker(recording.exchanges * times)
    async with runner.open(SERVER, replay) as session:
        found = {
            content(await session.call(tool, {"n": 7}, tape=CallLog(recording.inputs)))
            for _ in range(times)
        }
    # What asks for nothing that it was refused is not asked for again.
    assert not replay.unused
    assert not replay.surprises
    return found


def on_two_days(wasm: Wasm, of: Bundle, tool: str, times: int = 1) -> list[tuple[Outcome, CallLog]]:
    """The same calls in two engines that live at different times."""

    async def run() -> list[tuple[Outcome, CallLog]]:
        made = []
        for live in (AT, CallInputs(AT.time_ns + 86_400_000_000_000, "ef" * 32)):
            async with wasm(make_inputs=lambda live=live: live) as runner:
                made += await call(runner, of, tool, times=times)
        return made

    return asyncio.run(run())


@pytest.mark.parametrize("tool", ["all_of_them", "questions"])
def test_a_recording_gives_the_same_bytes_a_hundred_times_in_two_sessions(
    wasm: Wasm, tool: str
) -> None:
    async def run() -> None:
        async with wasm(spares=1) as runner:
            ((first, tape),) = await call(runner, SERVER, tool)
            assert first.ok, first.failure
            made = CallRecording("wasm", "sha256", {"n": 7}, tape.inputs, tuple(tape.exchanges))
            packed = pack_recording(made)
            assert packed is not None
            assert unpack_recording(packed) == made
            found = await asyncio.gather(
                *(replayed(runner, tool, unpack_recording(packed), times=50) for _ in range(2))
            )
            assert found == [{content(first)}] * 2

    asyncio.run(run())


@pytest.mark.parametrize(("tool", "times"), [("all_of_them", 50), *((e, 1) for e in EXAMPLES)])
def test_a_pure_tool_gives_the_same_bytes_a_hundred_times_on_two_days(
    wasm: Wasm, tool: str, times: int
) -> None:
    made = on_two_days(wasm, PURE, tool, times)
    assert len(made) == 2 * times
    assert all(outcome.ok for outcome, _ in made)
    assert len({content(outcome) for outcome, _ in made}) == 1


@pytest.mark.parametrize("tool", ["moments", "chances", "names"])
def test_a_tool_that_may_ask_the_host_has_the_present_time_and_fresh_chance(
    wasm: Wasm, tool: str
) -> None:
    (one, first), (other, second) = on_two_days(wasm, SERVER, tool)
    assert one.structured != other.structured
    assert first.inputs == AT != second.inputs


@pytest.mark.parametrize(
    ("permission", "tool", "changes"),
    [
        ("clock", "moments", True),
        ("clock", "chances", False),
        ("random", "chances", True),
        ("random", "moments", False),
    ],
)
def test_a_pure_tool_gets_what_its_bundle_declares(
    wasm: Wasm, permission: str, tool: str, changes: bool
) -> None:
    declared = replace(PURE, permissions=(permission,))
    (one, _), (other, _) = on_two_days(wasm, declared, tool)
    assert (one.structured != other.structured) is changes


def test_a_pure_tool_s_time_stands_still_and_its_chance_depends_on_what_is_asked() -> None:
    def inputs(tool: str, of: Bundle = PURE, n: int = 7) -> CallInputs:
        return choose_inputs(of, tool, {"n": n, "m": 1}, AT)

    assert inputs("chances").time_ns == FROZEN_TIME_NS
    assert choose_inputs(PURE, "chances", {"m": 1, "n": 7}, AT) == inputs("chances")
    mended = replace(PURE, source_code=SOURCE + "#")
    others = (inputs("names"), inputs("chances", n=8), inputs("chances", mended))
    assert len({inputs("chances").seed, *(other.seed for other in others)}) == 4


def test_a_fault_is_replayed_like_an_answer(wasm: Wasm) -> None:
    made = bundle(FETCH, "fetch")

    async def run() -> None:
        async with wasm() as runner:
            async with runner.open(made, broker(made, body(b"{", 503))) as session:
                first = await session.call("fetch", {"key": "a"})
            replay = ReplayBroker(first.exchanges)
            async with runner.open(made, replay) as session:
                again = await session.call("fetch", {"key": "a"})
                other = await session.call("fetch", {"key": "b"})
        assert first.failure is not None
        assert (again.result, again.exchanges) == (first.result, first.exchanges)
        assert other.failure.kind == "refused"
        assert "not the request that was recorded" in other.failure.message
        assert [place for place, _ in replay.surprises] == [1]

    asyncio.run(run())


def test_python_s_random_is_seeded_by_the_call_unless_its_code_seeds_it(wasm: Wasm) -> None:
    source = """
from random import Random, gauss, getstate, random, seed, setstate
from toolwright import tool

@tool
def chance(mode):
    if mode == "seeded":
        seed(5)
    if mode == "returned":
        state = getstate()
        before = random()
        setstate(state)
        return {"got": [before == random()]}
    return {"got": [random(), gauss(0, 1), gauss(0, 1)]}
"""
    made = bundle(source, "chance", pure=True)

    async def run() -> list[Any]:
        async with wasm() as runner, runner.open(made, broker(made, Counting())) as session:
            modes = ("seeded", "fresh", "seeded", "fresh", "returned")
            outcomes = [await session.call("chance", {"mode": mode}) for mode in modes]
            return [outcome.structured["got"] for outcome in outcomes]

    seeded, fresh, *others = asyncio.run(run())
    own = random.Random(5)
    assert seeded == [own.random(), own.gauss(0, 1), own.gauss(0, 1)]
    assert fresh != seeded
    assert others == [seeded, fresh, [True]]


@given(st.text("0123456789abcdef", min_size=64, max_size=64), st.lists(st.integers(0, 300)))
def test_entropy_is_one_stream_however_it_is_read(seed: str, sizes: list[int]) -> None:
    pieces = SeededRandom(seed)
    assert b"".join(map(pieces.read_bytes, sizes)) == SeededRandom(seed).read_bytes(sum(sizes))


def test_live_inputs_differ() -> None:
    one, other = create_live_inputs(), create_live_inputs()
    assert one.seed != other.seed
    assert len(one.seed) == 64
    assert one.time_ns <= other.time_ns


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
        ("import asyncio\ndef f():\n    return asyncio.run(g())\n", True),
        ("from asyncio import run\ndef f():\n    return run(g())\n", True),
        ("import zlib\ndef f(x):\n    return zlib.crc32(x)\n", False),
        ("def f():\n    return id(f)\n", True),
        ("def f(id):\n    return {'id': id}\n", False),
    ],
)
def test_code_that_could_keep_something_is_known(source: str, keeps: bool) -> None:
    assert keeps_state(source) is keeps
