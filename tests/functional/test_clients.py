"""Clients that none of us wrote, and the bare wire, against `serve` and `run`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult

from tests.functional.home import Home, new_home, until
from tests.functional.journey import SERVER, Journey
from tests.functional.peer import Peer, text
from tests.world.harbour import HarbourApi
from tests.world.inspector import inspect
from tests.world.site import Page, Site, site

SEVEN = ["find", "call_read", "call_write", "do", "forge", "submit", "status"]
LARGE = 3 * 1024 * 1024
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Archive", "version": "1"},
    "servers": [{"url": "/"}],
    "paths": {
        "/everything": {
            "get": {
                "operationId": "everything",
                "summary": "Everything in the archive",
                "responses": {
                    "200": {
                        "description": "One long text.",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {"text": {"type": "string"}},
                                    "required": ["text"],
                                }
                            }
                        },
                    }
                },
            }
        }
    },
}
JSON = (("Content-Type", "application/json"),)


@pytest.fixture(scope="module")
def archive() -> Iterator[Site]:
    """An API with one operation whose answer is large."""
    large = json.dumps({"text": "x" * LARGE}).encode()
    pages = {
        "/openapi.json": Page(json.dumps(DOCUMENT).encode(), headers=JSON),
        "/everything": Page(large, headers=JSON),
    }
    with site(pages) as here:
        yield here


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
def test_the_official_client_lists_finds_forges_calls_and_cancels(
    mode: str, harbour: HarbourApi, toolwright_home: Home, archive: Site
) -> None:
    asyncio.run(_all_of_serve(mode, harbour, toolwright_home, archive))


async def _all_of_serve(mode: str, harbour: HarbourApi, home: Home, archive: Site) -> None:
    async with client_of(home, "serve", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == SEVEN
        found = value(await client.call_tool("find", {"task": "list the berths"}))
        assert found["candidates"][0]["tool"] == "harbour.list_berths"
        await _forged_with_progress(client, archive, home, "archive_" + mode.replace("-", ""))
        await _given_up(client, harbour)


async def _forged_with_progress(client: Client, archive: Site, home: Home, name: str) -> None:
    """Forge, follow the job by long polls with progress, and take a large answer."""
    host = archive.url.removeprefix("http://")
    await asyncio.to_thread(home.person, "source", "allow", host)
    heard: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": name}
    job = value(await client.call_tool("forge", order))
    assert job["state"] == "queued"
    state = value(
        await client.call_tool(
            "status", {"job": job["job"], "wait": 25}, progress_callback=on_progress
        )
    )
    assert state["state"] == "done", state["message"]
    assert len(heard) >= 2
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    large = value(await client.call_tool("call_read", {"tool": f"{name}.everything"}))
    assert len(large["body"]["text"]) == LARGE


async def _given_up(client: Client, harbour: HarbourApi) -> None:
    """A call that the client no longer waits for is cut at the upstream; others go on."""
    before = slow_reports(harbour)
    arguments = {"tool": "harbour.occupancy_report", "arguments": {"seconds": 60}}
    running = asyncio.create_task(client.call_tool("call_read", arguments))
    await asyncio.to_thread(until, lambda: slow_reports(harbour) > before, "the call arrived")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.to_thread(until, lambda: cut(harbour), "the connection was closed", 5)
    berths = await client.call_tool("call_read", {"tool": "harbour.list_berths"})
    assert value(berths)["body"]


def slow_reports(harbour: HarbourApi) -> int:
    return len([e for e in harbour.received("GET") if e["path"] == "/report?seconds=60"])


def cut(harbour: HarbourApi) -> bool:
    """Whether every slow report that was asked for has ended as `cut`."""
    entries = harbour.entries()
    slow = {e["id"] for e in entries if e.get("path") == "/report?seconds=60"}
    return slow <= {e["id"] for e in entries if e["event"] == "cut"}


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


def test_two_clients_work_at_once(served: Peer, toolwright_home: Home) -> None:
    with Peer(toolwright_home, "serve", "--no-control") as other:
        peers = (served, other) * 4
        begun = [peer.begin_call("call_read", tool="harbour.list_berths") for peer in peers]
        answers = [peer.end(ident)["result"] for peer, ident in zip(peers, begun, strict=True)]
    assert all(answer["structuredContent"]["status"] == 200 for answer in answers)


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
        assert peer.process.returncode == 0
        assert home.containers() == 0
        with home.store() as store:
            assert store.processes() == ()
