"""Table of jobs: work that outlives a call.

A claim raises the attempt number, and every later write must name it, so that a process that lost
its job cannot change it any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_bounded_json, to_compact_json
from registry.errors import AnswerRefused, DuplicateRow, JobLost, RowNotFound, TooManyWaiting
from registry.models import Job, JobEvent, JobState
from registry.needs import AnswerNeed, need_from_json, need_json

MAX_EVENTS = 200
MAX_UNENDED = 200
"""Jobs that are queued, run or wait for somebody at once."""
ANSWER_SECONDS = 3_600.0
"""How long a question is kept where its place is wanted for another job."""
CANCEL = "Look at them with `toolwright jobs`, cancel some or let them end, then ask again."
TEXT = 20_000
RESULT = 1 << 20
_UNCLAIMED = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state IN ('queued', 'waiting'))"
LIVE: tuple[JobState, ...] = ("running", "waiting")


class JobTable(Repository):
    """Jobs by id. Any process can claim and run one."""

    def create(self, job: Job, process: str = "") -> Job:
        """Store a queued job, and with a process have that hold it at once, so that no other one
        can. Where as many are there as may, a run whose question nobody answered for an hour is
        cancelled for it. Returns it as stored. Raises Duplicate, TooManyWaiting.
        """
        with self._database.write() as connection:
            unended = select(func.count()).where(tables.jobs.c.state.in_(("queued", *LIVE)))
            if connection.execute(unended).scalar_one() >= MAX_UNENDED:
                # A client's model asks in other words instead of answering, and tells nobody.
                stale = _find_unanswered(connection, job.created - ANSWER_SECONDS)
                if stale is None:
                    raise TooManyWaiting("jobs", MAX_UNENDED, CANCEL)
                self._end_cancelled(connection, stale, "nobody answered its question", job.created)
            self._append_audit_row(connection, *queue_job(connection, job), job.created)
            return self._start_attempt(connection, job, process, job.created) if process else job

    def claim(self, id: str, process: str, now: float) -> Job | None:
        """Take a queued job, as a new attempt. None where it is not queued. Raises Unknown."""
        with self._database.write() as connection:
            job = _load_job(connection, id)
            if job.state != "queued":
                return None
            return self._start_attempt(connection, job, process, now)

    def update_progress(
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
        """Update a job's progress; None leaves a field unchanged. A stage or message is logged.

        The log keeps the newest 200 events. Raises JobLost, Unknown.
        """
        with self._database.write() as connection:
            job = get_held_job(connection, id, attempt)
            changed = replace(
                job,
                state=state,
                stage=job.stage if stage is None else clean_text(stage, TEXT),
                progress=job.progress if progress is None else min(1.0, max(0.0, progress)),
                message=job.message if message is None else clean_text(message, TEXT),
                updated=now,
            )
            if stage is not None or message is not None:
                changed = _append_event(changed, now, clean_text(message or "", TEXT))
            _save_row(connection, changed)
            return changed

    def check_held(self, id: str, attempt: int) -> None:
        """Raises JobLost where an attempt holds its job no more, Unknown."""
        with self._database.read() as connection:
            get_held_job(connection, id, attempt)

    def keep_result(self, id: str, attempt: int, result: Any, now: float) -> Job:
        """Store an intermediate result that another process needs to continue. Raises JobLost,
        Unknown.
        """
        with self._database.write() as connection:
            job = get_held_job(connection, id, attempt)
            kept = replace(job, result=json.loads(to_bounded_json(result, RESULT)), updated=now)
            _save_row(connection, kept)
            return kept

    def keep_request(self, id: str, attempt: int, request: Mapping[str, Any], now: float) -> Job:
        """Store what a job has come to ask for, which another process needs to continue. Raises
        JobLost, Unknown.
        """
        with self._database.write() as connection:
            job = get_held_job(connection, id, attempt)
            kept = replace(job, request=dict(request), updated=now)
            _save_row(connection, kept)
            return kept

    def finish(
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
            job = get_held_job(connection, id, attempt)
            ended = replace(
                job,
                state=state,
                result=json.loads(to_bounded_json(result, RESULT)),
                message=clean_text(message, TEXT),
                progress=1.0 if state == "done" else job.progress,
                updated=now,
            )
            ended = _append_event(ended, now, ended.message or state)
            _save_row(connection, ended)
            self._append_audit_row(connection, f"job.{state}", id, {"attempt": attempt}, now)
            return ended

    def cancel(self, id: str, by: str, now: float) -> Job | None:
        """End a job from outside; its attempt finds out at its next write. None where it has ended.

        Raises Unknown.
        """
        with self._database.write() as connection:
            job = _load_job(connection, id)
            if job.state != "queued" and job.state not in LIVE:
                return None
            return self._end_cancelled(connection, job, by, now)

    def _end_cancelled(self, connection: Connection, job: Job, by: str, now: float) -> Job:
        ended = _append_event(replace(job, state="cancelled", updated=now), now, "cancelled")
        _save_row(connection, ended)
        told = {"by": clean_text(by, TEXT)}
        self._append_audit_row(connection, "job.cancelled", job.id, told, now)
        return ended

    def resume(self, id: str, by: str, now: float) -> Job | None:
        """Queue a waiting job that belongs to no process. None where it is in another state.

        Raises Unknown.
        """
        with self._database.write() as connection:
            job = _load_job(connection, id)
            if job.state != "waiting" or job.owner:
                return None
            # What it waited for is there: its message would say that it waits for it still.
            ready = replace(job, state="queued", message="", updated=now)
            queued = _append_event(ready, now, f"resumed by {by}")
            _save_row(connection, queued)
            self._append_audit_row(connection, "job.queued", id, {"by": clean_text(by, TEXT)}, now)
            return queued

    def amend(self, id: str, request: Mapping[str, Any], by: str, now: float) -> Job | None:
        """Queue a job that failed, or waits and belongs to no process, again, with another request
        and without what it had come to. None where it is in another state. Raises Unknown.
        """
        with self._database.write() as connection:
            job = _load_job(connection, id)
            if job.state != "failed" and not is_parked(job):
                return None
            amended = replace(
                job,
                state="queued",
                stage="",
                owner="",
                progress=0.0,
                message="",
                request=dict(request),
                result=None,
                needs=None,
            )
            queued = _append_event(replace(amended, updated=now), now, f"amended by {by}")
            _save_row(connection, queued)
            self._append_audit_row(connection, "job.queued", id, {"by": clean_text(by, TEXT)}, now)
            return queued

    def answer(self, id: str, question: str, answer: Mapping[str, Any], by: str, now: float) -> Job:
        """Keep the answer to the question that a waiting job asks in its request's `answers`, and
        who gave answers in `answered_by`, and queue the job; one answer is taken. Raises
        AnswerRefused, Unknown.
        """
        with self._database.write() as connection:
            job = _load_job(connection, id)
            asked = job.needs if isinstance(job.needs, AnswerNeed) else None
            if job.state != "waiting" or job.owner or asked is None:
                raise AnswerRefused(id, f"it asks nothing, it is {job.state}")
            if asked.question != question:
                raise AnswerRefused(id, f"it asks {asked.question} and not {question[:100]}")
            answers = {**job.request.get("answers", {}), question: dict(answer)}
            whose = {*job.request.get("answered_by", ()), clean_text(by, TEXT)}
            taken = replace(
                job,
                state="queued",
                request={**job.request, "answers": answers, "answered_by": sorted(whose)},
                needs=None,
                updated=now,
            )
            queued = _append_event(taken, now, f"{question} was answered")
            _save_row(connection, queued)
            payload = {"question": question, "by": clean_text(by, TEXT)}
            self._append_audit_row(connection, "job.answered", id, payload, now)
            return queued

    def claim_waiting(self, id: str, process: str, now: float) -> Job | None:
        """Claim a waiting job that belongs to no process, without queuing it. None where it is in
        another state. Raises Unknown.
        """
        with self._database.write() as connection:
            job = _load_job(connection, id)
            if job.state != "waiting" or job.owner:
                return None
            return self._start_attempt(connection, job, process, now)

    def _start_attempt(self, connection: Connection, job: Job, process: str, now: float) -> Job:
        claimed = replace(
            job, state="running", attempt=job.attempt + 1, owner=process, updated=now, needs=None
        )
        _save_row(connection, claimed)
        payload = {"attempt": claimed.attempt, "owner": process}
        self._append_audit_row(connection, "job.running", job.id, payload, now)
        return claimed

    def has_unclaimed(self) -> bool:
        """Whether any job is queued or waits, in microseconds: most homes have none at most times.
        Raises DatabaseUnusable.
        """
        return bool(self._database.query_row(_UNCLAIMED)[0])

    def find_waiting(self) -> tuple[Job, ...]:
        """The jobs that belong to no process and wait for something that a person could allow."""
        jobs = tables.jobs
        parked = (jobs.c.state == "waiting") & (jobs.c.owner == "") & (jobs.c.needs != "{}")
        query = select(jobs).where(parked).order_by(jobs.c.created).limit(100)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def requeue_orphans(self, processes: Iterable[str], now: float) -> tuple[str, ...]:
        """Queue the unfinished jobs of dead processes again. Returns their ids."""
        jobs = tables.jobs
        orphaned = jobs.c.state.in_(LIVE) & jobs.c.owner.in_(tuple(processes))
        with self._database.write() as connection:
            rows = connection.execute(select(jobs).where(orphaned).order_by(jobs.c.created))
            orphans = [_parse_row(row) for row in rows.mappings()]
            for job in orphans:
                requeued = replace(job, state="queued", owner="", updated=now)
                _save_row(
                    connection, _append_event(requeued, now, "its process ended; queued again")
                )
                self._append_audit_row(connection, "job.queued", job.id, {"was": job.owner}, now)
        return tuple(job.id for job in orphans)

    def get(self, id: str) -> Job:
        """Raises Unknown."""
        with self._database.read() as connection:
            return _load_job(connection, id)

    def find(self, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        """The newest jobs, newest first, in one state or in all."""
        jobs = tables.jobs
        query = select(jobs).order_by(jobs.c.created.desc(), jobs.c.id).limit(limit)
        if state is not None:
            query = query.where(jobs.c.state == state)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def count(self, states: Iterable[JobState]) -> int:
        """How many jobs are in these states."""
        jobs = tables.jobs
        query = select(func.count()).select_from(jobs).where(jobs.c.state.in_(tuple(states)))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())


def queue_job(connection: Connection, job: Job) -> tuple[str, str, dict[str, Any]]:
    """Store a queued job in the caller's transaction. Returns kind, subject and payload of the
    audit row that the caller has to append. Raises Duplicate.
    """
    if _find_row(connection, job.id) is not None:
        raise DuplicateRow("job", job.id)
    connection.execute(insert(tables.jobs), _to_row(job))
    return "job.queued", job.id, {"kind": job.kind}


def is_parked(job: Job) -> bool:
    """Whether a job waits for somebody, as no process's."""
    return job.state == "waiting" and not job.owner


def awaits_answer(job: Job) -> bool:
    """Whether a task run waits for an answer of whoever asked for it."""
    return is_parked(job) and isinstance(job.needs, AnswerNeed)


def awaits_client(job: Job) -> bool:
    """Whether a run waits for the answer of the client that began it over stdio."""
    return awaits_answer(job) and job.request.get("files") == "granted"


def _find_unanswered(connection: Connection, before: float) -> Job | None:
    """The run that has waited longest for an answer, of those that did since before a time."""
    jobs = tables.jobs
    waiting = (jobs.c.state == "waiting") & (jobs.c.kind == "do") & (jobs.c.updated < before)
    rows = connection.execute(select(jobs).where(waiting).order_by(jobs.c.updated)).mappings()
    return next(filter(awaits_answer, map(_parse_row, rows)), None)


def parse_job(row: RowMapping) -> Job:
    return _parse_row(row)


def load_job(connection: Connection, id: str) -> Job:
    """Raises Unknown."""
    return _load_job(connection, id)


def save_job(connection: Connection, job: Job, now: float, event: str) -> Job:
    """Store a job with one more event in its log, and return it."""
    saved = _append_event(job, now, event)
    _save_row(connection, saved)
    return saved


def get_held_job(connection: Connection, id: str, attempt: int) -> Job:
    """The job, if that attempt still holds it. Raises JobLost, Unknown."""
    job = _load_job(connection, id)
    if job.attempt != attempt or job.state not in LIVE:
        raise JobLost(id, attempt)
    return job


def _append_event(job: Job, now: float, message: str) -> Job:
    return replace(job, log=(*job.log, JobEvent(now, job.stage, message))[-MAX_EVENTS:])


def _find_row(connection: Connection, id: str) -> RowMapping | None:
    query = select(tables.jobs).where(tables.jobs.c.id == id).with_for_update()
    return connection.execute(query).mappings().first()


def _load_job(connection: Connection, id: str) -> Job:
    row = _find_row(connection, id)
    if row is None:
        raise RowNotFound("job", id)
    return _parse_row(row)


def _save_row(connection: Connection, job: Job) -> None:
    jobs = tables.jobs
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(_to_row(job)))


def _to_row(job: Job) -> dict[str, Any]:
    return {
        **vars(job),
        "request": to_compact_json(job.request),
        "result": to_compact_json(job.result),
        "log": to_compact_json([[event.time, event.stage, event.message] for event in job.log]),
        "needs": to_compact_json(need_json(job.needs)),
    }


def _parse_row(row: RowMapping) -> Job:
    return Job(
        **{
            **row,
            "request": json.loads(row["request"]),
            "result": json.loads(row["result"]),
            "log": tuple(JobEvent(*event) for event in json.loads(row["log"])),
            "needs": need_from_json(json.loads(row["needs"])),
        }
    )
