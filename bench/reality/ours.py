"""Toolwright as a user has it: `forge`, `secret set`, `run` and `serve`, and a person's PIN."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import Tool

from bench.reality.calling import encode_files, find_tool, fit_arguments, read_answer
from bench.reality.model import Answer, Arguments, RealServer, Running, Scenario
from tests.functional.home import Home
from tests.functional.peer import MOVING

CALL_SECONDS = 180.0
_APPROVAL = re.compile(r"\(approval ([0-9a-f]{16})\)|toolwright approve ([0-9a-f]{16})")


class NotForged(Exception):
    """No source led to a registered server. The message has what each said."""


@dataclass
class Forged:
    """A registered server, the commands that made it and what they took."""

    name: str
    commands: list[str]
    seconds: float


def forge(home: Home, server: RealServer, running: Running) -> Forged:
    """Forge a server of what is running, from its bare address first. Raises NotForged."""
    before = _registered(home)
    commands: list[str] = []
    said: list[str] = []
    begun = time.monotonic()
    for source in server.sources:
        places = {
            "host": running.host,
            "url": running.url,
            "description": running.description,
        }
        where, *more = (word.format(**places) for word in source.split())
        options = [option.format(**places) for option in server.options]
        words = ["forge", server.task, "--source", where, *more, *options]
        words += ["--allow", running.host]
        commands.append(" ".join(f'"{word}"' if " " in word else word for word in words))
        done = home.run(*words, "--pin-file", str(home.pin_file))
        fresh = _registered(home) - before
        if fresh:
            name = fresh.pop()
            _set_secrets(home, server, running, name, commands)
            return Forged(name, commands, time.monotonic() - begun)
        said.append(f"{where}: {(done.stdout + done.stderr).strip()[-400:]}")
    raise NotForged("; ".join(said))


def _set_secrets(
    home: Home, server: RealServer, running: Running, name: str, commands: list[str]
) -> None:
    for secret, value in server.secrets.items():
        file = home.path.parent / "value"
        file.write_text(value.format(key=running.key))
        words = ("secret", "set", f"{name}.{secret}", "--value-file", str(file))
        commands.append(f"secret set {name}.{secret}")
        home.person(*words)
        file.unlink()


def _registered(home: Home) -> set[str]:
    return {row["tool_id"] for row in home.read("list")}


@dataclass
class OurClient:
    """A client of `toolwright run NAME`, one of `toolwright serve`, and a person who approves."""

    home: Home
    name: str
    run: Client
    serve: Client
    tools: list[Tool] = field(default_factory=list)

    async def call(self, scenario: Scenario, arguments: Arguments) -> Answer:
        """The answer to one call; a write is approved with the PIN. Raises NoTool."""
        tool = find_tool(self.tools, scenario.operation)
        fitted = encode_files(fit_arguments(tool, arguments))
        if scenario.through_serve:
            return await self._call_serve(tool, fitted)
        return await self._finish(await self._ask(self.run, tool.name, fitted))

    async def _call_serve(self, tool: Tool, arguments: Arguments) -> Answer:
        hints = tool.annotations
        verb = "call_read" if hints is not None and hints.read_only_hint else "call_write"
        named = {"tool": f"{self.name}.{tool.name}", "arguments": arguments}
        return await self._finish(await self._ask(self.serve, verb, named))

    async def _ask(self, client: Client, tool: str, arguments: Arguments) -> dict[str, Any]:
        result = await asyncio.wait_for(client.call_tool(tool, dict(arguments)), CALL_SECONDS)
        told: dict[str, Any] = result.model_dump(mode="json", by_alias=True)
        return told

    async def _finish(self, result: dict[str, Any]) -> Answer:
        """The answer, of the approved request where a person has to approve it first."""
        structured = result.get("structuredContent") or {}
        waiting = structured.get("approval") if isinstance(structured, dict) else None
        if waiting is None and result.get("isError"):
            found = _APPROVAL.search(read_answer(result, wrapped=True).text)
            waiting = next(filter(None, found.groups())) if found else None
        if not isinstance(waiting, str):
            return read_answer(result, wrapped=True)
        decided = await asyncio.to_thread(self.home.approve, waiting)
        if decided.status_code >= 400:
            return Answer(None, decided.text, True)
        settled: dict[str, Any] = {"state": "approved"}
        while settled.get("state") in MOVING:
            told = await self._ask(self.serve, "status", {"approval": waiting, "wait": 20})
            settled = told.get("structuredContent") or {}
        outcome = settled.get("outcome") or {}
        if not outcome.get("content"):
            return Answer(None, json.dumps(settled)[:600], True)
        failed = settled.get("state") != "done" or bool(outcome.get("isError"))
        return read_answer({**outcome, "isError": failed}, wrapped=True)


@asynccontextmanager
async def open_client(home: Home, name: str) -> AsyncIterator[OurClient]:
    """The clients of a registered server, until the block ends."""
    async with AsyncExitStack() as stack:
        clients = []
        for words in (("run", name), ("serve",)):
            command, *rest = home.command(*words)
            parameters = StdioServerParameters(command=command, args=rest, env=home.environment)
            clients.append(await stack.enter_async_context(Client(parameters)))
        run, serve = clients
        made = OurClient(home, name, run, serve)
        made.tools = (await run.list_tools()).tools
        yield made
