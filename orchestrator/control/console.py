"""What the control page asks the control plane for: its parts as they change, a task, a search."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from orchestrator.answers import job_json
from orchestrator.control_process import spawn
from orchestrator.freeze import is_alive
from orchestrator.panels import panels
from orchestrator.requests import body_of
from orchestrator.settings import Settings
from registry.records import ENDED_JOBS, Job, new_id
from registry.store import Store

LOOK_SECONDS = 0.2
KEEP_ALIVE_SECONDS = 15.0
MAX_WAIT_SECONDS = 25.0
MAX_WATCHERS = 32
REPLAY_SECONDS = 120.0
SEARCHED_ROWS = 5000
FOUND_ROWS = 100
WORKERS = frozenset({"serve", "work"})
"""The kinds of processes that take up queued jobs."""
TEXTS = {"task": 4000, "tool": 100, "source": 2000, "reason": 4000, "session": 200}


@dataclass
class Console:
    """The page's endpoints, over one store."""

    settings: Settings
    store: Store
    watchers: int = 0

    async def events(self, request: Request) -> Response:
        """Server-sent events: the page's parts as HTML by name, at once and as they change."""
        if self.watchers >= MAX_WATCHERS:
            return JSONResponse({"error": "too many pages are open; close some"}, 429)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            self._changes(request), media_type="text/event-stream", headers=headers
        )

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        shown: dict[str, str] = {}
        version, told = -1, time.monotonic()
        self.watchers += 1
        try:
            while not await request.is_disconnected():
                seen = await asyncio.to_thread(self.store.data_version)
                if seen != version:
                    version = seen
                    parts = await asyncio.to_thread(panels, self.store)
                    changed = {
                        name: html for name, html in parts.items() if shown.get(name) != html
                    }
                    shown = parts
                    if changed:
                        told = time.monotonic()
                        yield f"data: {json.dumps(changed)}\n\n"
                if time.monotonic() - told > KEEP_ALIVE_SECONDS:
                    told = time.monotonic()
                    yield ": still here\n\n"
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.watchers -= 1

    async def do(self, request: Request) -> Response:
        """Do a task: `task`, and optionally `tool`, `arguments`, `source`; answers with a job."""
        body = await body_of(request)
        order = _order(body)
        if order is None:
            return JSONResponse({"error": "a task is a text, its arguments are an object"}, 400)
        job = await asyncio.to_thread(self._queued, order)
        return JSONResponse(job_json(job), 202)

    def _queued(self, order: dict[str, Any]) -> Job:
        now = time.time()
        job = Job(new_id(), "do", order, created=now, updated=now)
        self.store.create_job(job)
        self.work()
        return job

    def work(self) -> None:
        """Have somebody carry out what is queued, or was allowed to go on."""
        if not any(p.kind in WORKERS and is_alive(p) for p in self.store.processes()):
            spawn(self.settings, "work")

    async def job(self, request: Request) -> Response:
        """A job; with `wait` (seconds, up to 25) and `seen` (its `updated`), when it changed."""
        wait = min(_number(request.query_params.get("wait")), MAX_WAIT_SECONDS)
        seen = _number(request.query_params.get("seen"))
        end = time.monotonic() + wait
        while True:
            job = await asyncio.to_thread(self.store.job, request.path_params["id"])
            if job.updated != seen or job.state in ENDED_JOBS or time.monotonic() >= end:
                return JSONResponse(job_json(job))
            await asyncio.sleep(LOOK_SECONDS)

    async def mark_wrong(self, request: Request) -> Response:
        """Mark a call's result as wrong: it counts as a failure of its server."""
        identity = request.path_params["id"]
        await asyncio.to_thread(
            self.store.mark_wrong, identity, "page", time.time(), "marked on the page"
        )
        return JSONResponse({"call": identity, "told": f"{identity} is marked wrong"})

    async def replay(self, request: Request) -> Response:
        """Run a call again from its recording, offline, and say whether the result is the same."""
        identity = request.path_params["id"]
        # The store knows it, so this is an id of ours and no option of the command.
        await asyncio.to_thread(self.store.invocation, identity)
        told = await asyncio.to_thread(self._replayed, identity)
        return JSONResponse(told)

    def _replayed(self, identity: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "orchestrator", "replay", identity, "--json"]
        environment = {**os.environ, "TOOLWRIGHT_HOME": str(self.settings.home)}
        try:
            ran = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                timeout=REPLAY_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"the replay took longer than {REPLAY_SECONDS:g} s"}
        try:
            said = json.loads(ran.stdout)
        except ValueError:
            return {"error": ran.stderr.decode("utf-8", "replace")[-1000:]}
        return said if isinstance(said, dict) else {"told": str(said)}

    async def search(self, request: Request) -> Response:
        """The latest calls and audit rows that hold a text, a line each."""
        text = request.query_params.get("text", "")[:200].lower()
        found = await asyncio.to_thread(self._found, text) if text else []
        return JSONResponse({"found": found})

    def _found(self, text: str) -> list[str]:
        calls = [
            f"call {call.id} {call.entry}.{call.tool} {call.task} {json.dumps(call.arguments)}"
            for call in self.store.invocations(limit=SEARCHED_ROWS)
        ]
        rows = [
            f"audit {row.id} {row.kind} {row.subject} {row.payload}"
            for row in self.store.audit(SEARCHED_ROWS)
        ]
        return [line[:500] for line in (*calls, *rows) if text in line.lower()][:FOUND_ROWS]


def _order(body: dict[str, Any]) -> dict[str, Any] | None:
    """What a `do` job is asked for, or None where that is malformed."""
    order: dict[str, Any] = {}
    for name, limit in TEXTS.items():
        value = body.get(name, "")
        if not isinstance(value, str) or len(value) > limit:
            return None
        if value:
            order[name] = value
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict) or not order.get("task", "").strip():
        return None
    return {**order, "arguments": arguments}


def _number(text: str | None) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e12 else 0.0
