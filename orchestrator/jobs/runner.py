"""Work that outlives a call: queued as rows, carried out by whichever process is alive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import structlog

from forge.errors import ForgeError
from orchestrator.errors import DraftWanted, ForgeWaits, OrchestratorError
from orchestrator.needs import engine_needs, engineless
from registry.errors import DatabaseUnusable, JobLost, RegistryError
from registry.records import Job, JobKind, new_id
from registry.store import Store
from sandbox.errors import NO_ENGINE, SandboxError

Report = Callable[[str, float, str], None]
Work = Callable[[Job, Report], Awaitable[Mapping[str, Any]]]
KNOWN_FAILURES = (ForgeError, OrchestratorError, RegistryError, SandboxError, OSError)
AT_ONCE = 2
RETRY_SECONDS = 1.0

log = structlog.get_logger()


@dataclass
class Jobs:
    """Claims queued jobs and runs them with the `work` of their kind, two at a time.

    `person` returns when a person may have done what a waiting job waits for; the job is then tried
    again. Where it is None a job that would wait fails and says what it needs. `met` tells whether
    a job that belongs to nobody has by now what it needed.
    """

    store: Store
    process: str
    work: Mapping[JobKind, Work]
    person: Callable[[], Awaitable[None]] | None = None
    met: Callable[[Job], bool] = lambda job: False
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def create(self, kind: JobKind, request: Mapping[str, Any]) -> Job:
        """A queued job; `advance` starts it."""
        now = time.time()
        job = Job(new_id(), kind, dict(request), created=now, updated=now)
        self.store.create_job(job)
        return job

    def advance(self) -> None:
        """Claim what is queued, as far as there is room. Does not wait."""
        for job in self.store.needing_jobs():
            if self.met(job):
                self.store.resume_job(job.id, "what a person allowed", time.time())
        for job in reversed(self.store.jobs("queued")):
            if len(self._active()) >= AT_ONCE:
                return
            claimed = self.store.claim_job(job.id, self.process, time.time())
            if claimed is not None:
                task = asyncio.get_running_loop().create_task(self.run(claimed))
                self._running[job.id] = task
                task.add_done_callback(partial(self._ended, job.id))

    async def run(self, job: Job) -> None:
        """Carry out a claimed job and store how it ended, also where it failed."""
        try:
            result = await self._worked(job)
        except JobLost:
            return
        except DraftWanted as wait:
            self._park(job, wait)
        except NO_ENGINE as error:
            if job.kind == "forge":
                self._await_engine(job, error)
            else:
                await self._end(job, "failed", None, str(error))
        except KNOWN_FAILURES as error:
            need = {"needs": error.how} if isinstance(error, ForgeWaits) else None
            await self._end(job, "failed", need, str(error))
        except asyncio.CancelledError:
            if self.person is None:
                self.store.cancel_job(job.id, "the terminal", time.time())
            raise
        else:
            await self._end(job, "done", dict(result))

    async def close(self) -> None:
        """Stop; what ran goes back into the queue with the process's other orphans."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _park(self, job: Job, wait: DraftWanted) -> None:
        """Let it wait for its client, as nobody's: a draft puts it back into the queue."""
        try:
            self.store.park_job(job.id, job.attempt, wait.told, time.time(), str(wait), wait.needs)
        except JobLost:
            return

    def _await_engine(self, job: Job, error: SandboxError) -> None:
        """Let it wait as it is, as nobody's: whoever brings the engine back resumes it."""
        try:
            kept, needs = self.store.job(job.id).result, engine_needs(error)
            told = engineless(job.id, error)
            self.store.park_job(
                job.id, job.attempt, kept, time.time(), told, needs, stage=needs["kind"]
            )
        except JobLost:
            return

    async def _worked(self, job: Job) -> Mapping[str, Any]:
        def report(stage: str, progress: float, message: str) -> None:
            self.store.update_job(
                job.id, job.attempt, time.time(), stage=stage, progress=progress, message=message
            )

        while True:
            try:
                return await self.work[job.kind](job, report)
            except ForgeWaits as error:
                if self.person is None:
                    raise
                self.store.update_job(
                    job.id, job.attempt, time.time(), state="waiting", message=str(error)
                )
                await self.person()

    def _ended(self, key: str, task: asyncio.Task[None]) -> None:
        self._running.pop(key, None)

    def _active(self) -> list[str]:
        return [key for key in self._running if self.store.job(key).state != "waiting"]

    async def _end(
        self, job: Job, state: Literal["done", "failed"], result: Any, message: str = ""
    ) -> None:
        """Store how a job ended. Who lives long tries until there is room on the disk again."""
        while True:
            try:
                self.store.finish_job(job.id, job.attempt, state, result, time.time(), message)
            except JobLost:
                return
            except DatabaseUnusable as error:
                if self.person is None:
                    raise
                log.error("a job's end is not recorded yet", job=job.id, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return
