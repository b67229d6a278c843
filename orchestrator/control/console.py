"""Endpoints of the control page: its events, tasks, jobs, replays and search."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from orchestrator.approvals.settling import settle_run
from orchestrator.control.access import ControlAccess
from orchestrator.control.commands import run_command
from orchestrator.control.logins import LoginSession
from orchestrator.control.middleware import read_body
from orchestrator.control.page import RoomReaders, open_readers, open_renderer, render_panels
from orchestrator.control.rendering import PartRenderer, Viewer
from orchestrator.control.rooms.configuration import build_report
from orchestrator.control.rooms.place import Place, build_address, parse_place
from orchestrator.control.runs import iterate_steps
from orchestrator.control.texts import cut_text
from orchestrator.job_requests import check_request
from orchestrator.processes.control_client import spawn_command
from orchestrator.processes.liveness import is_alive
from orchestrator.settings import Settings
from orchestrator.views.jobs import encode_job
from registry.errors import RowNotFound
from registry.models import ENDED_JOBS, Job, JobKind, generate_id
from registry.store import Store

LOOK_SECONDS = 0.2
SEARCH_SECONDS = 5.0
"""Between two searches for a text, which reads many rows."""
KEEP_ALIVE_SECONDS = 15.0
MAX_WAIT_SECONDS = 25.0
MAX_WATCHERS = 32
REPLAY_SECONDS = 120.0
CHECK_SECONDS = 90.0
MAX_TOLD = 200
SEARCHED_ROWS = 5000
FOUND_ROWS = 100
MAX_REASON = 1_000
WORKERS = frozenset({"serve", "work"})
"""The kinds of processes that run queued jobs."""
TEXTS = {"task": 4000, "tool": 100, "source": 2000, "reason": 4000, "session": 200}


@dataclass
class PageConsole:
    """The page's endpoints, over one store."""

    settings: Settings
    store: Store
    access: ControlAccess
    watchers: int = 0
    _readers: RoomReaders = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._readers = open_readers(self.settings, self.store)

    async def stream_events(self, request: Request) -> Response:
        """Server-sent events: the parts of a room as HTML by name, at once and as they change:
        `room` (home), `name` of one thing in it, and the room's filters.
        """
        asked = request.query_params
        place = parse_place(asked.get("room") or "home", asked.get("name", ""), asked)
        if place is None:
            return JSONResponse({"error": "there is no such room"}, 404)
        if self.watchers >= MAX_WATCHERS:
            return JSONResponse({"error": "too many pages are open; close some"}, 429)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        session = self.access.find_session(request)
        return StreamingResponse(
            self._stream_changes(request, session, place),
            media_type="text/event-stream",
            headers=headers,
        )

    async def _stream_changes(
        self, request: Request, session: LoginSession | None, place: Place
    ) -> AsyncIterator[str]:
        if self.watchers >= MAX_WATCHERS:
            # Others that asked at the same time were first.
            return
        shown: Mapping[str, str] = {}
        renderer = open_renderer(place, Viewer(session))
        pause = SEARCH_SECONDS if place.get_filter("text") else LOOK_SECONDS
        version, told, spent = -1, time.monotonic(), 0.0
        self.watchers += 1
        try:
            while not await request.is_disconnected() and self._is_logged_in(session):
                seen = await asyncio.to_thread(self.store.signals.read_data_version)
                if seen != version:
                    version, begun = seen, time.monotonic()
                    parts = await asyncio.to_thread(
                        render_panels, self.store, place, self.settings, self._readers, renderer
                    )
                    changed = {
                        name: html for name, html in parts.items() if shown.get(name) != html
                    }
                    shown, spent = parts, time.monotonic() - begun
                    if changed:
                        told = time.monotonic()
                        yield f"data: {json.dumps(changed)}\n\n"
                if time.monotonic() - told > KEEP_ALIVE_SECONDS:
                    told = time.monotonic()
                    yield ": still here\n\n"
                # A room that takes long is made less often: at most a tenth of the time.
                await asyncio.sleep(max(pause, 9 * spent))
        finally:
            self.watchers -= 1

    def _is_logged_in(self, session: LoginSession | None) -> bool:
        """Whether a page's session has not ended; what asks with the token has none."""
        known = self.access.logins
        return session is None or known.find_session(session.cookie, time.time()) is not None

    async def log_out(self, request: Request) -> Response:
        """End the browser's log-in."""
        session = self.access.find_session(request)
        if session is not None:
            self.access.logins.end_session(session)
        told = "You are logged out. `toolwright control --open` logs in."
        return JSONResponse({"told": told, "ended": True})

    async def check_installation(self, request: Request) -> Response:
        """Check the installation as `toolwright doctor` does; `html` is a table of the checks."""
        said = await asyncio.to_thread(self._run_doctor)
        if "items" not in said:
            return JSONResponse({"error": str(said.get("error") or "it gave no answer")})
        report = build_report(said["items"])
        html = PartRenderer().render("configuration", "checks", report)
        return JSONResponse({"told": report.told, "html": html, "checks": said["items"]})

    def _run_doctor(self) -> dict[str, Any]:
        return run_command(self.settings, "doctor", "--json", seconds=CHECK_SECONDS)

    async def start_task(self, request: Request) -> Response:
        """Do a task: `task`, and optionally `tool`, `arguments`, `source`; answers with a job."""
        body = await read_body(request)
        order = _parse_order(body)
        if order is None:
            return JSONResponse({"error": "a task is a text, its arguments are an object"}, 400)
        job = await asyncio.to_thread(self._queue_job, order)
        return JSONResponse(encode_job(job), 202)

    async def forge_server(self, request: Request) -> Response:
        """Have a server made of the API description at `source` (a URL), with `name` if it is to
        have that one; answers with the job.
        """
        body = await read_body(request)
        source, name = (str(body.get(each) or "").strip() for each in ("source", "name"))
        if not source or len(source) > TEXTS["source"] or len(name) > TEXTS["tool"]:
            return JSONResponse({"error": "give the address of an API or of its description"}, 400)
        order = {"source": source, **({"name": name} if name else {})}
        job = await asyncio.to_thread(self._queue_job, order, "forge")
        link = {"href": build_address("jobs"), "label": "See how far it is"}
        told = "It is being made. Where it needs your yes, it asks under Approvals."
        return JSONResponse({"job": job.id, "told": told, "link": link}, 202)

    def _queue_job(self, order: dict[str, Any], kind: JobKind = "do") -> Job:
        check_request(kind, order)
        now = time.time()
        job = Job(generate_id(), kind, order, created=now, updated=now)
        self.store.jobs.create(job)
        self.ensure_worker()
        return job

    def ensure_worker(self) -> None:
        """Start a worker process where none is alive to run queued jobs."""
        if not any(p.kind in WORKERS and is_alive(p) for p in self.store.processes.find()):
            spawn_command(self.settings, "work")

    async def wait_for_job(self, request: Request) -> Response:
        """A job; with `wait` (seconds, up to 25) and `seen` (its `updated`), when it changed."""
        wait = min(parse_number(request.query_params.get("wait")), MAX_WAIT_SECONDS)
        seen = parse_number(request.query_params.get("seen"))
        end = time.monotonic() + wait
        while True:
            job = await asyncio.to_thread(self.store.jobs.get, request.path_params["id"])
            if job.updated != seen or job.state in ENDED_JOBS or time.monotonic() >= end:
                settled = await asyncio.to_thread(settle_run, job, self.store)
                return JSONResponse(encode_job(settled))
            await asyncio.sleep(LOOK_SECONDS)

    async def repeat_task(self, request: Request) -> Response:
        """Do the task of an earlier run again, as a new run; answers with its job."""
        earlier = await asyncio.to_thread(self.store.jobs.get, request.path_params["id"])
        order = _parse_order(dict(earlier.request)) if earlier.kind == "do" else None
        if order is None:
            return JSONResponse({"error": f"{earlier.id} is no task run"}, 400)
        again = {**order, **await asyncio.to_thread(self._keep_earlier, earlier)}
        job = await asyncio.to_thread(self._queue_job, again)
        return JSONResponse({"job": job.id, "told": f"begun again as {job.id}"}, 202)

    def _keep_earlier(self, job: Job) -> dict[str, Any]:
        """What a run that is done again starts with: the arguments of its calls, by tool, and the
        tool where it was one that is still registered.
        """
        called = [
            (str(step["tool"]), dict(step["arguments"]))
            for step in iterate_steps(job)
            if isinstance(step.get("arguments"), Mapping)
        ]
        if not called:
            # It ended before it called anything, as the run before it did not.
            before = job.request.get("earlier")
            return {"earlier": dict(before)} if isinstance(before, Mapping) else {}
        (tool, _), one = called[0], len(called) == 1
        return {"earlier": dict(called), **({"tool": tool} if one and self._has_tool(tool) else {})}

    def _has_tool(self, name: str) -> bool:
        server, _, tool = name.partition(".")
        try:
            self.store.servers.get(server).get_tool(tool)
        except (RowNotFound, KeyError):
            return False
        return True

    async def mark_wrong(self, request: Request) -> Response:
        """Mark a call's result as wrong, with a `reason`: it counts as a failure of its server."""
        identity, body = request.path_params["id"], await read_body(request)
        reason = str(body.get("reason") or "marked on the page")[:MAX_REASON]
        await asyncio.to_thread(self.store.calls.mark_wrong, identity, "page", time.time(), reason)
        return JSONResponse({"call": identity, "told": f"{identity} is marked wrong."})

    async def replay_call(self, request: Request) -> Response:
        """Run a call again from its recording, offline, and say whether the result is the same."""
        identity = request.path_params["id"]
        # The store knows it, so this is an id of ours and no option of the command.
        await asyncio.to_thread(self.store.calls.get, identity)
        told = await asyncio.to_thread(self._run_replay, identity)
        return JSONResponse(told)

    def _run_replay(self, identity: str) -> dict[str, Any]:
        said = run_command(self.settings, "replay", identity, "--json", seconds=REPLAY_SECONDS)
        return said if "error" in said else {**said, "told": render_replay(identity, said)}

    async def search_records(self, request: Request) -> Response:
        """The latest calls and audit rows that hold a text, a line each."""
        text = request.query_params.get("text", "")[:200].lower()
        found = await asyncio.to_thread(self._find_lines, text) if text else []
        return JSONResponse({"found": found})

    def _find_lines(self, text: str) -> list[str]:
        calls = [
            f"call {call.id} {call.entry}.{call.tool} {call.task} {json.dumps(call.arguments)}"
            for call in self.store.calls.find(limit=SEARCHED_ROWS)
        ]
        rows = [
            f"audit {row.id} {row.kind} {row.subject} {row.payload}"
            for row in self.store.audit.find(SEARCHED_ROWS)
        ]
        return [line[:500] for line in (*calls, *rows) if text in line.lower()][:FOUND_ROWS]


def render_replay(identity: str, said: Mapping[str, Any]) -> str:
    """What a replay came to, in words, of what `toolwright replay --json` prints."""
    verdict = str(said.get("verdict", "ended"))
    if verdict == "same":
        return "The replay gave the same answer."
    listed = said.get("replays")
    replays = [each for each in listed if isinstance(each, Mapping)] if listed else []
    told = next((each for each in replays if each.get("verdict") == verdict), {})
    more = f"`toolwright replay {identity}` shows all of it."
    if verdict != "different":
        return f"It could not be replayed: {_cut(told.get('reason'))}. {more}"
    found = told.get("difference")
    difference = found if isinstance(found, Mapping) else {}
    was, got = _cut(difference.get("expected")), _cut(difference.get("got"))
    where = _cut(difference.get("where")) or "/"
    return f"The replay gave another answer: at {where} it was {was} and is {got}. {more}"


def _cut(value: Any) -> str:
    """A stranger's value in a line."""
    return cut_text(" ".join(str("" if value is None else value).split()), MAX_TOLD)


def _parse_order(body: dict[str, Any]) -> dict[str, Any] | None:
    """The request of a `do` job, or None where it is malformed."""
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


def parse_number(text: Any) -> float:
    """A count of seconds that somebody sent; 0 for what is none."""
    try:
        value = float(text or 0)
    except (TypeError, ValueError):
        return 0.0
    return value if 0 <= value < 1e12 else 0.0
