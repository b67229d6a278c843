"""Work that outlives a call. A claim raises the attempt; every later write must name it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.errors import Duplicate, JobLost, Unknown
from registry.jsontext import bounded, clean, compact
from registry.records import Job, JobEvent, JobState

MAX_EVENTS = 200
TEXT = 20_000
RESULT = 1 << 20
LIVE: tuple[JobState, ...] = ("running", "waiting")


class Jobs(Ledger):
    """The jobs. A job is a value that any process can claim and run."""

    def create_job(self, job: Job) -> None:
        """Store a queued job. Raises Duplicate."""
        with self._database.write() as connection:
            self._queue(connection, job)

    def _queue(self, connection: Connection, job: Job) -> None:
        if _find(connection, job.id) is not None:
            raise Duplicate("job", job.id)
        connection.execute(insert(schema.jobs), _row(job))
        self._append(connection, "job.queued", job.id, {"kind": job.kind}, job.created)

    def claim_job(self, id: str, process: str, now: float) -> Job | None:
        """Take a queued job, as a new attempt. None where it is not queued. Raises Unknown."""
        with self._database.write() as connection:
            job = _get(connection, id)
            if job.state != "queued":
                return None
            return self._claimed(connection, job, process, now)

    def update_job(
        self,
        id: str,
        attempt: int,
        now: float,
        *,
        state: Literal["running", "waiting"] = "running",
        stage: str | None = None,
        progress: float | None = None,
        message: str | None = None,
    ) -> Job:
        """Say how far a job is; what is None stays. A stage or message is added to its log.

        The log keeps the newest 200 events. Raises JobLost, Unknown.
        """
        with self._database.write() as connection:
            job = held(connection, id, attempt)
            changed = replace(
                job,
                state=state,
                stage=job.stage if stage is None else clean(stage, TEXT),
                progress=job.progress if progress is None else min(1.0, max(0.0, progress)),
                message=job.message if message is None else clean(message, TEXT),
                updated=now,
            )
            if stage is not None or message is not None:
                changed = _logged(changed, now, clean(message or "", TEXT))
            _save(connection, changed)
            return changed

    def keep_job(self, id: str, attempt: int, result: Any, now: float) -> Job:
        """Keep what a running job must find again if its process ends. Raises JobLost, Unknown."""
        with self._database.write() as connection:
            job = held(connection, id, attempt)
            kept = replace(job, result=json.loads(bounded(result, RESULT)), updated=now)
            _save(connection, kept)
            return kept

    def finish_job(
        self,
        id: str,
        attempt: int,
        state: Literal["done", "failed"],
        result: Any,
        now: float,
        message: str = "",
    ) -> Job:
        """End a job. `result` is bounded to 1 MiB of JSON. Raises JobLost, Unknown."""
        with self._database.write() as connection:
            job = held(connection, id, attempt)
            ended = replace(
                job,
                state=state,
                result=json.loads(bounded(result, RESULT)),
                message=clean(message, TEXT),
                progress=1.0 if state == "done" else job.progress,
                updated=now,
            )
            ended = _logged(ended, now, ended.message or state)
            _save(connection, ended)
            self._append(connection, f"job.{state}", id, {"attempt": attempt}, now)
            return ended

    def cancel_job(self, id: str, by: str, now: float) -> Job | None:
        """End a job from outside; its attempt finds out at its next write. None where it has ended.

        Raises Unknown.
        """
        with self._database.write() as connection:
            job = _get(connection, id)
            if job.state != "queued" and job.state not in LIVE:
                return None
            ended = _logged(replace(job, state="cancelled", updated=now), now, "cancelled")
            _save(connection, ended)
            self._append(connection, "job.cancelled", id, {"by": clean(by, TEXT)}, now)
            return ended

    def resume_job(self, id: str, by: str, now: float) -> Job | None:
        """Queue a job again that waits and belongs to no process. None where it is no such job.

        Raises Unknown.
        """
        with self._database.write() as connection:
            job = _get(connection, id)
            if job.state != "waiting" or job.owner:
                return None
            queued = _logged(replace(job, state="queued", updated=now), now, f"resumed by {by}")
            _save(connection, queued)
            self._append(connection, "job.queued", id, {"by": clean(by, TEXT)}, now)
            return queued

    def take_job(self, id: str, process: str, now: float) -> Job | None:
        """Claim a job that waits and belongs to no process, past the queue. None where it is no
        such job. Raises Unknown.
        """
        with self._database.write() as connection:
            job = _get(connection, id)
            if job.state != "waiting" or job.owner:
                return None
            return self._claimed(connection, job, process, now)

    def _claimed(self, connection: Connection, job: Job, process: str, now: float) -> Job:
        claimed = replace(
            job, state="running", attempt=job.attempt + 1, owner=process, updated=now, needs={}
        )
        _save(connection, claimed)
        payload = {"attempt": claimed.attempt, "owner": process}
        self._append(connection, "job.running", job.id, payload, now)
        return claimed

    def needing_jobs(self) -> tuple[Job, ...]:
        """The jobs that belong to no process and wait for what a person could allow."""
        jobs = schema.jobs
        parked = (jobs.c.state == "waiting") & (jobs.c.owner == "") & (jobs.c.needs != "{}")
        query = select(jobs).where(parked).order_by(jobs.c.created).limit(100)
        with self._database.read() as connection:
            return tuple(_job(row) for row in connection.execute(query).mappings())

    def requeue_orphans(self, processes: Iterable[str], now: float) -> tuple[str, ...]:
        """Queue again what dead processes were working on; the ids."""
        jobs = schema.jobs
        orphaned = jobs.c.state.in_(LIVE) & jobs.c.owner.in_(tuple(processes))
        with self._database.write() as connection:
            rows = connection.execute(select(jobs).where(orphaned).order_by(jobs.c.created))
            orphans = [_job(row) for row in rows.mappings()]
            for job in orphans:
                requeued = replace(job, state="queued", owner="", updated=now)
                _save(connection, _logged(requeued, now, "its process ended; queued again"))
                self._append(connection, "job.queued", job.id, {"was": job.owner}, now)
        return tuple(job.id for job in orphans)

    def job(self, id: str) -> Job:
        """Raises Unknown."""
        with self._database.read() as connection:
            return _get(connection, id)

    def jobs(self, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        """The newest jobs, newest first, in one state or in all."""
        jobs = schema.jobs
        query = select(jobs).order_by(jobs.c.created.desc(), jobs.c.id).limit(limit)
        if state is not None:
            query = query.where(jobs.c.state == state)
        with self._database.read() as connection:
            return tuple(_job(row) for row in connection.execute(query).mappings())


def job_from(row: RowMapping) -> Job:
    return _job(row)


def stored_job(connection: Connection, id: str) -> Job:
    """Raises Unknown."""
    return _get(connection, id)


def save_job(connection: Connection, job: Job, now: float, event: str) -> Job:
    """Store a job with one more event in its log; the job as it is then."""
    saved = _logged(job, now, event)
    _save(connection, saved)
    return saved


def held(connection: Connection, id: str, attempt: int) -> Job:
    """The job, if that attempt still holds it. Raises JobLost, Unknown."""
    job = _get(connection, id)
    if job.attempt != attempt or job.state not in LIVE:
        raise JobLost(id, attempt)
    return job


def _logged(job: Job, now: float, message: str) -> Job:
    return replace(job, log=(*job.log, JobEvent(now, job.stage, message))[-MAX_EVENTS:])


def _find(connection: Connection, id: str) -> RowMapping | None:
    query = select(schema.jobs).where(schema.jobs.c.id == id).with_for_update()
    return connection.execute(query).mappings().first()


def _get(connection: Connection, id: str) -> Job:
    row = _find(connection, id)
    if row is None:
        raise Unknown("job", id)
    return _job(row)


def _save(connection: Connection, job: Job) -> None:
    jobs = schema.jobs
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(_row(job)))


def _row(job: Job) -> dict[str, Any]:
    return {
        **vars(job),
        "request": compact(job.request),
        "result": compact(job.result),
        "log": compact([[event.time, event.stage, event.message] for event in job.log]),
        "needs": compact(dict(job.needs)),
    }


def _job(row: RowMapping) -> Job:
    return Job(
        **{
            **row,
            "request": json.loads(row["request"]),
            "result": json.loads(row["result"]),
            "log": tuple(JobEvent(*event) for event in json.loads(row["log"])),
            "needs": json.loads(row["needs"]),
        }
    )
