"""The demo's script against the example API; claims are checked against the API's own log."""

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

from orchestrator.cli.terminal import err, print_text
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.models import ENDED_JOBS
from sandbox.modulepath import RUN_MODULE, join_module_path

EXAMPLES = (
    Path(__file__).parents[1] / "control" / "assets" / "harbour",
    Path(__file__).parents[2] / "examples" / "harbour",
)
"""Directories of the example API: in an installed package, in a checkout."""
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
class DemoClaims:
    """The claims of the demo, each with whether it held."""

    held: dict[str, bool] = field(default_factory=dict)

    def check_claim(self, claim: str, holds: bool) -> None:
        self.held[claim] = holds
        print_text(f"  {'ok ' if holds else 'NOT'} {claim}", "green" if holds else "bold red")


@dataclass(frozen=True)
class ExampleApi:
    """The example API: its address and its own log."""

    url: str
    log: Path

    def find_requests(self, method: str = "", after: float = 0.0) -> list[dict[str, Any]]:
        """The requests that reached the API, as it logged them."""
        entries = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [
            e
            for e in entries
            if e["event"] == "received" and e["time"] > after and method in ("", e["method"])
        ]


class DemoStory:
    """One run of the demo, in a home that is set up already, with the PIN in `pin_file`."""

    def __init__(self, settings: Settings, pin_file: Path, harbour: ExampleApi) -> None:
        self._pin_file, self._harbour = pin_file, harbour
        self._claims = DemoClaims()
        self._environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": str(settings.home),
            "TOOLWRIGHT_ENGINE": settings.engine,
            "PYTHONPATH": join_module_path(),
        }

    async def run_story(self) -> bool:
        """Run the demo; True where every claim held."""
        serve = StdioServerParameters(
            command=RUN_MODULE[0],
            args=[*RUN_MODULE[1:], "orchestrator", "serve"],
            env=self._environment,
        )
        print_text("An MCP client starts `toolwright serve` over stdio.", "bold")
        async with Client(serve) as client:
            self._client = client
            listed = await client.list_tools()
            print_text("  tools: " + ", ".join(tool.name for tool in listed.tools))
            # The client's task group would wrap an error that left this block.
            trouble = await self._run_chapters()
        if trouble:
            raise trouble
        return all(self._claims.held.values())

    async def _run_chapters(self) -> OrchestratorError | None:
        try:
            tool = await self._forge_server()
            await self._read_berths(tool)
            await self._book_berth()
            await self._freeze_call()
        except OrchestratorError as error:
            return error
        return None

    async def _forge_server(self) -> str:
        print_text(f"\nIt asks for something: {TASK!r}", "bold")
        asked = await self._call_tool("find", {"task": TASK})
        fitting = [c["tool"] for c in asked["candidates"] if c["tool"].startswith(f"{SERVER}.")]
        self._claims.check_claim("no registered server can do it", not fitting)
        print_text(f"\nSo it has one forged from {self._harbour.url}", "bold")
        begun = time.monotonic()
        job = await self._call_tool("forge", {"task": TASK, "source": self._harbour.url})
        done = await self._follow_job(job["job"])
        took = time.monotonic() - begun
        if done["state"] != "done":
            raise OrchestratorError(f"the forge failed: {done['message']}")
        self._claims.check_claim(f"forged, proved and registered ({took:.1f} s)", True)
        found = await self._call_tool("find", {"task": PARAPHRASE})
        best = str(found["candidates"][0]["tool"]) if found["candidates"] else ""
        self._claims.check_claim(
            f"{PARAPHRASE!r} now offers harbour.list_berths first", best == "harbour.list_berths"
        )
        return best

    async def _read_berths(self, tool: str) -> None:
        answer = await self._call_tool("call_read", {"tool": tool, "task": TASK})
        berths = answer.get("body", [])
        print_text(f"  {len(berths)} berths, the first: {json.dumps(berths[:1])[1:-1]}")
        self._claims.check_claim("the answer is there", bool(berths))
        jobs = len((await self._call_tool("status", {}))["jobs"])
        again = await self._call_tool("do", {"task": PARAPHRASE, "tool": tool})
        self._claims.check_claim(
            "asked again, it is routed and not forged", again["body"] == berths
        )
        self._claims.check_claim("no job is left", jobs == 0)

    async def _book_berth(self) -> None:
        print_text("\nIt asks for a write.", "bold")
        call = {
            "tool": "harbour.book_berth",
            "arguments": {"body": BOOKING},
            "task": "book berth 4",
        }
        pending = await self._call_tool("call_write", call)
        request = pending["request"]
        print_text(f"  waits for a person: {request['method']} {request['url']} {request['body']}")
        self._claims.check_claim("nothing was written yet", not self._harbour.find_requests("POST"))
        print_text("  a person approves it in another process:")
        await self._run_as_person("approve", pending["approval"])
        settled = await self._call_tool("status", {"approval": pending["approval"], "wait": 20})
        self._claims.check_claim("the approved request was carried out", settled["state"] == "done")
        self._claims.check_claim(
            "exactly one write reached the API", len(self._harbour.find_requests("POST")) == 1
        )

    async def _freeze_call(self) -> None:
        print_text("\nA slow call, and the kill switch in another process.", "bold")
        slow = {"tool": "harbour.occupancy_report", "arguments": {"seconds": SLOW_SECONDS}}
        running = asyncio.create_task(self._fetch_result("call_read", slow))
        while not any(e["path"].startswith("/report") for e in self._harbour.find_requests("GET")):
            await asyncio.sleep(0.02)
        begun = time.monotonic()
        killed = json.loads(await self._run_as_person("kill", "--json", pin=False))
        frozen_at = time.time()
        cut = await running
        took = time.monotonic() - begun
        print_text(
            f"  frozen in {killed['milliseconds']} ms, {killed['containers']} sandboxes killed"
        )
        self._claims.check_claim(
            f"the slow call was cut ({took:.1f} s of {SLOW_SECONDS} s)",
            bool(cut.is_error) and not killed["left"],
        )
        refused = await self._fetch_result("call_read", {"tool": "harbour.list_berths"})
        self._claims.check_claim("a new call is refused", bool(refused.is_error))
        self._claims.check_claim(
            "no request reached the API after the freeze",
            not self._harbour.find_requests("", frozen_at),
        )
        await self._run_as_person("unfreeze")
        after = await self._call_tool("call_read", {"tool": "harbour.list_berths"})
        self._claims.check_claim("unfrozen, it works again", bool(after.get("body")))

    async def _follow_job(self, job: str) -> dict[str, Any]:
        """Follow a forge job to its end; a subprocess plays the person whom it waits for."""
        shown = 0
        while True:
            state = await self._call_tool("status", {"job": job, "wait": 1})
            for _, stage, message in state["events"][shown:]:
                print_text(f"  {stage:<9} {message}", "dim")
            shown = len(state["events"])
            if state["state"] == "waiting":
                host = self._harbour.url.removeprefix("http://")
                print_text("  a person allows the new host in another process:")
                await self._run_as_person("source", "allow", host)
            elif state["state"] in ENDED_JOBS:
                return state

    async def _call_tool(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        result = await self._fetch_result(tool, arguments)
        if result.is_error:
            text = "\n".join(getattr(block, "text", "") for block in result.content)
            raise OrchestratorError(f"{tool} failed: {text}")
        return dict(result.structured_content or {})

    async def _fetch_result(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        return await self._client.call_tool(tool, dict(arguments))

    async def _run_as_person(self, *words: str, pin: bool = True) -> str:
        """Run a command as a person would at a terminal; its output."""
        given = ["--pin-file", str(self._pin_file)] if pin else []
        print_text(f"  $ toolwright {' '.join(words)}", "cyan")
        process = await asyncio.create_subprocess_exec(
            *RUN_MODULE,
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
async def run_example_api(directory: Path) -> AsyncIterator[ExampleApi]:
    """Run the example API on a free port."""
    script = next(place / "api.py" for place in EXAMPLES if place.exists())
    log = directory / "requests.jsonl"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), "--log", str(log), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        port = json.loads(await process.stdout.readline())["port"]
        err.print(f"example API at http://127.0.0.1:{port}", style="dim")
        yield ExampleApi(f"http://127.0.0.1:{port}", log)
    finally:
        process.terminate()
        await process.wait()
