"""Calls that would fill the host's memory, or flood an API: what is held and sent has an end.

What is held is counted by the budgets themselves and by the sizes of what is kept; `tracemalloc`
counts what was copied.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Throttle, find_overrun
from sandbox.budget import (
    CALL_FULL,
    MEGABYTE,
    ByteBudget,
    CallUsage,
    build_process_budget,
    work_for,
)
from sandbox.clock import VirtualClock
from sandbox.engines.docker.engine import ContainerLabels, DockerRunner
from sandbox.errors import SessionBroken
from sandbox.session.interface import Limits, Outcome
from sandbox.session.pipe import PipeSession
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Caps, WireRequest, WireResponse, measure_exchange
from sandbox.wire.policy import build_read_policy
from tests.attacks.test_answers import HEAD, whole
from tests.attacks.wire import brokered, listener, rule
from tests.engine.conftest import Engine, engine, wasm
from tests.engine.samples import JSON, RUN, Api, body, broker, bundle

__all__ = ["engine", "wasm"]

SAMPLE = bundle(RUN, "run")
SMALL = Limits(call_bytes=4 * MEGABYTE, call_seconds=3600.0)
CHUNK = 256 * 1024
ASK = """
got = {{}}
for n in range({times}):
    try:
        http.request("GET", "/items/a")
        kind = "fine"
    except Exception as error:
        kind = error.kind
        last = str(error)
    got[kind] = got.get(kind, 0) + 1
    if kind != "fine":
        got["last"] = last
"""


def asking(times: int) -> dict[str, str]:
    return {"code": ASK.format(times=times)}


def large(_: WireRequest) -> WireResponse:
    return WireResponse(200, JSON, b'"' + b"x" * CHUNK + b'"')


def count_kept(tape: CallLog) -> int:
    return sum(map(measure_exchange, tape.exchanges))


@pytest.mark.parametrize(("times", "refused"), [(10, False), (200, True)], ids=["few", "many"])
def test_what_is_kept_of_a_call_s_answers_has_an_end(
    engine: Engine, times: int, refused: bool
) -> None:
    tape = CallLog()

    async def run() -> Outcome:
        async with engine(limits=SMALL) as runner:
            async with runner.open(SAMPLE, broker(SAMPLE, Api(large))) as session:
                outcome = await session.call("run", asking(times), tape=tape)
                again = await session.call("run", asking(1))
                assert again.structured["got"] == {"fine": 1}
                return outcome

    got = asyncio.run(run()).structured["got"]
    assert tape.usage is not None
    assert count_kept(tape) <= tape.usage.memory.held <= SMALL.call_bytes
    assert got["fine"] == (15 if refused else times)
    assert got.get("too_large", 0) == times - got["fine"]
    if refused:
        assert "hold more than 4 MB" in got["last"]


def test_what_a_server_leaves_unread_has_an_end(docker_engine: Any) -> None:
    """The code keeps the runtime from reading, and asks on past it."""
    source = """
import fcntl, json, os, sys, time
from toolwright import tool

def find_pipe():
    frame = sys._getframe()
    while frame:
        found = frame.f_locals.get("self")
        if type(found).__name__ == "Pipe":
            return found
        frame = frame.f_back

def wire():
    for fd in range(3, 32):
        try:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                return fd
        except OSError:
            pass

@tool
def ask(call):
    find_pipe()._changed.acquire()
    params = {"kind": "http", "call": call, "method": "GET", "url": "https://api.test/v1/items/a"}
    for number in range(10**9):
        told = {"jsonrpc": "2.0", "id": "x%d" % number, "method": "toolwright/request"}
        os.write(wire(), json.dumps({**told, "params": params}).encode() + b"\\n")
        time.sleep(0.0005)
"""
    sample = bundle(source, "ask")
    unread: list[int] = []

    async def run() -> None:
        async with make_docker(docker_engine)(limits=SMALL) as runner:
            process = build_process_budget(400)
            of = Broker(build_read_policy(sample), Api(answer), memory=process)
            async with runner.open(sample, of) as session:
                assert isinstance(session, PipeSession)
                sessions.append(session)
                with pytest.raises(SessionBroken):
                    await session.call("ask", {"call": "000000000003"})
            sessions.clear()
            del session
            assert process.held == 0

    sessions: list[PipeSession] = []

    def answer(request: WireRequest) -> WireResponse:
        unread.append(sessions[0]._pipe.count_unread())
        return large(request)

    asyncio.run(run())
    assert max(unread) <= SMALL.call_bytes + SMALL.line_bytes


def make_docker(docker_engine: Any) -> Engine:
    client, image = docker_engine
    return partial(DockerRunner, client, image, ContainerLabels("test", "engine"))


LONG = {
    "asked for": "import wit_world; got = wit_world.exchange('x' * (90 << 20))",
    "in wide letters": "import wit_world; got = wit_world.exchange('\\u20ac' * (30 << 20))",
    "printed": "print('x' * (90 << 20)); got = 1",
    "answered": (
        "import toolwright.wire as wire; wire._written = lambda told: 'x' * (90 << 20); got = 1"
    ),
}


@pytest.mark.parametrize("way", LONG)
def test_a_long_text_of_the_code_is_not_copied_before_its_length_is_known(
    wasm: Callable[..., Any], way: str
) -> None:
    async def run() -> tuple[Outcome, int]:
        limits = Limits(memory_mb=256, call_seconds=3600.0)
        async with wasm(limits=limits) as runner:
            async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
                await session.call("run", {"code": "got = 1"})
                tracemalloc.start()
                try:
                    outcome = await session.call("run", {"code": LONG[way]})
                    return outcome, tracemalloc.get_traced_memory()[1]
                finally:
                    tracemalloc.stop()

    outcome, peak = asyncio.run(run())
    assert peak < 20 * MEGABYTE
    assert outcome.ok == (way == "printed")
    if outcome.failure:
        assert "than a line may" in outcome.failure.message


def test_a_text_of_ordinary_length_is_heard(wasm: Callable[..., Any]) -> None:
    code = "import wit_world; print('y' * 1000); "
    code += "got = wit_world.exchange('{\"a\":\"' + 'x' * 1000000 + '\"}')"

    async def run() -> tuple[Outcome, bytes]:
        async with wasm() as runner:
            async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
                outcome = await session.call("run", {"code": code})
                return outcome, bytes(session.stderr)

    outcome, printed = asyncio.run(run())
    assert "no such call" in outcome.structured["got"]
    assert printed.count(b"y") == 1000


def test_arguments_are_a_part_of_the_budget(engine: Engine) -> None:
    async def run() -> list[Outcome]:
        async with engine(limits=SMALL) as runner:
            async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
                fits = {"code": "got = 1  # " + "x" * MEGABYTE}
                beyond = {"code": "got = 1  # " + "x" * 5 * MEGABYTE}
                return [await session.call("run", given) for given in (fits, beyond, fits)]

    fine, refused, again = asyncio.run(run())
    assert fine.structured == again.structured == {"got": 1}
    assert refused.failure is not None
    assert (refused.failure.kind, "4 MB" in refused.failure.message) == ("too_large", True)


def test_a_full_process_sheds_what_is_large_and_serves_what_is_small(
    wasm: Callable[..., Any],
) -> None:
    process = build_process_budget(3)

    async def run() -> tuple[Outcome, Outcome, Outcome]:
        hog, other = (
            Broker(build_read_policy(SAMPLE), Api(large), memory=process) for _ in range(2)
        )
        async with wasm(limits=SMALL) as runner:
            async with runner.open(SAMPLE, other) as session:
                tape = CallLog()
                async with runner.open(SAMPLE, hog) as hogging:
                    await hogging.call("run", asking(200), tape=tape)
                held = process.held
                small = await session.call("run", asking(1))
                shed = await session.call("run", asking(8))
                assert held > process.limit - CHUNK
                del tape
                served = await session.call("run", asking(8))
                return small, shed, served

    small, shed, served = asyncio.run(run())
    assert small.structured["got"] == {"fine": 1}
    assert shed.structured["got"]["too_large"] > 0
    assert "TOOLWRIGHT_CALLS_MB" in shed.structured["got"]["last"]
    assert served.structured["got"] == {"fine": 8}
    assert process.held == 0


@pytest.mark.parametrize("begun", [HEAD + b"\r\n", HEAD + b"Content-Length: 99999999\r\n\r\n"])
def test_an_answer_is_counted_while_it_is_read(begun: bytes) -> None:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        while True:
            writer.write(b"x" * 60_000)
            await writer.drain()

    async def run() -> tuple[str, str, int]:
        call = CallUsage(ByteBudget(MEGABYTE, CALL_FULL))
        async with listener(write) as api:
            async with brokered(rule(api.origin), granted=[api.origin]) as of:
                with work_for(call):
                    exchange = await of.perform(WireRequest("GET", api.url("/items/a")))
                return exchange.refusal, exchange.reason, call.memory.held

    refusal, reason, held = asyncio.run(run())
    assert (refusal, "more than 1 MB" in reason, held) == ("too_large", True, 0)


def test_an_answer_within_the_budget_is_read_whole() -> None:
    content = b"x" * (MEGABYTE // 2)

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(whole(content))

    async def run() -> bytes:
        call = CallUsage(ByteBudget(MEGABYTE, CALL_FULL))
        async with listener(write) as api:
            async with brokered(rule(api.origin), granted=[api.origin]) as of:
                with work_for(call):
                    exchange = await of.perform(WireRequest("GET", api.url("/items/a")))
                assert exchange.response is not None
                return exchange.response.body

    assert asyncio.run(run()) == content


def test_refused_requests_are_kept_up_to_a_number(wasm: Callable[..., Any]) -> None:
    tape = CallLog()

    async def run() -> Any:
        of = broker(SAMPLE, body(b"{}"), Caps(exchanges=5))
        async with wasm() as runner, runner.open(SAMPLE, of) as session:
            outcome = await session.call("run", asking(50), tape=tape)
            again = await session.call("run", asking(5))
            assert again.structured["got"] == {"fine": 5}
            return outcome

    got = asyncio.run(run()).structured["got"]
    assert (got["fine"], got["refused"], len(tape.exchanges)) == (5, 45, 10)


def sent(engine: Engine, times: int, allowed: int | None = None) -> tuple[int, Any, float]:
    """How many requests of one call reached the API, what the call says, and how long it took on
    the broker's clock.
    """
    api, clock = body(b"{}"), VirtualClock()
    paced = ServerPaces("sample", ()) if allowed is None else ServerPaces("sample", (), allowed)

    async def run() -> Any:
        of = Broker(build_read_policy(SAMPLE), api, throttle=Throttle(), clock=clock, paced=paced)
        async with engine() as runner, runner.open(SAMPLE, of) as session:
            outcome = await session.call("run", asking(times), seconds=3600.0)
            again = await session.call("run", asking(1))
            assert again.structured["got"] == {"fine": 1}
            return outcome.structured["got"]

    started = clock.now()
    got = asyncio.run(run())
    return len(api.asked) - 1, got, clock.now() - started


def test_one_call_does_not_flood_an_api(engine: Engine) -> None:
    reached, got, took = sent(engine, 400)
    assert reached == got["fine"] == 100
    assert got["refused"] == 300
    assert "toolwright grant sample requests:1000" in got["last"]
    # Twenty at once, the rest at ten a second.
    assert took >= 7.9


def test_a_tool_that_turns_some_tens_of_pages_is_not_held_up(engine: Engine) -> None:
    reached, got, took = sent(engine, 20)
    assert (reached, got, took) == (20, {"fine": 20}, 0.0)
    assert sent(engine, 60)[:2] == (60, {"fine": 60})


def test_a_person_lets_the_calls_of_a_server_send_more(wasm: Callable[..., Any]) -> None:
    assert sent(wasm, 150, 300)[:2] == (150, {"fine": 150})


def test_what_the_tools_send_that_a_call_called_counts_as_its_own() -> None:
    outer = CallUsage(ByteBudget(MEGABYTE, CALL_FULL), "outer", 10)
    for number in range(10):
        inner = CallUsage(ByteBudget(MEGABYTE, CALL_FULL), f"inner{number}", 10, outer)
        assert find_overrun(inner, "api.test") == ""
    inner = CallUsage(ByteBudget(MEGABYTE, CALL_FULL), "inner", 10, outer)
    assert "call of outer" in find_overrun(inner, "api.test")
    assert find_overrun(inner, "other.test") == ""
