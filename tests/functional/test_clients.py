"""Clients that none of us wrote, and the bare wire, against `serve` and `run`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult

from orchestrator.frontends.greeting import FILE as KEPT
from tests.functional.home import Home, new_home, until
from tests.functional.journey import SERVER, Journey
from tests.functional.peer import Peer, text
from tests.world.harbour import HarbourApi
from tests.world.inspector import inspect

SEVEN = ["find", "call_read", "call_write", "do", "forge", "submit", "status"]


@asynccontextmanager
async def client_of(home: Home, *words: str, mode: Any = "auto") -> AsyncIterator[Client]:
    command = home.command(*words, "--no-control")
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=home.environment)
    async with Client(parameters, mode=mode) as client:
        yield client


def value(result: CallToolResult) -> Any:
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.parametrize("words", [("serve",), ("run", "powerdns")], ids=["serve", "run"])
def test_the_inspector_finds_the_tool_list_clean_and_calls_a_tool(
    words: tuple[str, ...], journey: Journey, toolwright_home: Home, node_modules: Path
) -> None:
    command = toolwright_home.command(*words, "--no-control")
    given = ("TOOLWRIGHT_", "PYTHONPATH", "DOCKER_HOST")
    environment = {
        name: value
        for name, value in toolwright_home.environment.items()
        if name.startswith(given) and value
    }
    listed = inspect(command, "tools/list", env=environment)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    tools = [tool["name"] for tool in json.loads(listed.stdout)["tools"]]
    if words == ("serve",):
        assert tools == SEVEN
        call = ["call_read", "tool=powerdns.list_zones", f"arguments={json.dumps(SERVER)}"]
    else:
        assert len(tools) == 36
        call = ["list_zones", "server_id=localhost"]
    arguments = [word for given in call[1:] for word in ("--tool-arg", given)]
    called = inspect(command, "tools/call", "--tool-name", call[0], *arguments, env=environment)
    assert called.returncode == 0, called.stdout + called.stderr
    assert json.loads(called.stdout)["structuredContent"]["status"] == 200


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_uses_one_forged_server_by_itself(
    mode: str, journey: Journey, toolwright_home: Home
) -> None:
    async def scenario() -> None:
        async with client_of(toolwright_home, "run", "powerdns", mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert len(tools) == 36
            assert tools["list_zones"].annotations is not None
            assert tools["list_zones"].annotations.read_only_hint
            zones = await client.call_tool("list_zones", SERVER)
            assert value(zones)["status"] == 200
            waits = await client.call_tool("delete_zone", {**SERVER, "zone_id": "journey.test."})
            assert waits.is_error
            assert "toolwright approve" in str(waits.content)
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("no_such_tool", {})
            assert unknown.value.error.code == -32602

    asyncio.run(scenario())


def test_the_oldest_protocol_and_what_is_wrong_on_the_wire_are_answered_as_the_spec_says(
    toolwright_home: Home, harbour: HarbourApi
) -> None:
    with Peer(toolwright_home, "serve", "--no-control", version="2024-11-05") as peer:
        for line in (b"this is no JSON", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[]", b""):
            peer.send(line)
        tools = peer.request("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == SEVEN
        assert peer.request("tools/call", {"name": "none"})["error"]["code"] == -32602
        assert peer.request("no/such/method")["error"]["code"] == -32601
        refused = peer.call("find", task="berths", tsak="a typo")
        assert refused["isError"]
        assert "tsak" in text(refused)
        absent = peer.call("call_read", tool="harbour.absent")
        assert absent["isError"]
        assert "harbour.absent" in text(absent)
        assert peer.value("call_read", tool="harbour.list_berths")["status"] == 200


def test_started_by_nobody_it_says_who_should_start_it(toolwright_home: Home) -> None:
    done = toolwright_home.run("serve", "--no-control")
    assert (done.returncode, done.stdout) == (1, "")
    assert "An MCP client starts this command" in done.stderr
    assert "Traceback" not in done.stderr


def test_end_of_file_ends_the_process_well_and_leaves_no_container(
    base_image: str, tmp_path: Path
) -> None:
    with new_home(tmp_path, "docker") as home:
        with Peer(home, "serve", "--no-control") as peer:
            until(lambda: home.containers() == 1, "a spare container waits")
            (home.path / KEPT).unlink()
        assert peer.process.returncode == 0
        assert (home.path / KEPT).exists(), "the first answer of the next one"
        assert home.containers() == 0
        with home.store() as store:
            assert store.processes.find() == ()
