"""MCP's tasks extension: a job, or a call that takes long, that a client polls by its own protocol.

Only for clients that declare it, in the 2026-07-28 era; all others have `status`.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from orchestrator import answers
from orchestrator.answers import Result
from orchestrator.app import App
from orchestrator.calls import Reply
from orchestrator.errors import OrchestratorError
from registry.drafts import awaits_draft
from registry.errors import RegistryError, Unknown
from registry.records import Job
from sandbox.errors import SandboxError

EXTENSION = "io.modelcontextprotocol/tasks"
MODERN = "2026-07-28"
POLL_MS = 1000
MAX_CALLS = 256
"""So many calls' results are kept for who polls; older ones are in the audit log."""
JOB, CALL = "job", "call"
ACKNOWLEDGED: Result = {"resultType": "complete"}


class TaskParams(types.RequestParams):
    task_id: str


class Tasks:
    """The tasks of one process's clients. Their ids hold in every process of the home."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._calls: dict[str, tuple[float, asyncio.Task[Reply]]] = {}

    def offer(self, server: Server[Any]) -> None:
        """Let the server declare the extension and answer its methods."""
        server.extensions[EXTENSION] = {}
        for method, handler in (
            ("tasks/get", self._get),
            ("tasks/update", self._update),
            ("tasks/cancel", self._cancel),
        ):
            server.add_request_handler(method, TaskParams, handler)

    def instead(self, context: Any, result: Result) -> Result:
        """A task in place of a result that is only a handle, where the client declares tasks."""
        if not declares(context) or result.get("isError"):
            return result
        handle = result.get("structuredContent")
        handle = handle if isinstance(handle, Mapping) else {}
        if handle.get("state") == "running" and "call" in handle:
            return self._of_call(str(handle["call"])) or result
        if handle.get("state") in ("queued", "running") and "job" in handle:
            job = self._app.store.job(handle["job"])
            return {"resultType": "task", **_told(f"{JOB}.{job.id}", "working", job)}
        return result

    def _of_call(self, identity: str) -> Result | None:
        running = self._app.dispatch.running.get(identity)
        if running is None:
            return None
        while len(self._calls) >= MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        begun = time.time()
        self._calls[identity] = (begun, running[1])
        return {"resultType": "task", **_state(f"{CALL}.{identity}", "working", begun, begun)}

    async def _get(self, context: Any, params: TaskParams) -> Result:
        kind, identity = _known(context, params)
        try:
            found = (self._job if kind == JOB else self._call)(params.task_id, identity)
        except Unknown as error:
            raise _unknown(params.task_id) from error
        return {**ACKNOWLEDGED, **found}

    async def _update(self, context: Any, params: TaskParams) -> Result:
        """No task of ours asks its client for anything: what a person decides is not told here."""
        await self._get(context, params)
        return ACKNOWLEDGED

    async def _cancel(self, context: Any, params: TaskParams) -> Result:
        kind, identity = _known(context, params)
        found = await self._get(context, params)
        if found["status"] == "working" and kind == JOB:
            await asyncio.to_thread(self._app.store.cancel_job, identity, "a client", time.time())
        elif identity in self._calls:
            self._calls[identity][1].cancel()
        return ACKNOWLEDGED

    def _job(self, task: str, identity: str) -> Result:
        job = self._app.store.job(identity)
        if job.state == "cancelled":
            return _told(task, "cancelled", job)
        if job.state == "failed":
            return {**_told(task, "completed", job), "result": answers.refusal(job.message)}
        if job.state != "done" and not awaits_draft(job):
            return _told(task, "working", job)
        done = job.kind == "do" and isinstance(job.result, dict)
        result = dict(job.result) if done else answers.job_result(job)
        return {**_told(task, "completed", job), "result": result}

    def _call(self, task: str, identity: str) -> Result:
        if identity not in self._calls:
            invocation = self._app.store.invocation(identity)
            ended = _state(task, "completed", invocation.started, invocation.started)
            return {**ended, "result": answers.answer(self._app.finished(identity))}
        begun, running = self._calls[identity]
        if not running.done():
            return _state(task, "working", begun, time.time())
        if running.cancelled():
            return _state(task, "cancelled", begun, time.time())
        return {**_state(task, "completed", begun, time.time()), "result": _result(running)}


def declares(context: Any) -> bool:
    """Whether the client of a request declared the extension with it."""
    if context.protocol_version != MODERN:
        return False
    declared = context.session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


def _known(context: Any, params: TaskParams) -> tuple[str, str]:
    """A task's kind and the id of what it stands for. Raises MCPError."""
    if context.protocol_version != MODERN:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not declares(context):
        wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "tasks were not declared", wanted)
    kind, dot, identity = params.task_id[:100].partition(".")
    if kind not in (JOB, CALL) or not dot:
        raise _unknown(params.task_id)
    return kind, identity


def _unknown(task: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"Unknown task: {task[:100]}")


def _result(running: asyncio.Task[Reply]) -> Result:
    try:
        return answers.reply_result(running.result())
    except (OrchestratorError, RegistryError, SandboxError) as error:
        return answers.refusal(str(error))


def _told(task: str, status: str, job: Job) -> Result:
    message = job.message or job.stage or job.state
    return {**_state(task, status, job.created, job.updated), "statusMessage": message[:500]}


def _state(task: str, status: str, created: float, updated: float) -> Result:
    return {
        "taskId": task,
        "status": status,
        "createdAt": _iso(created),
        "lastUpdatedAt": _iso(updated),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
