"""Answers that differ from their document, from a real API to clients that check what they get."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, TextContent

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.image import list_exported_tools
from tests.functional.home import Home
from tests.world.loopback import Answering, served

RUNTIME = Path(__file__).parents[2] / "images" / "base" / "runtime"
THING = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
DIFFERING = '{"id": "seven",  "name": null, "more": [1]}'
LINES = '{"id": 1}\n{"id": 2}\n'
BODIES = {"/differing": DIFFERING, "/nulls": '{"id": null, "name": null}', "/lines": LINES}


class _Api(Answering):
    def do_GET(self) -> None:
        if self.path == "/members":
            self.answer(302, b"<form>", (("Location", "/users/sign_in?next=/members"),))
            return
        self.answer(200, BODIES[self.path].encode(), (("Content-Type", "application/json"),))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.world.append(self.path)
        self.answer(201, DIFFERING.encode(), (("Content-Type", "application/json"),))


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[str, list[str]]]:
    """An API's URL, and the paths of the writes that it took."""
    made: dict[str, list[str]] = {}

    def begin(url: str) -> list[str]:
        return made.setdefault(url, [])

    with served(_Api, begin):
        ((url, writes),) = made.items()
        yield url, writes


@pytest.fixture(scope="module")
def document(api: tuple[str, list[str]]) -> bytes:
    content = {"application/json": {"schema": THING}}
    reads: dict[str, Any] = {
        f"/{name}": {"get": {"operationId": name, "responses": {"200": {"content": content}}}}
        for name in ("differing", "nulls", "lines", "members")
    }
    # A document's word that the API does not keep to; the clients below leave it out.
    since = {"name": "since", "in": "query", "required": True, "schema": {"type": "string"}}
    reads["/nulls"]["get"]["parameters"] = [since]
    write = {"operationId": "create", "responses": {"201": {"content": content}}}
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Things", "version": "1"},
            "servers": [{"url": api[0]}],
            "paths": {**reads, "/things": {"post": write}},
        }
    ).encode()


async def call_all(
    command: list[str], environment: dict[str, str], *names: str
) -> dict[str, CallToolResult]:
    """The results as the official client takes them, which throws away what breaks its schema."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with Client(parameters) as client:
        listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert listed["nulls"].get("required") == ["since"]
        return {name: await client.call_tool(name, {}) for name in names}


def texts(result: CallToolResult) -> list[str]:
    assert not result.is_error, result.content
    return [block.text for block in result.content if isinstance(block, TextContent)]


def test_a_served_directory_gives_what_arrived_and_no_write_is_told_as_failed(
    document: bytes, api: tuple[str, list[str]], toolwright_home: Home, tmp_path: Path
) -> None:
    source, out = tmp_path / "things.json", tmp_path / "things"
    source.write_bytes(document)
    done = toolwright_home.run("compile", str(source), "--out", str(out))
    assert done.returncode == 0, done.stderr
    command = toolwright_home.launch("run", str(out), "--allow-private", "--allow-writes")
    names = ("differing", "nulls", "lines", "create", "members")
    api[1].clear()
    made = asyncio.run(call_all(command, toolwright_home.environment, *names))
    for name in ("differing", "create"):
        body, note = texts(made[name])
        assert body == DIFFERING
        assert "/body/id" in note
        assert made[name].structured_content is None
    assert api[1] == ["/things"]
    assert texts(made["nulls"]) == [BODIES["/nulls"]]
    nulls: Any = made["nulls"].structured_content
    assert nulls["body"] == {"id": None, "name": None}
    body, note = texts(made["lines"])
    assert body == LINES
    assert "2 lines, each of them JSON" in note
    assert made["members"].is_error
    assert "the API wants a log-in" in str(made["members"].content)
    assert "undeclared" not in str(made["members"].content)


def write_exported(bundle: Bundle, directory: Path) -> None:
    """What `toolwright export` puts into an image."""
    (directory / "manifest.json").write_text(json.dumps(bundle.build_manifest()))
    tools = {"tools": list_exported_tools(bundle)}
    (directory / "tools.json").write_text(json.dumps(tools))
    (directory / "server.py").write_text(bundle.source_code)


def test_an_exported_server_gives_a_strict_client_what_its_output_schema_says(
    document: bytes, tmp_path: Path
) -> None:
    write_exported(compile_document(parse_document(document, "things.json")).bundle, tmp_path)
    command = [sys.executable, "-m", "toolwright", str(tmp_path)]
    environment = {"PYTHONPATH": str(RUNTIME)}
    made = asyncio.run(call_all(command, environment, "differing", "nulls", "lines", "create"))
    for name, status in (("differing", 200), ("create", 201)):
        assert texts(made[name])[0] == DIFFERING
        assert made[name].structured_content == {
            "status": status,
            "text": DIFFERING,
            "content_type": "application/json",
        }
    nulls: Any = made["nulls"].structured_content
    assert nulls["body"] == {"id": None, "name": None}
    lines: Any = made["lines"].structured_content
    assert lines["text"] == LINES
