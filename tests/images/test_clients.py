"""The official client, in each of its modes, against a bundle as an exported image holds it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.images.conftest import RUNTIME
from tests.images.host import definition, load_params

SOURCE = """
from toolwright import ToolError, tool

@tool
def double(number):
    if number < 0:
        raise ToolError("too small")
    return {"number": number * 2}
"""
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


@pytest.fixture
def server(tmp_path: Path) -> StdioServerParameters:
    tool = definition("double", input_schema=SCHEMA, output_schema=SCHEMA)
    params = load_params(SOURCE, tool)
    (tmp_path / "manifest.json").write_text(json.dumps(params["manifest"]))
    (tmp_path / "tools.json").write_text(json.dumps({"tools": params["tools"]}))
    (tmp_path / "server.py").write_text(SOURCE)
    return StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "toolwright", str(tmp_path)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(RUNTIME)},
    )


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_official_client_lists_and_calls(
    server: StdioServerParameters, mode: str, anyio_backend: str
) -> None:
    async with Client(server, mode=mode) as client:
        assert (client.protocol_version == "2025-11-25") == (mode == "legacy")
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.input_schema) == ("double", SCHEMA)
        good = await client.call_tool("double", {"number": 21})
        assert (good.is_error, good.structured_content) == (False, {"number": 42})
        bad = await client.call_tool("double", {"number": -1})
        assert bad.is_error
        wrong = await client.call_tool("double", {"number": "x"})
        assert wrong.is_error


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
