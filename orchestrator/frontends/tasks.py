"""MCP's tasks extension: a job, or a call that takes long, that a client polls by its own protocol.

Only for clients that declare it, in the 2026-07-28 era; all others have `status`.
https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator import answers
from orchestrator.answers import Result
from orchestrator.app import App
from orchestrator.calls import Reply
from orchestrator.errors import OrchestratorError
from registry.drafts import awaits_draft
from registry.errors import RegistryError, Unknown
from registry.records import Job
from sandbox.cleantext import clean_json
from sandbox.errors import SandboxError

EXTENSION = "io.modelcontextprotocol/tasks"
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
REQUIRED: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
"""What an error says to a client that asks for a task and did not declare the extension."""
UNDECLARED = "tasks were not declared"
POLL_MS = 1000
MAX_CALLS = 256
"""So many calls' results are kept for who polls; older ones are in the audit log."""
JOB, CALL = "job", "call"
ACKNOWLEDGED: Result = {"resultType": "complete"}


class Tasks:
    """The tasks of one process's clients. Their ids hold in every process of the home.

    `told` makes a tool's result of a reply. With a `server`, only its calls are tasks.
    """

    def __init__(
        self,
        app: App,
        told: Callable[[Reply], Mapping[str, Any]] = answers.reply_result,
        server: str = "",
    ) -> None:
        self._app, self._told, self._server = app, told, server
        self._calls: dict[str, tuple[float, asyncio.Task[Reply]]] = {}

    def instead(self, result: Result) -> Result:
        """A task in place of a result that is only a handle."""
        if result.get("isError"):
            return result
        handle = result.get("structuredContent")
        handle = handle if isinstance(handle, Mapping) else {}
        if handle.get("state") == "running" and "call" in handle:
            return self.of_call(str(handle["call"])) or result
        if handle.get("state") in ("queued", "running") and "job" in handle:
            job = self._app.store.job(handle["job"])
            return {"resultType": "task", **_told(f"{JOB}.{job.id}", "working", job)}
        return result

    def of_call(self, identity: str) -> Result | None:
        """A call that runs as a task; None where it has ended."""
        running = self._app.dispatch.running.get(identity)
        if running is None:
            return None
        while len(self._calls) >= MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        begun = time.time()
        self._calls[identity] = (begun, running[1])
        return {"resultType": "task", **_state(f"{CALL}.{identity}", "working", begun, begun)}

    async def answer(self, method: str, task: Any) -> Result:
        """What a client is told that asks about a task, or cancels it. Raises Unknown."""
        kind, identity = self._known(task)
        found = (self._job if kind == JOB else self._call)(str(task), identity)
        if method == GET:
            return {**ACKNOWLEDGED, **found}
        # No task of ours asks its client for anything: what a person decides is not told here.
        if method == CANCEL and found["status"] == "working" and kind == JOB:
            await asyncio.to_thread(self._app.store.cancel_job, identity, "a client", time.time())
        elif method == CANCEL and identity in self._calls:
            self._calls[identity][1].cancel()
        return ACKNOWLEDGED

    def _known(self, task: Any) -> tuple[str, str]:
        """A task's kind and the id of what it stands for. Raises Unknown."""
        kind, dot, identity = str(task)[:100].partition(".")
        kinds = (CALL,) if self._server else (JOB, CALL)
        if not isinstance(task, str) or kind not in kinds or not dot:
            raise Unknown("task", str(task)[:100])
        return kind, identity

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
        return {**_told(task, "completed", job), "result": clean_json(result)}

    def _call(self, task: str, identity: str) -> Result:
        if identity not in self._calls:
            invocation = self._app.store.invocation(identity)
            if self._server and invocation.entry != self._server:
                raise Unknown("task", task[:100])
            ended = _state(task, "completed", invocation.started, invocation.started)
            finished = answers.answer(self._app.finished(identity))
            return {**ended, "result": clean_json(finished)}
        begun, running = self._calls[identity]
        if not running.done():
            return _state(task, "working", begun, time.time())
        if running.cancelled():
            return _state(task, "cancelled", begun, time.time())
        return {**_state(task, "completed", begun, time.time()), "result": self._result(running)}

    def _result(self, running: asyncio.Task[Reply]) -> Mapping[str, Any]:
        try:
            return self._told(running.result())
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
