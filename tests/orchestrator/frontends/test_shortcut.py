"""Plain requests past the SDK: a client reads the same lines with the shortcut and without, and the
SDK is loaded for a client that says something else.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import MCPError

from orchestrator.frontends.sdk_lines import run_server
from orchestrator.frontends.server import build_low_level_server
from orchestrator.frontends.shortcut import MAX_BRACKETS, NAMES, read_plain_request
from orchestrator.frontends.stdio import serve_lines
from orchestrator.frontends.tool_front import Tell, ToolFront
from orchestrator.frontends.tools import TOOLS
from sandbox.sanitize import clean_json

TEXT = {"type": "text", "text": "é\u2028"}
CALL = {"name": "call_read", "arguments": {"tool": "a.b"}}


@dataclass
class Answerer:
    """Answers the tools from a list, and keeps which way each call came. `built` counts the SDK's
    servers.
    """

    given: Any = None
    ways: list[str] = field(default_factory=list)
    built: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, way: str, name: str, arguments: Any, tell: Tell) -> Any:
        self.ways.append(way)
        if isinstance(self.given, Exception):
            raise self.given
        if arguments.get("told"):
            await tell(1, None, "half")
            await tell(2.5, 3.0, "")
        if arguments.get("waits"):
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
        return self.given

    async def answer_directly(self, name: str, arguments: Any, tell: Tell, follows: bool) -> Any:
        return await self.answer("shortcut", name, arguments, tell)

    def build_server(self) -> Any:
        self.built += 1
        return build_low_level_server(TOOLS, SdkFront(self), "toolwright", lambda: "")


class SdkFront(ToolFront):
    """The tools' answers as the SDK asks for them."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    async def call_tool(self, name: str, arguments: Any, progress: Tell) -> Any:
        return clean_json(await self._answerer.answer("SDK", name, arguments, progress))

    async def wait_for_forge(self, begun: Any) -> Any:
        return begun


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, method: str, params: Any, identity: Any = None) -> None:
        said = {"jsonrpc": "2.0", "method": method, "params": params}
        with_id = said if identity is None else {**said, "id": identity}
        self.writer.write(json.dumps(with_id).encode() + b"\n")

    async def read(self) -> Any:
        return json.loads(await self.reader.readline())

    async def greet(self, version: str = "2025-11-25", **capabilities: Any) -> None:
        hello = {"protocolVersion": version, "capabilities": capabilities}
        self.send("initialize", {**hello, "clientInfo": {"name": "t", "version": "1"}}, 0)
        assert (await self.read())["result"]["protocolVersion"] == version
        self.send("notifications/initialized", {})


@asynccontextmanager
async def connected(answerer: Answerer, short: bool = True) -> AsyncIterator[Client]:
    ours, theirs = socket.socketpair()

    async def serve() -> None:
        reader, writer = await asyncio.open_connection(sock=theirs)
        if short:
            call, build = answerer.answer_directly, answerer.build_server
            await serve_lines(reader, writer, call, lambda: "", build)
        else:
            await run_server(answerer.build_server(), reader, writer)
        writer.close()

    serving = asyncio.create_task(serve())
    client = Client(*await asyncio.open_connection(sock=ours))
    yield client
    client.writer.close()
    await serving


def ask(given: Any, short: bool, version: str = "2025-11-25", **params: Any) -> Any:
    """What a client reads of one call up to its answer, and the way that the call came."""

    async def work() -> Any:
        answerer = Answerer(given)
        async with connected(answerer, short) as client:
            await client.greet(version)
            client.send("tools/call", {**CALL, **params}, 7)
            read = [await client.read()]
            while "id" not in read[-1]:
                read.append(await client.read())
            return read, answerer.ways

    return asyncio.run(work())


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    "given",
    [
        {"content": [TEXT], "structuredContent": {"a": None, "b": [2**80, 1.5]}, "isError": False},
        {"content": [], "_meta": {"toolwright": {"call": "c", "none": None}}},
        {"content": [{**TEXT, "annotations": {"priority": 1}}], "isError": True},
        {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}], "odd": 1},
        {"content": [{"type": "odd"}]},
        {"content": [{"type": "text", "text": 1}], "structuredContent": []},
        {"content": [TEXT], "isError": None},
        MCPError(-32602, "refused", {"a": 1}),
        RuntimeError("ours"),
    ],
)
def test_a_client_reads_what_the_sdk_would_have_said(given: Any, version: str) -> None:
    short, ways = ask(given, True, version)
    assert ways == ["shortcut"]
    assert ask(given, False, version) == (short, ["SDK"])


@pytest.mark.parametrize("meta", [{"progressToken": "t"}, {"progressToken": 5, "own/key": {}}, {}])
def test_progress_is_told_before_the_answer_to_whoever_gave_a_token(meta: Any) -> None:
    params = {"arguments": {"tool": "a.b", "told": True}, "_meta": meta}
    short, ways = ask({"content": []}, True, **params)
    assert ways == ["shortcut"]
    assert len(short) == (3 if meta else 1)
    assert ask({"content": []}, False, **params) == (short, ["SDK"])


MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}
DEEP = "[" * MAX_BRACKETS + "]" * MAX_BRACKETS


@pytest.mark.parametrize(
    "message",
    [
        {**MESSAGE, "method": "tools/list"},
        {**MESSAGE, "method": "tools/list", "params": {"cursor": "x"}},
        {**MESSAGE, "method": "resources/list", "params": {}},
        {**MESSAGE, "params": {**CALL, "name": "unknown"}},
        {**MESSAGE, "params": {**CALL, "name": ["call_read"]}},
        {**MESSAGE, "params": {**CALL, "task": {"ttl": 1}}},
        {**MESSAGE, "params": {**CALL, "arguments": None}},
        {**MESSAGE, "params": {"arguments": {}}},
        {**MESSAGE, "params": []},
        {**MESSAGE, "params": {**CALL, "_meta": {"io.modelcontextprotocol/protocolVersion": "x"}}},
        {**MESSAGE, "params": {**CALL, "_meta": {"progressToken": True}}},
        {**MESSAGE, "params": {**CALL, "_meta": None}},
        {**MESSAGE, "id": True},
        {**MESSAGE, "id": 1.5},
        {**MESSAGE, "id": None},
        {**MESSAGE, "jsonrpc": "1.0"},
        {**MESSAGE, "more": 1},
        {**MESSAGE, "params": {**CALL, "arguments": {"a": json.loads(DEEP)}}},
        [MESSAGE],
    ],
)
def test_what_is_not_plain_is_left_to_the_sdk(message: Any) -> None:
    assert read_plain_request(json.dumps(MESSAGE).encode()) is not None
    assert read_plain_request(json.dumps(message).encode()) is None


@pytest.mark.parametrize("line", [b'{"call_read"', b'"call_read" \xff', b'["call_read", NaN]'])
def test_what_is_no_json_is_left_to_the_sdk(line: bytes) -> None:
    assert read_plain_request(line) is None


def test_integers_of_any_size_come_as_they_were_sent() -> None:
    asked = {**MESSAGE, "params": {**CALL, "arguments": {"n": 2**80}}}
    call = read_plain_request(json.dumps(asked).encode())
    assert call is not None
    assert call.arguments == {"n": 2**80}


def test_a_call_before_the_handshake_is_refused_by_the_sdk() -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            client.send("tools/call", CALL, 1)
            assert "error" in await client.read()
        assert answerer.ways == []

    asyncio.run(work())


@pytest.mark.parametrize("named", [7, "7"])
def test_a_cancelled_call_ends_and_has_no_answer(named: Any) -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            await client.greet()
            client.send("tools/call", {**CALL, "arguments": {"waits": True}}, 7)
            await answerer.begun.wait()
            client.send("notifications/cancelled", {"requestId": named})
            await answerer.ended.wait()
            client.send("tools/call", CALL, 8)
            assert (await client.read())["id"] == 8
        assert answerer.ways == ["shortcut", "shortcut"]

    asyncio.run(work())


WAITING = {**CALL, "arguments": {"waits": True}}
BEYOND = {"io.modelcontextprotocol/own": 1}
"""Meta of a request that is left to the SDK."""


def test_a_call_behind_a_request_of_the_sdk_goes_there_too() -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            await client.greet()
            client.send("tools/call", {**WAITING, "_meta": BEYOND}, 1)
            client.send("tools/call", CALL, 2)
            assert (await client.read())["id"] == 2
            client.send("notifications/cancelled", {"requestId": 1})
            client.send("tools/call", CALL, 3)
            assert (await client.read())["id"] == 3
        assert answerer.ways == ["SDK", "SDK", "shortcut"]

    asyncio.run(work())


@pytest.mark.parametrize("short", [True, False])
def test_a_client_that_ends_its_side_is_told_of_the_calls_that_end_with_it(short: bool) -> None:
    async def work() -> Mapping[str, Any]:
        answerer = Answerer({"content": []})
        async with connected(answerer, short) as client:
            await client.greet()
            client.send("tools/call", {**CALL, "arguments": {"waits": True}}, 7)
            await answerer.begun.wait()
            client.writer.write_eof()
            told: Mapping[str, Any] = await client.read()
        assert answerer.ended.is_set()
        return told

    told = asyncio.run(work())
    assert told["id"] == 7
    assert told["error"] == {"code": -32000, "message": "Connection closed"}


def test_a_second_call_of_an_id_that_is_under_way_is_answered_too() -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            await client.greet()
            client.send("tools/call", {**CALL, "arguments": {"waits": True}}, 7)
            await answerer.begun.wait()
            client.send("tools/call", CALL, 7)
            assert (await client.read())["result"]["content"] == []
        assert answerer.ways == ["shortcut", "SDK"]

    asyncio.run(work())


def test_nothing_invisible_reaches_a_client() -> None:
    hidden = {"type": "text", "text": "a\u200b\x1b[1mb\U000e0041\x7f"}
    given = {"content": [hidden], "structuredContent": {"k\u200b": ["\u202ex"]}}
    read, ways = ask(given, True)
    assert ways == ["shortcut"]
    cleaned = {"content": [{"type": "text", "text": "ab"}], "structuredContent": {"k": ["x"]}}
    assert read[-1]["result"] == cleaned


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_tool_is_answered_as_the_sdk_would_and_without_it(name: str) -> None:
    async def work(short: bool) -> list[Any]:
        answerer = Answerer({"content": [TEXT]})
        async with connected(answerer, short) as client:
            await client.greet(roots={})
            read = []
            for number, params in enumerate(({"name": name, "arguments": {}}, {"name": name}), 1):
                client.send("tools/call", params, number)
                read.append(await client.read())
        assert (answerer.ways, answerer.built) == (["shortcut" if short else "SDK"] * 2, not short)
        return read

    assert asyncio.run(work(True)) == asyncio.run(work(False))


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
@pytest.mark.parametrize("method", ["tools/list", "ping"])
@pytest.mark.parametrize("params", [{}, {"_meta": {"progressToken": 1}}])
def test_tools_are_listed_as_the_sdk_would_and_without_it(
    method: str, params: Any, version: str
) -> None:
    async def work(short: bool) -> Any:
        answerer = Answerer()
        async with connected(answerer, short) as client:
            await client.greet(version)
            client.send(method, params, "l")
            read = await client.read()
        assert answerer.built == (not short)
        return read

    assert asyncio.run(work(True)) == asyncio.run(work(False))


@pytest.mark.parametrize(("asks", "name"), [("elicitation", "call_write"), ("sampling", "forge")])
def test_a_tool_that_may_ask_its_client_back_is_left_to_the_sdk(asks: str, name: str) -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            await client.greet(**{asks: {}})
            client.send("tools/call", CALL, 1)
            assert (await client.read())["id"] == 1
            client.send("tools/call", {"name": name, "arguments": {}}, 2)
            assert (await client.read())["id"] == 2
            client.send("tools/call", CALL, 3)
            assert (await client.read())["id"] == 3
        assert (answerer.ways, answerer.built) == (["shortcut", "SDK", "shortcut"], 1)

    asyncio.run(work())


def test_the_sdk_learns_of_its_client_when_it_is_loaded_and_greets_nobody_twice() -> None:
    async def work() -> None:
        answerer = Answerer({"content": []})
        async with connected(answerer) as client:
            await client.greet()
            client.send("tools/call", WAITING, 1)
            await answerer.begun.wait()
            client.send("resources/list", {}, 2)
            refused = await client.read()
            assert (refused["id"], refused["error"]["code"]) == (2, -32601)
            client.send("notifications/cancelled", {"requestId": 1})
            await answerer.ended.wait()
            client.send("tools/call", CALL, 3)
            assert (await client.read())["id"] == 3
        assert answerer.ways == ["shortcut", "shortcut"]

    asyncio.run(work())
