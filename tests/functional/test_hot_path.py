"""How many of our modules and functions a call passes, there and back."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.frontends.instructions import load_instructions
from orchestrator.frontends.server import build_front_server
from orchestrator.frontends.stdio import serve_lines
from orchestrator.frontends.tool_front import ToolFront
from orchestrator.settings import Settings, load_settings
from registry.models import build_entry
from sandbox.broker.live import LiveHttp
from tests.engine.samples import bundle
from tests.functional.test_calls import BOOKING, worked
from tests.functional.trace import Trace
from tests.granted import PIN, allow
from tests.world.harbour import harbour_api

ECHO = """
from toolwright import tool

@tool
def echo(text=""):
    return {"text": text}
"""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
BERTHS = 2
"""So many of the harbour's can be booked for one test."""


@dataclass
class Client:
    """A client of an open process, on the same event loop; `trace` listens on all its threads."""

    app: App
    trace: Trace
    run: Callable[[Awaitable[Any]], Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _count: int = 0

    async def request(self, method: str, **params: Any) -> Any:
        self._count += 1
        asked = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.writer.write(json.dumps(asked).encode() + b"\n")
        answer = json.loads(await self.reader.readline())
        assert answer["id"] == self._count
        return answer["result"]

    async def call(self, tool: str, name: str = "call_read", **arguments: Any) -> Any:
        asked = {"tool": tool, "arguments": arguments}
        result = await self.request("tools/call", name=name, arguments=asked)
        assert not result.get("isError"), result
        return result["structuredContent"]

    async def recorded(self) -> None:
        """Return when every call is on disk."""
        await self.app.dispatch.ledger.close()

    async def approved_write(self, since: str, until: Any = None) -> None:
        """A write that is done once a person decided: counted from the PIN on, or from the `stored`
        decision on, up to a function, where one is named, or else to its record.
        """
        free = await self.call("harbour.list_berths", state="free")
        booking = {**BOOKING, "berth": free["body"][0]["number"]}
        await self.recorded()
        pending = await self.call("harbour.book_berth", "call_write", body=booking)
        await self.recorded()
        store, identity = self.app.store, pending["approval"]
        digest = store.approvals.get(identity).wire_digest
        if since == "PIN":
            self.trace.begin(until)
        decision = Decision(identity, True, PIN, "test", "", digest)
        assert not decide_with_pin(self.app.settings, store, decision, time.time()).refused
        if since == "stored":
            self.trace.begin(until)
        await self.app.approved.carry_out_approved()
        await self.app.approved.begun.close()
        self.trace.end()
        assert (done := store.approvals.get(identity)).state == "done", done.outcome


async def serve(app: App, end: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=end)
    call = ToolFront(app).answer_plain
    find = partial(load_instructions, app.settings, app.store, app.consents)
    await serve_lines(reader, writer, call, find, partial(build_front_server, app))
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def opened(settings: Settings, trace: Trace, run: Any) -> AsyncIterator[Client]:
    """A client of a process that serves the home, through the bytes of its front."""
    async with open_app(settings, "serve") as app:
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(serve(app, theirs))
        client = Client(app, trace, run, *await asyncio.open_connection(sock=ours))
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        await client.request("initialize", **hello, clientInfo={"name": "test", "version": "1"})
        yield client
        client.writer.close()
        await client.writer.wait_closed()
        await serving


async def filled(settings: Settings, url: str) -> None:
    """Put a server that only computes and one with an API into the home."""
    async with open_app(settings, "do") as app:
        allow(settings, app.store, url)
        forge = app.jobs.create_job("forge", {"source": url, "name": "harbour"})
        assert (await worked(app, forge.id)).state == "done"
        made = bundle(ECHO, "echo", pure=True)
        tool = replace(made.tools[0], input_schema=TEXT, output_schema=TEXT)
        echo = replace(made, name="echo", tools=(tool,))
        app.forge.shelf.publish_bundle(echo, build_entry(echo, time.time()), (), None)


@pytest.fixture(scope="module")
def client(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = load_settings(home=tmp_path_factory.mktemp("hot"), engine=engine_name)
    trace, stack = Trace(), AsyncExitStack()
    with (
        harbour_api(tmp_path_factory.mktemp("harbour")) as api,
        trace.installed(),
        asyncio.Runner() as runner,
    ):
        runner.run(filled(settings, api.url))
        try:
            yield runner.run(stack.enter_async_context(opened(settings, trace, runner.run)))
        finally:
            runner.run(stack.aclose())


def counted(client: Client, work: Callable[[], Awaitable[None]], times: int = 5) -> dict[str, str]:
    """The functions of the work once it is warm, each with its module. Of several times the least
    is taken: only other work of the process, such as a record of the call before, makes one more.
    """
    found = []
    for _ in range(times):
        client.run(work())
        found.append(client.trace.functions)
    return min(found, key=len)


def assert_short(passed: dict[str, str], modules: int, functions: int) -> None:
    names = "\n".join(sorted(passed))
    size = len(set(passed.values())), len(passed)
    print(names, f"{size[0]} modules, {size[1]} functions", sep="\n")
    assert size[0] <= modules, names
    assert size[1] <= functions, names


def test_a_warm_call_that_computes_is_short(client: Client) -> None:
    async def call() -> None:
        await client.recorded()
        client.trace.begin()
        assert await client.call("echo.echo", text="x") == {"text": "x"}
        client.trace.end()

    assert_short(counted(client, call), modules=35, functions=111)


def test_a_warm_call_with_its_record_is_short(client: Client) -> None:
    """The record is written after the answer, many calls' at once."""

    async def call() -> None:
        await client.recorded()
        client.trace.begin()
        assert await client.call("echo.echo", text="x") == {"text": "x"}
        await client.recorded()
        client.trace.end()

    assert_short(counted(client, call), modules=46, functions=177)


def test_a_warm_call_of_an_api_is_short(client: Client) -> None:
    """What the broker judges and sends comes on top: it is a module each for what is judged. Where
    calls are further apart each looks anew whether another process has the origin paused.
    """

    async def call() -> None:
        await client.recorded()
        client.trace.begin()
        assert (await client.call("harbour.search_boats", query="a"))["status"] == 200
        client.trace.end()

    assert_short(counted(client, call), modules=54, functions=194)


def test_an_approved_write_is_short_from_the_stored_decision_to_its_sending(
    client: Client,
) -> None:
    passed = counted(client, partial(client.approved_write, "stored", LiveHttp.send), BERTHS)
    assert_short(passed, modules=60, functions=262)


def test_an_approved_write_is_short_from_the_pin_to_its_record(client: Client) -> None:
    """The PIN's file with its lock and its count, and the record, come on top."""
    passed = counted(client, partial(client.approved_write, "PIN"), BERTHS)
    assert_short(passed, modules=75, functions=400)


def test_the_session_of_what_find_names_first_is_opened_before_the_call(client: Client) -> None:
    async def work() -> None:
        sessions = client.app.dispatch.execution.sessions
        await sessions.close()
        found = await client.request("tools/call", name="find", arguments={"task": "list berths"})
        assert found["structuredContent"]["candidates"][0]["tool"] == "harbour.list_berths"
        assert sessions.count == 1
        await client.call("harbour.list_berths")
        assert sessions.count == 1

    client.run(work())


def test_a_write_that_find_names_first_has_no_session_before_the_call(client: Client) -> None:
    async def work() -> None:
        sessions = client.app.dispatch.execution.sessions
        await sessions.close()
        found = await client.request("tools/call", name="find", arguments={"task": "book a berth"})
        assert found["structuredContent"]["candidates"][0]["call_with"] == "call_write"
        assert sessions.count == 0

    client.run(work())
