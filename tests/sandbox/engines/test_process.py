from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.engines.process import ProcessRunner
from sandbox.errors import CallTimedOut, Frozen, LoadFailed, SessionBroken
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Outcome
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy

ANY: dict[str, Any] = {"type": "object"}
SOURCE = """
import os
from toolwright import tool

@tool
def look():
    return {"environment": dict(os.environ), "directory": os.getcwd()}

@tool
def hang():
    while True:
        pass

@tool
def end():
    os._exit(3)

@tool
def eat():
    return {"length": len("x" * (1 << 29))}

@tool
def fill():
    return {"length": len("x" * (1 << 26))}
"""


class Nobody:
    async def send(self, request: WireRequest) -> WireResponse:
        raise AssertionError("nothing is sent")


def bundle(source: str = SOURCE, *names: str) -> Bundle:
    named = names or ("look", "hang", "end", "eat", "fill")
    tools = tuple(ToolDefinition(name, name, ANY, ANY, "read") for name in named)
    return Bundle("local", 1, "Local", "https://api.test", source, tools, Provenance("", ""))


async def called(runner: ProcessRunner, made: Bundle, tool: str, **options: Any) -> Outcome:
    broker = Broker(build_read_policy(made), Nobody())
    async with runner.open(made, broker) as session:
        return await session.call(tool, {}, **options)


def run(tool: str, **options: Any) -> Outcome:
    return asyncio.run(
        called(ProcessRunner(limits=Limits(start_seconds=30)), bundle(), tool, **options)
    )


def test_the_code_gets_nothing_of_the_environment() -> None:
    seen = run("look").structured
    assert set(seen["environment"]) <= {"LC_CTYPE"}
    assert seen["directory"] == "/"


def test_code_that_does_not_load_is_told_with_its_line() -> None:
    with pytest.raises(LoadFailed, match=r"server\.py line 1"):
        asyncio.run(called(ProcessRunner(), bundle("import nothing_there"), "look"))


def test_a_process_that_ends_breaks_the_session() -> None:
    with pytest.raises(SessionBroken):
        run("end")


def test_a_call_that_never_ends_is_given_up_and_its_process_killed() -> None:
    with pytest.raises(CallTimedOut):
        run("hang", seconds=0.2)


def test_nothing_starts_while_frozen() -> None:
    kill_switch = KillSwitch()
    kill_switch.engage()
    with pytest.raises(Frozen):
        asyncio.run(called(ProcessRunner(kill_switch=kill_switch), bundle(), "look"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_call_that_takes_more_memory_than_a_server_may_fails_and_the_next_is_served() -> None:
    async def both() -> tuple[Outcome, Outcome]:
        broker = Broker(build_read_policy(bundle()), Nobody())
        async with ProcessRunner().open(bundle(), broker) as session:
            return await session.call("eat", {}), await session.call("fill", {})

    eaten, filled = asyncio.run(both())
    assert eaten.failure is not None
    assert "MemoryError" in eaten.failure.message
    assert filled.structured == {"length": 1 << 26}
