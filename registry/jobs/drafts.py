"""Drafts that clients hand in for forge jobs. All are kept, each with what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from registry import schema
from registry.errors import DraftRefused, Unknown
from registry.jobs import RESULT, Jobs, held, save_job, stored_job
from registry.jsontext import bounded, clean, compact
from registry.records import DraftRow, Job

DRAFTING = "draft"
"""The stage of a job that waits for a draft."""
MAX_DRAFTS = 8
CONTENT = 2 << 20
TEXT = 20_000


class Drafts(Jobs):
    """A forge job may wait for its client's code: it then belongs to no process, and a draft puts
    it back into the queue.
    """

    def park_job(
        self,
        id: str,
        attempt: int,
        result: Any,
        now: float,
        message: str,
        needs: Mapping[str, str] | None = None,
        stage: str = DRAFTING,
    ) -> Job:
        """Let a job wait for a draft, or for what it `needs`; `result` is what its client needs to
        know. At another stage than DRAFTING it takes no draft.

        Raises JobLost, Unknown.
        """
        with self._database.write() as connection:
            job = held(connection, id, attempt)
            parked = replace(
                job,
                state="waiting",
                stage=stage,
                owner="",
                result=json.loads(bounded(result, RESULT)),
                message=clean(message, TEXT),
                updated=now,
                needs=dict(needs or {}),
            )
            return save_job(connection, parked, now, parked.message)

    def hand_in(self, id: str, digest: str, content: Mapping[str, Any], now: float) -> DraftRow:
        """Keep a draft, and queue the job that waits for it. Raises DraftRefused, Unknown."""
        text = compact(content)
        if len(text) > CONTENT:
            raise DraftRefused(id, f"it is longer than {CONTENT} characters")
        with self._database.write() as connection:
            job = stored_job(connection, id)
            if not awaits_draft(job):
                raise DraftRefused(id, f"the job does not wait for one, it is {job.state}")
            row = self._kept(connection, DraftRow(id, 0, digest, now, json.loads(text)))
            queued = replace(job, state="queued", updated=now)
            save_job(connection, queued, now, f"draft {row.number} was handed in")
        return row

    def keep_draft(
        self,
        job: Job,
        digest: str,
        content: Mapping[str, Any],
        now: float,
        author: str,
        model: str,
    ) -> DraftRow:
        """Keep a draft that the job's holder asked for. Raises DraftRefused, JobLost, Unknown."""
        text = compact(content)
        if len(text) > CONTENT:
            raise DraftRefused(job.id, f"it is longer than {CONTENT} characters")
        draft = DraftRow(job.id, 0, digest, now, json.loads(text), author=author, model=model)
        with self._database.write() as connection:
            held(connection, job.id, job.attempt)
            return self._kept(connection, draft)

    def copy_draft(
        self,
        id: str,
        digest: str,
        content: Mapping[str, Any],
        now: float,
        author: str,
        model: str,
    ) -> DraftRow:
        """Begin a queued job with a draft that another one had. Raises DraftRefused, Unknown."""
        draft = DraftRow(id, 0, digest, now, content, author=author, model=model)
        with self._database.write() as connection:
            stored_job(connection, id)
            return self._kept(connection, draft)

    def _kept(self, connection: Connection, draft: DraftRow) -> DraftRow:
        """Store it as the job's next, once. Raises DraftRefused."""
        drafts = schema.drafts
        mine = drafts.c.job == draft.job
        again = select(drafts.c.number).where(mine, drafts.c.digest == draft.digest)
        if connection.execute(again).first() is not None:
            reason = "the same draft was handed in before; change something"
            raise DraftRefused(draft.job, reason)
        count = connection.execute(select(func.count()).where(mine)).scalar_one()
        row = replace(draft, number=count + 1)
        connection.execute(insert(drafts), _row(row))
        payload = {"number": row.number, "digest": row.digest, "author": row.author}
        self._append(connection, "draft", row.job, payload, row.created)
        return row

    def judge_draft(
        self,
        id: str,
        attempt: int,
        number: int,
        verdict: Literal["passed", "failed"],
        reports: Iterable[Mapping[str, Any]],
        diagnosis: Iterable[Mapping[str, Any]],
        now: float,
    ) -> None:
        """Keep what came of a draft. Raises JobLost, Unknown."""
        drafts = schema.drafts
        values = {
            "verdict": verdict,
            "reports": bounded(list(reports), CONTENT),
            "diagnosis": bounded(list(diagnosis), RESULT),
        }
        with self._database.write() as connection:
            held(connection, id, attempt)
            mine = (drafts.c.job == id) & (drafts.c.number == number)
            connection.execute(update(drafts).where(mine).values(values))
            payload = {"number": number, "verdict": verdict}
            self._append(connection, "draft.judged", id, payload, now)

    def draft(self, id: str, number: int) -> DraftRow:
        """Raises Unknown."""
        found = next((row for row in self.drafts(id) if row.number == number), None)
        if found is None:
            raise Unknown("draft", f"{number} of job {id}")
        return found

    def drafts(self, id: str) -> tuple[DraftRow, ...]:
        """A job's drafts, in the order they came."""
        drafts = schema.drafts
        query = select(drafts).where(drafts.c.job == id).order_by(drafts.c.number)
        with self._database.read() as connection:
            return tuple(_draft(row) for row in connection.execute(query).mappings())


def awaits_draft(job: Job) -> bool:
    """Whether a job waits for its client's code."""
    return job.state == "waiting" and not job.owner and job.stage == DRAFTING


def _row(draft: DraftRow) -> dict[str, Any]:
    texts = ("content", "reports", "diagnosis")
    return {**vars(draft), **{name: compact(getattr(draft, name)) for name in texts}}


def _draft(row: RowMapping) -> DraftRow:
    reports, diagnosis = json.loads(row["reports"]), json.loads(row["diagnosis"])
    return DraftRow(
        **{
            **row,
            "content": json.loads(row["content"]),
            "reports": tuple(reports) if isinstance(reports, list) else (reports,),
            "diagnosis": tuple(diagnosis) if isinstance(diagnosis, list) else (diagnosis,),
        }
    )
