"""An MCP client over the pipes of one `toolwright serve`, which may be killed at any moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

LINE = 16 * 1024 * 1024
GONE: Mapping[str, Any] = {"isError": True, "gone": True}
"""The answer of a process that ended before it answered."""


class Client:
    """One `serve`. Start it with `started`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def started(cls, command: list[str], environment: Mapping[str, str], log: Path) -> Client:
        with log.open("ab") as sink:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                env=dict(environment),
                limit=LINE,
            )
        client = cls(process)
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "1"},
        }
        await client.ask("initialize", hello)
        await client._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return client

    async def call(self, name: str, **arguments: Any) -> Mapping[str, Any]:
        """The result of a tool call; `GONE` where the process ended first."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        identity = next(self._ids)
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[identity] = future
        await self._write({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        if self.gone:
            self._end()
        return await future

    @property
    def gone(self) -> bool:
        """Whether the process has ended, or said that it will say no more."""
        return self._reading.done()

    async def close(self) -> None:
        """Leave as a client does, and wait for the end of the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(ConnectionError):
            await self.process.stdin.wait_closed()
        await self.process.wait()
        await self._reading

    async def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        if self.gone:
            return
        with suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            future = self._waiting.pop(message.get("id"), None)
            if future is not None and not future.done():
                future.set_result(message.get("result") or {"isError": True})
        self._end()

    def _end(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_result(GONE)
        self._waiting.clear()
