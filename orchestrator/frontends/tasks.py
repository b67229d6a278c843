"""MCP's tasks extension: jobs and long calls as tasks that a client polls.

Only for clients that declare it, in the 2026-07-28 era; all others have `status`.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator.app import App
from orchestrator.approvals.settling import settle_run
from orchestrator.called_tools import CalledTools
from orchestrator.calls import Reply
from orchestrator.errors import OrchestratorError
from orchestrator.frontends.greeting import EXTENSION
from orchestrator.views.jobs import build_job_result
from orchestrator.views.records import encode_call
from orchestrator.views.replies import build_reply_result
from orchestrator.views.results import Result, build_answer, build_refusal
from registry.errors import RegistryError, RowNotFound
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.models import Invocation, Job
from sandbox.errors import SandboxError
from sandbox.sanitize import clean_json

GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
REQUIRED: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
"""What an error says to a client that asks for a task and did not declare the extension."""
UNDECLARED = "tasks were not declared"
POLL_MS = 1000
MAX_CALLS = 256
"""So many calls' results are kept for who polls; older ones are in the audit log."""
JOB, CALL = "job", "call"
ACKNOWLEDGED: Result = {"resultType": "complete"}


class ClientTasks:
    """The tasks of one process's clients. Their ids hold in every process of the home.

    `told` makes a tool's result of a reply. With a `server`, only its calls are tasks.
    """

    def __init__(
        self,
        app: App,
        told: Callable[[Reply], Mapping[str, Any]] = build_reply_result,
        server: str = "",
    ) -> None:
        self._app, self._told, self._server = app, told, server
        self._calls: dict[str, tuple[float, asyncio.Task[Reply]]] = {}

    def replace_handle(self, result: Result) -> Result:
        """A task in place of a result that is only a handle."""
        if result.get("isError"):
            return result
        handle = result.get("structuredContent")
        handle = handle if isinstance(handle, Mapping) else {}
        if handle.get("state") == "running" and "call" in handle:
            return self.create_call_task(str(handle["call"])) or result
        if handle.get("state") in ("queued", "running") and "job" in handle:
            job = self._app.store.jobs.get(handle["job"])
            return {"resultType": "task", **_encode_job_state(f"{JOB}.{job.id}", "working", job)}
        return result

    def create_call_task(self, identity: str) -> Result | None:
        """A call that runs as a task; None where it has ended."""
        running = self._app.dispatch.running.get(identity)
        if running is None:
            return None
        while len(self._calls) >= MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        begun = time.time()
        self._calls[identity] = (begun, running[1])
        return {
            "resultType": "task",
            **_encode_state(f"{CALL}.{identity}", "working", begun, begun),
        }

    async def answer_request(self, method: str, task: Any) -> Result:
        """What a client is told that asks about a task, or cancels it. Raises Unknown."""
        kind, identity = self._parse_task_id(task)
        describe = self._describe_job if kind == JOB else self._describe_call
        found = await asyncio.to_thread(describe, str(task), identity)
        if method == GET:
            return {**ACKNOWLEDGED, **found}
        # No task of ours asks its client for anything: what a person decides is not told here.
        if method == CANCEL and found["status"] == "working" and kind == JOB:
            await asyncio.to_thread(self._app.store.jobs.cancel, identity, "a client", time.time())
        elif method == CANCEL and identity in self._calls:
            self._calls[identity][1].cancel()
        return ACKNOWLEDGED

    def _parse_task_id(self, task: Any) -> tuple[str, str]:
        """A task's kind and the id of what it stands for. Raises Unknown."""
        kind, dot, identity = str(task)[:100].partition(".")
        kinds = (CALL,) if self._server else (JOB, CALL)
        if not isinstance(task, str) or kind not in kinds or not dot:
            raise RowNotFound("task", str(task)[:100])
        return kind, identity

    def _describe_job(self, task: str, identity: str) -> Result:
        job = self._app.store.jobs.get(identity)
        if job.state == "cancelled":
            return _encode_job_state(task, "cancelled", job)
        if job.state == "failed":
            return {
                **_encode_job_state(task, "completed", job),
                "result": build_refusal(job.message),
            }
        if job.state != "done" and not awaits_draft(job) and not awaits_answer(job):
            return _encode_job_state(task, "working", job)
        return {
            **_encode_job_state(task, "completed", job),
            "result": clean_json(build_job_result(settle_run(job, self._app.store))),
        }

    def _describe_call(self, task: str, identity: str) -> Result:
        if identity not in self._calls:
            invocation = self._app.store.calls.get(identity)
            if self._server and invocation.entry != self._server:
                raise RowNotFound("task", task[:100])
            status = "working" if invocation.state == "intended" else "completed"
            told = _encode_state(task, status, invocation.started, invocation.started)
            if status == "working":
                return told
            return {**told, "result": clean_json(self._recall_result(invocation))}
        begun, running = self._calls[identity]
        if not running.done():
            return _encode_state(task, "working", begun, time.time())
        if running.cancelled():
            return _encode_state(task, "cancelled", begun, time.time())
        return {
            **_encode_state(task, "completed", begun, time.time()),
            "result": clean_json(self._build_result(running)),
        }

    def _recall_result(self, call: Invocation) -> Mapping[str, Any]:
        """What a call of another process, or of one that has ended, was answered; where that was
        not kept, what is known of it.
        """
        if isinstance(call.result, Mapping) and "content" in call.result:
            return call.result
        return build_answer(
            encode_call(call, CalledTools(self._app.store.servers, self._app.shelf))
        )

    def _build_result(self, running: asyncio.Task[Reply]) -> Mapping[str, Any]:
        try:
            return self._told(running.result())
        except (OrchestratorError, RegistryError, SandboxError) as error:
            return build_refusal(str(error))


def _encode_job_state(task: str, status: str, job: Job) -> Result:
    # What a job waited for that was cancelled is not to be done any more.
    told = "" if status == "cancelled" else job.message or job.stage
    message = told or job.state
    return {**_encode_state(task, status, job.created, job.updated), "statusMessage": message[:500]}


def _encode_state(task: str, status: str, created: float, updated: float) -> Result:
    return {
        "taskId": task,
        "status": status,
        "createdAt": _format_time(created),
        "lastUpdatedAt": _format_time(updated),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _format_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
