"""Job runner: claims queued jobs from the database and runs them in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import structlog

from forge.errors import ForgeError
from orchestrator.approvals.needs import describe_engine_wait, describe_wait, engine_need
from orchestrator.errors import (
    DraftWanted,
    EngineWanted,
    ForgeWaits,
    OrchestratorError,
    RunWaits,
    SourceUnconfirmed,
    SuccessionUndecided,
)
from orchestrator.forging.order import ForgeStep, Report
from orchestrator.job_requests import check_request
from registry.errors import DatabaseUnusable, JobLost, RegistryError
from registry.jobs.pending import pending_json
from registry.models import Job, JobKind, generate_id
from registry.needs import Need
from registry.store import Store
from sandbox.errors import SandboxError

Work = Callable[[Job, Report], Awaitable[Mapping[str, Any]]]
KNOWN_FAILURES = (ForgeError, OrchestratorError, RegistryError, SandboxError, OSError)
AT_ONCE = 2
RETRY_SECONDS = 1.0

log = structlog.get_logger()


@dataclass
class JobRunner:
    """Claims queued jobs and runs them by `work`, two at a time.

    A job that needs something waits as nobody's; `met` tells whether it has that by now, and any
    process that lives long goes on with it. A `patient` process is one of these. `changed` returns
    when another process may have ended a job.
    """

    store: Store
    process: str
    work: Work
    changed: Callable[[], Awaitable[None]]
    patient: bool = False
    met: Callable[[Job], bool] = lambda job: False
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _closed: bool = False

    def create_job(self, kind: JobKind, request: Mapping[str, Any]) -> Job:
        """A queued job, which any process of the home may take. Raises what `check_request` does
        for a request with a secret in it.
        """
        return self.store.jobs.create(_build_job(kind, request))

    def take_job(self, kind: JobKind, request: Mapping[str, Any]) -> Job:
        """As `create_job`, held by this process: what only this one was given, such as the model
        endpoint of a terminal's environment, would be missing in another one.
        """
        return self.store.jobs.create(_build_job(kind, request), self.process)

    def start_queued(self) -> None:
        """Claim what is queued, as far as there is room. Does not wait."""
        if not self.store.jobs.has_unclaimed():
            return
        for job in self.store.jobs.find_waiting():
            if self.met(job):
                self.store.jobs.resume(job.id, "what a person allowed", time.time())
        for job in reversed(self.store.jobs.find("queued")):
            if len(self._find_active()) >= AT_ONCE:
                return
            claimed = self.store.jobs.claim(job.id, self.process, time.time())
            if claimed is not None:
                task = asyncio.get_running_loop().create_task(self.run_job(claimed))
                self._running[job.id] = task
                task.add_done_callback(partial(self._forget_task, job.id))

    async def complete(self, job: Job) -> Job:
        """A queued job when it has ended or waits, carried out here or by who was faster."""
        while (state := self.store.jobs.get(job.id).state) in ("queued", "running"):
            claimed = None
            if state == "queued":
                claimed = self.store.jobs.claim(job.id, self.process, time.time())
            if claimed is not None:
                await self.run_job(claimed)
            else:
                await self.changed()
        return self.store.jobs.get(job.id)

    async def run_job(self, job: Job) -> None:
        """Carry out a claimed job and store how it ended, also where it failed."""
        try:
            result = await self._run_work(job)
        except JobLost:
            return
        except DraftWanted as wait:
            self._park_job(job, wait)
        except EngineWanted as wait:
            need = engine_need(wait.missing)
            self._park_for(job, need, describe_engine_wait(job.id, need))
        except (SuccessionUndecided, SourceUnconfirmed, ForgeWaits) as wait:
            self._park_for(job, wait.need, describe_wait(job.id, wait.need))
        except RunWaits as wait:
            self._park_for(job, wait.need, str(wait), wait.result)
        except KNOWN_FAILURES as error:
            await self._store_end(job, "failed", None, str(error))
        except asyncio.CancelledError:
            if not self.patient:
                self.store.jobs.cancel(job.id, "the terminal", time.time())
            raise
        else:
            await self._store_end(job, "done", dict(result))

    async def close(self) -> None:
        """Stop; what ran goes back into the queue with the process's other orphans."""
        self._closed = True
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _park_job(self, job: Job, wait: DraftWanted) -> None:
        """Let it wait for its client, as nobody's: a draft puts it back into the queue."""
        try:
            told = pending_json(wait.pending)
            self.store.drafts.park_job(
                job.id, job.attempt, told, time.time(), str(wait), wait.needs
            )
        except JobLost:
            return
        self._resume_met(job.id)

    def _park_for(
        self, job: Job, need: Need, told: str, result: Mapping[str, Any] | None = None
    ) -> None:
        """Let it wait, as nobody's, as it is or with a result: whoever gives it what it needs
        resumes it.
        """
        try:
            kept = self.store.jobs.get(job.id).result if result is None else result
            self.store.drafts.park_job(
                job.id, job.attempt, kept, time.time(), told, need, stage=need.kind
            )
        except JobLost:
            return
        self._resume_met(job.id)

    def _resume_met(self, identity: str) -> None:
        """Queue a job again that has by now what it was parked for: what a person allowed after the
        job looked and before it waited would go unnoticed.
        """
        parked = self.store.jobs.get(identity)
        if parked.state == "waiting" and self.met(parked):
            self.store.jobs.resume(identity, "what a person allowed", time.time())

    async def _run_work(self, job: Job) -> Mapping[str, Any]:
        def report(step: ForgeStep) -> None:
            self.store.jobs.update_progress(job.id, job.attempt, time.time(), **vars(step))

        return await self.work(job, report)

    def _forget_task(self, key: str, task: asyncio.Task[None]) -> None:
        self._running.pop(key, None)
        # One that ended just before `close` is told during it: what is claimed then would run, and
        # fail, while the parts that it takes are closed.
        if self.patient and not self._closed and not task.cancelled():
            # There is room for another, which may be this one again.
            self.start_queued()

    def _find_active(self) -> list[str]:
        return [key for key in self._running if self.store.jobs.get(key).state != "waiting"]

    async def _store_end(
        self, job: Job, state: Literal["done", "failed"], result: Any, message: str = ""
    ) -> None:
        """Store how a job ended. Who lives long tries until there is room on the disk again."""
        while True:
            try:
                self.store.jobs.finish(job.id, job.attempt, state, result, time.time(), message)
            except JobLost:
                return
            except DatabaseUnusable as error:
                if not self.patient:
                    raise
                log.error("a job's end is not recorded yet", job=job.id, reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return


def _build_job(kind: JobKind, request: Mapping[str, Any]) -> Job:
    check_request(kind, request)
    now = time.time()
    return Job(generate_id(), kind, dict(request), created=now, updated=now)
