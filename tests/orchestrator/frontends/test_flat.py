"""The flat MCP front, message by message, without a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from orchestrator.frontends.flat import FlatServer
from orchestrator.frontends.flat_greeting import ServerInfo
from orchestrator.frontends.greeting import MODERN
from orchestrator.frontends.protocol import (
    Answer,
    ExtraMethods,
    NoExtraMethods,
    Peer,
    RpcError,
)
from sandbox.wire.notifications import LogMessage, ProgressNotice

CARD = ServerInfo("pets", "3", "Pets", "Pets of a shop.")
TOOLS = ({"name": "list_pets", "inputSchema": {"type": "object"}},)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}


class Wire:
    """A connection whose answers are kept."""

    def __init__(self, tasks: asyncio.TaskGroup, more: ExtraMethods | None = None) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.held = asyncio.Event()
        self.flat = FlatServer(
            CARD, TOOLS, self._call, self.sent.append, tasks, more or NoExtraMethods()
        )

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], asker: Peer
    ) -> Mapping[str, Any]:
        self.calls.append((tool, arguments))
        asker.heard(ProgressNotice(1, 2, "half"))
        if arguments.get("wait"):
            await self.held.wait()
        return {"content": [{"type": "text", "text": "done"}]}

    def ask(self, method: str, identity: Any = 1, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        self.flat.receive_message(message)

    def modern(self, method: str, **params: Any) -> None:
        self.ask(method, **params, _meta=ENVELOPE)

    @property
    def result(self) -> Any:
        return self.sent[-1]["result"]

    @property
    def error(self) -> Any:
        return self.sent[-1]["error"]


def wired(
    work: Callable[[Wire], Coroutine[Any, Any, None]], more: ExtraMethods | None = None
) -> Wire:
    async def run() -> Wire:
        async with asyncio.TaskGroup() as tasks:
            wire = Wire(tasks, more)
            await work(wire)
            await wire.flat.finish_calls(0)
        return wire

    return asyncio.run(run())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("offered", "agreed"), [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")]
)
def test_the_older_era_shakes_hands_and_lists(offered: str, agreed: str) -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **{**HELLO, "protocolVersion": offered})
        assert wire.result["protocolVersion"] == agreed
        assert wire.result["serverInfo"] == {"name": "pets", "version": "3", "title": "Pets"}
        wire.ask("tools/list")
        assert wire.result == {"tools": TOOLS}
        wire.ask("initialize", **HELLO)
        assert wire.error["code"] == -32600

    wired(work)


def test_the_newer_era_needs_no_handshake_and_says_so_in_every_answer() -> None:
    async def work(wire: Wire) -> None:
        wire.modern("server/discover")
        assert wire.result["supportedVersions"] == [MODERN]
        wire.modern("tools/list")
        assert wire.result["resultType"] == "complete"
        assert wire.result["ttlMs"] > 0
        wire.modern("initialize")
        assert wire.error["code"] == -32022

    wired(work)


def test_a_request_without_its_envelope_is_refused_in_the_newer_era() -> None:
    async def work(wire: Wire) -> None:
        wire.modern("tools/list")
        wire.ask("tools/list")
        assert "clientCapabilities" in wire.error["message"]

    wired(work)


def test_a_call_is_answered_when_it_is_done_and_others_meanwhile() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("tools/call", 1, name="list_pets", arguments={"wait": True})
        wire.ask("tools/call", 2, name="list_pets")
        await settled()
        assert [answer["id"] for answer in wire.sent] == [2]
        wire.held.set()
        await settled()
        assert [answer["id"] for answer in wire.sent] == [2, 1]

    assert wired(work).calls[1] == ("list_pets", {})


def test_a_cancelled_call_is_not_answered() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("tools/call", 7, name="list_pets", arguments={"wait": True})
        await settled()
        cancel = {"method": "notifications/cancelled", "params": {"requestId": 7}}
        wire.flat.receive_message({"jsonrpc": "2.0", **cancel})
        wire.held.set()
        await settled()

    assert wired(work).sent == []


def test_a_call_that_still_runs_at_the_end_is_cancelled() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("tools/call", 1, name="list_pets", arguments={"wait": True})
        await settled()

    assert wired(work).sent == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "other"}, -32602),
        ({"name": ["list_pets"]}, -32602),
        ({}, -32602),
        ({"name": "list_pets", "arguments": []}, -32602),
    ],
)
def test_a_call_that_is_none_is_refused(params: dict[str, Any], code: int) -> None:
    async def work(wire: Wire) -> None:
        wire.ask("tools/call", **params)
        assert wire.error["code"] == code

    assert wired(work).calls == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ([], -32600),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}}, -32602),
    ],
)
def test_a_message_that_is_no_request_is_told_so(message: Any, code: int) -> None:
    async def work(wire: Wire) -> None:
        wire.flat.receive_message(message)
        assert wire.error["code"] == code

    wired(work)


def test_answers_and_notifications_of_the_client_get_no_answer() -> None:
    async def work(wire: Wire) -> None:
        wire.flat.receive_message({"jsonrpc": "2.0", "id": 4, "result": {}})
        wire.flat.receive_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
        wire.flat.receive_message(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 5}
        )

    assert wired(work).sent == []


@pytest.mark.parametrize("token", ["t", 0])
def test_progress_is_told_to_who_gave_a_token_for_it(token: str | int) -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **HELLO)
        wire.ask("tools/call", 2, name="list_pets", _meta={"progressToken": token})
        await settled()

    told = wired(work).sent[1]
    params = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
    assert told == {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def test_the_oldest_protocol_s_progress_has_no_message() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **{**HELLO, "protocolVersion": "2024-11-05"})
        wire.ask("tools/call", 2, name="list_pets", _meta={"progressToken": "t"})
        await settled()

    assert "message" not in wired(work).sent[1]["params"]


@pytest.mark.parametrize("meta", [{}, None, {"progressToken": None}, {"progressToken": True}, "t"])
def test_without_a_token_no_progress_is_told(meta: Any) -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **HELLO)
        wire.ask("tools/call", 2, name="list_pets", _meta=meta)
        await settled()

    assert [message.get("id") for message in wired(work).sent] == [1, 2]


class Notes:
    """Answers `notes/read` in the older era and `subscriptions/listen` in the newer one."""

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        return {"logging": {}, "revision": version}

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        known = {("notes/read", False): self._read, ("subscriptions/listen", True): self._listen}
        return known.get((method, modern))

    async def _read(self, params: Mapping[str, Any], asker: Peer) -> Mapping[str, Any]:
        if "note" not in params:
            raise RpcError(-32602, "which?")
        if asker.logged:
            asker.logged.deliver_message(LogMessage("info", {"read": params["note"]}, "notes"))
            asker.logged.deliver_message(LogMessage("error", "lost"))
        return {"declared": asker.declared}

    async def _listen(self, params: Mapping[str, Any], asker: Peer) -> Mapping[str, Any]:
        asker.notify("notifications/heard", {"id": asker.identity})
        await asyncio.get_running_loop().create_future()
        return {}


def test_what_a_server_answers_beside_its_tools_is_declared_answered_and_refused() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **{**HELLO, "capabilities": {"roots": {}}})
        assert wire.result["capabilities"] == {
            "tools": {},
            "logging": {},
            "revision": "2025-06-18",
        }
        wire.ask("notes/read", 2)
        await settled()
        assert wire.error["message"] == "which?"
        wire.ask("notes/read", 3, note=1)
        await settled()
        assert wire.result == {"declared": {"roots": {}}}
        wire.ask("subscriptions/listen", 4)
        assert wire.error["code"] == -32601

    wired(work, Notes())


def test_a_log_is_told_from_the_level_that_the_client_of_the_older_era_set() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **HELLO)
        wire.ask("logging/setLevel", 2, level="loud")
        assert wire.error["code"] == -32602
        wire.ask("logging/setLevel", 3, level="error")
        assert wire.result == {}
        wire.ask("notes/read", 4, note=1)
        await settled()

    said = [m["params"] for m in wired(work, Notes()).sent if "method" in m]
    assert said == [{"level": "error", "data": "lost"}]


def test_without_a_log_nobody_sets_its_level() -> None:
    async def work(wire: Wire) -> None:
        wire.ask("initialize", **HELLO)
        wire.ask("logging/setLevel", 2, level="error")
        assert wire.error["code"] == -32601

    wired(work)


def test_who_listens_is_told_until_it_cancels_and_does_not_keep_the_process() -> None:
    async def work(wire: Wire) -> None:
        wire.modern("subscriptions/listen", identity=7)
        await settled()
        assert wire.sent == [
            {"jsonrpc": "2.0", "method": "notifications/heard", "params": {"id": 7}}
        ]
        await wire.flat.finish_calls(60)

    wired(work, Notes())
