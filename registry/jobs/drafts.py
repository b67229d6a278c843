"""Table of the drafts that clients or models submit for forge jobs, with their verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_bounded_json, to_compact_json
from registry.errors import DraftRefused, RowNotFound
from registry.jobs.jobs import RESULT, get_held_job, load_job, save_job
from registry.models import DraftRow, Job
from registry.needs import Need
from sandbox.bundle.report import StageReport
from sandbox.bundle.report import from_json as report_from
from sandbox.bundle.report import to_json as report_json

DRAFTING = "draft"
"""The stage of a job that waits for a draft."""
MAX_DRAFTS = 8
CONTENT = 2 << 20
TEXT = 20_000
UNKEPT = (StageReport("static", "failed", 0.0, coverage=0.0, note="too long to be kept"),)
"""The reports of a draft whose reports were longer than CONTENT: no such draft is admissible."""


class DraftTable(Repository):
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
        needs: Need | None = None,
        stage: str = DRAFTING,
    ) -> Job:
        """Let a job wait for a draft, or for what it `needs`; `result` is what its client needs to
        know. At another stage than DRAFTING it takes no draft.

        Raises JobLost, Unknown.
        """
        with self._database.write() as connection:
            job = get_held_job(connection, id, attempt)
            parked = replace(
                job,
                state="waiting",
                stage=stage,
                owner="",
                result=json.loads(to_bounded_json(result, RESULT)),
                message=clean_text(message, TEXT),
                updated=now,
                needs=needs,
            )
            return save_job(connection, parked, now, parked.message)

    def hand_in(self, id: str, digest: str, content: Mapping[str, Any], now: float) -> DraftRow:
        """Keep a draft, and queue the job that waits for it. Raises DraftRefused, Unknown."""
        text = to_compact_json(content)
        if len(text) > CONTENT:
            raise DraftRefused(id, f"it is longer than {CONTENT} characters")
        with self._database.write() as connection:
            job = load_job(connection, id)
            if not awaits_draft(job):
                raise DraftRefused(id, f"the job does not wait for one, it is {job.state}")
            row = self._insert_draft(connection, DraftRow(id, 0, digest, now, json.loads(text)))
            queued = replace(job, state="queued", updated=now)
            save_job(connection, queued, now, f"draft {row.number} was handed in")
        return row

    def store_draft(
        self,
        job: Job,
        digest: str,
        content: Mapping[str, Any],
        now: float,
        author: str,
        model: str,
    ) -> DraftRow:
        """Store a draft that the process holding the job requested from a model.

        Raises DraftRefused, JobLost, Unknown.
        """
        text = to_compact_json(content)
        if len(text) > CONTENT:
            raise DraftRefused(job.id, f"it is longer than {CONTENT} characters")
        draft = DraftRow(job.id, 0, digest, now, json.loads(text), author=author, model=model)
        with self._database.write() as connection:
            get_held_job(connection, job.id, job.attempt)
            return self._insert_draft(connection, draft)

    def copy_draft(
        self,
        id: str,
        digest: str,
        content: Mapping[str, Any],
        now: float,
        author: str,
        model: str,
    ) -> DraftRow:
        """Store another job's draft as the first of a queued job. Raises DraftRefused, Unknown."""
        draft = DraftRow(id, 0, digest, now, content, author=author, model=model)
        with self._database.write() as connection:
            load_job(connection, id)
            return self._insert_draft(connection, draft)

    def _insert_draft(self, connection: Connection, draft: DraftRow) -> DraftRow:
        """Insert as the job's next draft. Raises DraftRefused where the job has the same one."""
        drafts = tables.drafts
        mine = drafts.c.job == draft.job
        again = select(drafts.c.number).where(mine, drafts.c.digest == draft.digest)
        if connection.execute(again).first() is not None:
            reason = "the same draft was handed in before; change something"
            raise DraftRefused(draft.job, reason)
        count = connection.execute(select(func.count()).where(mine)).scalar_one()
        row = replace(draft, number=count + 1)
        connection.execute(insert(drafts), _to_row(row))
        payload = {"number": row.number, "digest": row.digest, "author": row.author}
        self._append_audit_row(connection, "draft", row.job, payload, row.created)
        return row

    def store_verdict(
        self,
        id: str,
        attempt: int,
        number: int,
        verdict: Literal["passed", "failed"],
        reports: Iterable[StageReport],
        diagnosis: Iterable[Mapping[str, Any]],
        now: float,
    ) -> None:
        """Store a draft's verdict, reports and diagnosis. Raises JobLost, Unknown."""
        drafts = tables.drafts
        values = {
            "verdict": verdict,
            "reports": to_bounded_json([report_json(report) for report in reports], CONTENT),
            "diagnosis": to_bounded_json(list(diagnosis), RESULT),
        }
        with self._database.write() as connection:
            get_held_job(connection, id, attempt)
            mine = (drafts.c.job == id) & (drafts.c.number == number)
            connection.execute(update(drafts).where(mine).values(values))
            payload = {"number": number, "verdict": verdict}
            self._append_audit_row(connection, "draft.judged", id, payload, now)

    def get(self, id: str, number: int) -> DraftRow:
        """Raises Unknown."""
        found = next((row for row in self.find(id) if row.number == number), None)
        if found is None:
            raise RowNotFound("draft", f"{number} of job {id}")
        return found

    def find(self, id: str) -> tuple[DraftRow, ...]:
        """A job's drafts, in the order they came."""
        drafts = tables.drafts
        query = select(drafts).where(drafts.c.job == id).order_by(drafts.c.number)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())


def awaits_draft(job: Job) -> bool:
    """Whether a job waits for its client's code."""
    return job.state == "waiting" and not job.owner and job.stage == DRAFTING

    """A draft without what was handed in: its number, verdict, reason and author."""


def _to_row(draft: DraftRow) -> dict[str, Any]:
    return {
        **vars(draft),
        "content": to_compact_json(draft.content),
        "reports": to_compact_json([report_json(report) for report in draft.reports]),
        "diagnosis": to_compact_json(draft.diagnosis),
    }


def _parse_row(row: RowMapping) -> DraftRow:
    reports, diagnosis = json.loads(row["reports"]), json.loads(row["diagnosis"])
    return DraftRow(
        **{
            **row,
            "content": json.loads(row["content"]),
            "reports": tuple(map(report_from, reports)) if isinstance(reports, list) else UNKEPT,
            "diagnosis": tuple(diagnosis) if isinstance(diagnosis, list) else (diagnosis,),
        }
    )
