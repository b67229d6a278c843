"""Instances of the WASM engine that have a server's bundle before anybody opens it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from sandbox.bundle.model import Bundle
from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.engines.wasm.pool import MAX_KNOWN
from sandbox.errors import LoadFailed
from sandbox.killswitch import KillSwitch
from sandbox.session.recording import CallInputs, CallLog
from tests.engine.samples import body, broker, bundle

COUNTING = """
import random, uuid
from toolwright import tool

SEEN = []
print("loaded")

@tool
def count(text=""):
    SEEN.append(text)
    where = [id(object()), hash("a"), list({"a", "b", "c"})]
    return {"seen": SEEN, "chance": [random.random(), str(uuid.uuid4())], "where": where}
"""
SERVER = bundle(COUNTING, "count")
AT = CallInputs(1_700_000_000_123_456_789, "ab" * 32)
Use = Callable[[WasmRunner], Awaitable[None]]


def with_spares(component: LoadedComponent, use: Use, **options: Any) -> None:
    async def run() -> None:
        made = WasmRunner(
            component, spares=1, make_inputs=lambda: AT, opening_seconds=60.0, **options
        )
        async with made as runner:
            await use(runner)

    asyncio.run(run())


async def counted(runner: WasmRunner, of: Bundle = SERVER) -> tuple[Any, bytes]:
    """What a first call gives in a session of its own, and what was printed in that."""
    async with runner.open(of, broker(of, body(b"{}"))) as session:
        outcome = await session.call("count", {"text": "a"})
        return outcome.structured, bytes(session.stderr)


def test_an_instance_that_was_opened_ahead_gives_the_same_bytes(component: LoadedComponent) -> None:
    async def use(runner: WasmRunner) -> None:
        first = await counted(runner)
        await runner.pool.wait_replenished()
        assert runner.pool.ahead == 1
        assert await counted(runner) == first
        assert first[0]["seen"] == ["a"]
        assert first[1] == b"loaded\n"

    with_spares(component, use)


def test_two_sessions_never_get_the_same_instance(component: LoadedComponent) -> None:
    async def use(runner: WasmRunner) -> None:
        await counted(runner)
        await runner.pool.wait_replenished()
        async with (
            runner.open(SERVER, broker(SERVER, body(b"{}"))) as one,
            runner.open(SERVER, broker(SERVER, body(b"{}"))) as other,
        ):
            assert runner.pool.ahead == 0
            outcomes = [await session.call("count", {"text": "b"}) for session in (one, other)]
        assert [outcome.structured["seen"] for outcome in outcomes] == [["b"], ["b"]]

    with_spares(component, use)


@pytest.mark.parametrize(
    "other",
    [
        replace(SERVER, name="other"),
        replace(SERVER, version=2),
        bundle(COUNTING.replace("SEEN = []", "SEEN = [1]"), "count"),
    ],
    ids=["name", "version", "code"],
)
def test_an_instance_is_for_the_very_bundle_it_was_opened_with(
    component: LoadedComponent, other: Bundle
) -> None:
    async def use(runner: WasmRunner) -> None:
        await counted(runner)
        await runner.pool.wait_replenished()
        found, _ = await counted(runner, other)
        assert found["seen"] == ([1, "a"] if "[1]" in other.source_code else ["a"])
        # The other may have one by now, too.
        assert runner.pool.ahead >= 1

    with_spares(component, use)


def test_a_freeze_ends_what_was_opened_ahead(component: LoadedComponent) -> None:
    kill_switch = KillSwitch()

    async def use(runner: WasmRunner) -> None:
        await counted(runner)
        await runner.pool.wait_replenished()
        kill_switch.engage()
        assert runner.pool.ahead == 0
        await runner.pool.wait_replenished()
        assert runner.pool.ahead == 0

    with_spares(component, use, kill_switch=kill_switch)


def test_only_the_servers_that_were_opened_last_are_opened_ahead(
    component: LoadedComponent,
) -> None:
    async def use(runner: WasmRunner) -> None:
        for version in range(MAX_KNOWN + 2):
            await counted(runner, replace(SERVER, version=version + 1))
        await runner.pool.wait_replenished()
        assert runner.pool.ahead == MAX_KNOWN

    with_spares(component, use)


def test_code_that_does_not_load_is_not_opened_ahead(component: LoadedComponent) -> None:
    broken = bundle("while True: [0] * 10**9\n", "count")

    async def use(runner: WasmRunner) -> None:
        with pytest.raises(LoadFailed):
            await counted(runner, broken)
        await runner.pool.wait_replenished()
        assert runner.pool.ahead == 0

    with_spares(component, use)


def test_code_can_ask_the_host_for_nothing_while_it_is_loaded(component: LoadedComponent) -> None:
    asking = COUNTING.replace(
        "SEEN = []",
        "import wit_world\n"
        'ASKED = \'{"kind":"http","call":"000000000003","method":"GET","url":"https://api.test/v1"}\'\n'
        "SEEN = [wit_world.exchange(ASKED)]",
    )

    async def use(runner: WasmRunner) -> None:
        of = bundle(asking, "count")
        tape = CallLog()
        async with runner.open(of, broker(of, body(b"{}"))) as session:
            outcome = await session.call("count", {"text": "a"}, tape=tape)
        assert "no such call" in outcome.structured["seen"][0]
        assert tape.exchanges == []

    with_spares(component, use)


def test_without_spares_nothing_is_opened_ahead(component: LoadedComponent) -> None:
    async def run() -> None:
        async with WasmRunner(component) as runner:
            await counted(runner)
            await runner.pool.wait_replenished()
            assert runner.pool.ahead == 0

    asyncio.run(run())
