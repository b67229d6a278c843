"""FastMCP's `from_openapi`, given the same description and credential."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import httpx
import yaml
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import Tool

from bench.reality.calling import find_tool, fit_arguments, read_answer
from bench.reality.model import Answer, Arguments, RealServer, Running, Scenario
from bench.reality.packages import CONVERTER, FASTMCP, install_npm, install_pip

CALL_SECONDS = 90.0


class NotPossible(Exception):
    """FastMCP cannot be given that server. The message says why."""


@dataclass(frozen=True)
class PeerClient:
    client: Client
    tools: list[Tool]

    async def call(self, scenario: Scenario, arguments: Arguments) -> Answer:
        """The answer to one call. Raises NoTool."""
        tool = find_tool(self.tools, scenario.operation)
        fitted = fit_arguments(tool, arguments)
        result = await asyncio.wait_for(self.client.call_tool(tool.name, fitted), CALL_SECONDS)
        return read_answer(result.model_dump(mode="json", by_alias=True), wrapped=False)


@asynccontextmanager
async def open_client(server: RealServer, running: Running) -> AsyncIterator[PeerClient]:
    """A client of FastMCP's server, until the block ends. Raises NotPossible, Unavailable."""
    if not running.description:
        raise NotPossible("there is no OpenAPI description; from_openapi takes nothing else")
    python = install_pip(FASTMCP)
    file, base_url = await asyncio.to_thread(_write_document, server, running)
    words = [str(Path(__file__).with_name("fastmcp_server.py")), str(file), base_url]
    words += [json.dumps(server.list_headers(running)), json.dumps(server.list_query(running))]
    parameters = StdioServerParameters(command=str(python), args=words)
    with (running.directory / "fastmcp.log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield PeerClient(client, (await client.list_tools()).tools)


def _write_document(server: RealServer, running: Running) -> tuple[Path, str]:
    """The description as OpenAPI 3 in JSON, converted from Swagger 2 where it is that, and the base
    URL that it names, on the host that runs: a person who sets FastMCP up would give that one.
    """
    at = running.description
    if at.startswith("http"):
        fetched = httpx.get(at, headers=server.list_headers(running), trust_env=False, timeout=60.0)
        text = fetched.raise_for_status().text
    else:
        text = Path(at).read_text()
    document = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    written = running.directory / "fastmcp.json"
    written.write_text(json.dumps(document, default=str))
    if "swagger" in document:
        base_url = running.url.rstrip("/") + str(document.get("basePath") or "").rstrip("/")
        converter = install_npm(CONVERTER) / ".bin/swagger2openapi"
        converted = running.directory / "fastmcp3.json"
        subprocess.run(
            [str(converter), "--patch", "--warnOnly", "-o", str(converted), str(written)],
            check=True,
            capture_output=True,
            timeout=120,
        )
        return converted, base_url
    servers = document.get("servers") or [{"url": "/"}]
    path = httpx.URL(urljoin(running.url + "/", str(servers[0].get("url") or "/"))).path
    return written, running.url.rstrip("/") + path.rstrip("/")
