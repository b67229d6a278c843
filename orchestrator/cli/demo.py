"""The whole story against the example API, told as it happens and proved from the API's own log."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from orchestrator.terminal import err, say
from registry.records import ENDED_JOBS

EXAMPLES = (
    Path(__file__).parent / "assets" / "harbour",
    Path(__file__).parents[1] / "examples" / "harbour",
)
"""Where the example API is: in an installed package, in a checkout."""
SERVER = "harbour"
TASK = "list the berths of the harbour"
PARAPHRASE = "show me every berth in the harbour"
BOOKING = {
    "berth": 4,
    "boat": {"name": "Toolwright", "kind": "sail", "length": 7.5},
    "arrival": "2027-06-01",
    "nights": 2,
}
SLOW_SECONDS = 30


@dataclass
class Claims:
    """What the demo promises, each as it turned out."""

    held: dict[str, bool] = field(default_factory=dict)

    def check(self, claim: str, holds: bool) -> None:
        self.held[claim] = holds
        say(f"  {'ok ' if holds else 'NOT'} {claim}", "green" if holds else "bold red")


@dataclass(frozen=True)
class Harbour:
    """The example API: its address and its own log."""

    url: str
    log: Path

    def received(self, method: str = "", after: float = 0.0) -> list[dict[str, Any]]:
        """The requests that reached the API, as it logged them."""
        entries = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [
            e
            for e in entries
            if e["event"] == "received" and e["time"] > after and method in ("", e["method"])
        ]


class Story:
    """One run of the demo, in a home that is set up already, with the PIN in `pin_file`."""

    def __init__(self, settings: Settings, pin_file: Path, harbour: Harbour) -> None:
        self._pin_file, self._harbour = pin_file, harbour
        self._claims = Claims()
        self._environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": str(settings.home),
            "TOOLWRIGHT_ENGINE": settings.engine,
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        }

    async def tell(self) -> bool:
        """Run it; whether every claim held."""
        serve = StdioServerParameters(
            command=sys.executable, args=["-m", "orchestrator", "serve"], env=self._environment
        )
        say("An MCP client starts `toolwright serve` over stdio.", "bold")
        async with Client(serve) as client:
            self._client = client
            listed = await client.list_tools()
            say("  tools: " + ", ".join(tool.name for tool in listed.tools))
            # The client's task group would wrap an error that left this block.
            trouble = await self._chapters()
        if trouble:
            raise trouble
        return all(self._claims.held.values())

    async def _chapters(self) -> OrchestratorError | None:
        try:
            tool = await self._forge()
            await self._read(tool)
            await self._write()
            await self._freeze()
        except OrchestratorError as error:
            return error
        return None

    async def _forge(self) -> str:
        say(f"\nIt asks for something: {TASK!r}", "bold")
        asked = await self._call("do", {"task": TASK})
        fitting = [c["tool"] for c in asked["candidates"] if c["tool"].startswith(f"{SERVER}.")]
        self._claims.check("no registered server can do it", not fitting)
        say(f"\nSo it has one forged from {self._harbour.url}", "bold")
        begun = time.monotonic()
        job = await self._call("forge", {"task": TASK, "source": self._harbour.url})
        done = await self._follow(job["job"])
        took = time.monotonic() - begun
        if done["state"] != "done":
            raise OrchestratorError(f"the forge failed: {done['message']}")
        self._claims.check(f"forged, proved and registered ({took:.1f} s)", True)
        found = await self._call("find", {"task": PARAPHRASE})
        best = str(found["candidates"][0]["tool"]) if found["candidates"] else ""
        self._claims.check(
            f"{PARAPHRASE!r} now offers harbour.list_berths first", best == "harbour.list_berths"
        )
        return best

    async def _read(self, tool: str) -> None:
        answer = await self._call("call_read", {"tool": tool, "task": TASK})
        berths = answer.get("body", [])
        say(f"  {len(berths)} berths, the first: {json.dumps(berths[:1])[1:-1]}")
        self._claims.check("the answer is there", bool(berths))
        jobs = len((await self._call("status", {}))["jobs"])
        again = await self._call("do", {"task": PARAPHRASE, "tool": tool})
        self._claims.check("asked again, it is routed and not forged", again["body"] == berths)
        self._claims.check("no job is left", jobs == 0)

    async def _write(self) -> None:
        say("\nIt asks for a write.", "bold")
        call = {
            "tool": "harbour.book_berth",
            "arguments": {"body": BOOKING},
            "task": "book berth 4",
        }
        pending = await self._call("call_write", call)
        request = pending["request"]
        say(f"  waits for a person: {request['method']} {request['url']} {request['body']}")
        self._claims.check("nothing was written yet", not self._harbour.received("POST"))
        say("  a person approves it in another process:")
        await self._person("approve", pending["approval"])
        settled = await self._call("status", {"approval": pending["approval"], "wait": 20})
        self._claims.check("the approved request was carried out", settled["state"] == "done")
        self._claims.check(
            "exactly one write reached the API", len(self._harbour.received("POST")) == 1
        )

    async def _freeze(self) -> None:
        say("\nA slow call, and the kill switch in another process.", "bold")
        slow = {"tool": "harbour.occupancy_report", "arguments": {"seconds": SLOW_SECONDS}}
        running = asyncio.create_task(self._result("call_read", slow))
        while not any(e["path"].startswith("/report") for e in self._harbour.received("GET")):
            await asyncio.sleep(0.02)
        begun = time.monotonic()
        killed = json.loads(await self._person("kill", "--json", pin=False))
        frozen_at = time.time()
        cut = await running
        took = time.monotonic() - begun
        say(f"  frozen in {killed['milliseconds']} ms, {killed['containers']} sandboxes killed")
        self._claims.check(
            f"the slow call was cut ({took:.1f} s of {SLOW_SECONDS} s)",
            bool(cut.is_error) and took < SLOW_SECONDS / 2 and not killed["left"],
        )
        refused = await self._result("call_read", {"tool": "harbour.list_berths"})
        self._claims.check("a new call is refused", bool(refused.is_error))
        self._claims.check(
            "no request reached the API after the freeze", not self._harbour.received("", frozen_at)
        )
        await self._person("unfreeze")
        after = await self._call("call_read", {"tool": "harbour.list_berths"})
        self._claims.check("unfrozen, it works again", bool(after.get("body")))

    async def _follow(self, job: str) -> dict[str, Any]:
        """Follow a forge job; what it waits for, a person gives in another process."""
        shown = 0
        while True:
            state = await self._call("status", {"job": job, "wait": 1})
            for _, stage, message in state["events"][shown:]:
                say(f"  {stage:<9} {message}", "dim")
            shown = len(state["events"])
            if state["state"] == "waiting":
                host = self._harbour.url.removeprefix("http://")
                say("  a person allows the new host in another process:")
                await self._person("source", "allow", host)
            elif state["state"] in ENDED_JOBS:
                return state

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        result = await self._result(tool, arguments)
        if result.is_error:
            text = "\n".join(getattr(block, "text", "") for block in result.content)
            raise OrchestratorError(f"{tool} failed: {text}")
        return dict(result.structured_content or {})

    async def _result(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        return await self._client.call_tool(tool, dict(arguments))

    async def _person(self, *words: str, pin: bool = True) -> str:
        """What a person types at a terminal; its output."""
        given = ["--pin-file", str(self._pin_file)] if pin else []
        say(f"  $ toolwright {' '.join(words)}", "cyan")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "orchestrator",
            *words,
            *given,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise OrchestratorError(f"toolwright {' '.join(words)}: exit {process.returncode}")
        return output.decode()


@asynccontextmanager
async def example_api(directory: Path) -> AsyncIterator[Harbour]:
    """The example API on a free port."""
    script = next(place / "api.py" for place in EXAMPLES if place.exists())
    log = directory / "requests.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), "--log", str(log), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        port = json.loads(await process.stdout.readline())["port"]
        err.print(f"example API at http://127.0.0.1:{port}", style="dim")
        yield Harbour(f"http://127.0.0.1:{port}", log)
    finally:
        process.terminate()
        await process.wait()
