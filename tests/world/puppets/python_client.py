"""A Python MCP client on strings: orders come in by lines, what it heard goes out by lines.

    python_client.py fastmcp|legacy|2026-07-28 COMMAND…

Orders: {"id", "list"}, {"id", "call", "arguments"}, {"cancel": id}. Answers: {"id", "names"},
{"id", "progress"}, {"id", "result"}, {"id", "error"}. It ends at the end of its input.
"""

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

STEP = Mapping[str, Any]


def client_of(kind: str, command: list[str]) -> Any:
    if kind == "fastmcp":
        fastmcp = importlib.import_module("fastmcp")
        transports = importlib.import_module("fastmcp.client.transports")
        transport = transports.StdioTransport(
            command[0], command[1:], env=dict(os.environ), keep_alive=False
        )
        return fastmcp.Client(transport)
    mcp = importlib.import_module("mcp")
    stdio = importlib.import_module("mcp.client.stdio")
    parameters = stdio.StdioServerParameters(
        command=command[0], args=command[1:], env=dict(os.environ)
    )
    return mcp.Client(parameters, mode=kind)


class Puppet:
    def __init__(self, kind: str, client: Any) -> None:
        self._kind, self._client = kind, client
        self._running: dict[int, asyncio.Task[None]] = {}

    def obey(self, order: STEP) -> None:
        if "cancel" in order:
            self._running[order["cancel"]].cancel()
            return
        task = asyncio.create_task(self._done(order))
        self._running[order["id"]] = task

    async def _done(self, order: STEP) -> None:
        identity = order["id"]
        try:
            tell(id=identity, **await self._answer(order))
        except asyncio.CancelledError:
            tell(id=identity, error="cancelled")
        except Exception as error:
            tell(id=identity, error=f"{type(error).__name__}: {error}")

    async def _answer(self, order: STEP) -> STEP:
        if "list" in order:
            listed = await self._client.list_tools()
            tools = listed if isinstance(listed, list) else listed.tools
            return {"names": [tool.name for tool in tools]}

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            tell(id=order["id"], progress=progress)

        name, arguments = order["call"], dict(order["arguments"])
        if self._kind == "fastmcp":
            result = await self._client.call_tool(
                name, arguments, progress_handler=heard, raise_on_error=False
            )
        else:
            result = await self._client.call_tool(name, arguments, progress_callback=heard)
        content = [block.model_dump(mode="json", exclude_none=True) for block in result.content]
        told = {"content": content, "structuredContent": result.structured_content}
        return {"result": {**told, "isError": bool(result.is_error)}}


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def main(kind: str, command: list[str]) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with client_of(kind, command) as client:
        puppet = Puppet(kind, client)
        tell(id=0)
        while line := await reader.readline():
            puppet.obey(json.loads(line))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
