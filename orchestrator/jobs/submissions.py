"""Submissions to forge jobs: drafts, API descriptions, and refusals to write one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forge.drafts.pages import Kind
from forge.text import sanitize_line
from orchestrator.errors import ForgeDeclined, OrchestratorError
from orchestrator.forging.documentation import awaits_document
from orchestrator.forging.drafts.compose import CONTENT, DECLINE, MAX_REASON
from orchestrator.forging.drafts.drafting import DraftJobRunner
from orchestrator.forging.drafts.rounds import is_admissible
from orchestrator.forging.order import NO_SOURCE, NO_TOOL, extract_order
from orchestrator.jobs.runner import JobRunner
from registry.errors import DraftRefused
from registry.jobs.drafts import awaits_draft
from registry.models import DraftRow, Job, generate_id
from registry.store import Store
from sandbox.schemas.validator import SchemaViolation


@dataclass(frozen=True)
class Submissions:
    """Takes them to the jobs that wait for them, or makes new jobs of them."""

    store: Store
    process: str
    jobs: JobRunner
    drafting: DraftJobRunner

    def resubmit_order(self, job: str, document: str) -> Job:
        """The job of an order whose source was of no use, queued again under its id with the
        description handed in; a new one where it has made its server, was cancelled, or runs.
        """
        earlier = self.store.jobs.get(job)
        if earlier.kind != "forge" and earlier.request.get("tool") != NO_TOOL:
            raise OrchestratorError(f"{job} is no forge job. `status` lists the jobs.")
        if extract_order(earlier.request).get("parent"):
            raise OrchestratorError(f"{job} changes a server: hand in its code, not a document.")
        request = {**earlier.request, "document": document}
        if earlier.kind == "forge" or awaits_draft(earlier):
            amended = self.store.jobs.amend(job, request, "submit", time.time())
            if amended is not None:
                return amended
        return self.jobs.create_job(earlier.kind, request)

    def submit_draft(
        self, job: str, given: Mapping[str, Any]
    ) -> DraftRow | tuple[SchemaViolation, ...]:
        """A draft for a job that waits for one; it is queued. Or what is wrong with the draft.
        Raises DraftRefused.
        """
        if awaits_document(self.store.jobs.get(job)) and not given.get("api"):
            raise DraftRefused(
                job,
                "it waits for the API's description: submit it as `document`, or code with what "
                "the documentation says of its API as `api`",
            )
        return self.drafting.submit_draft(self.store.jobs.get(job), given)

    def render_brief(self, job: str, page: Kind) -> str:
        """The brief of a forge job with the page that its author asks for. Raises DraftRefused,
        RowNotFound.
        """
        found = self.store.jobs.get(job)
        if found.kind not in ("forge", "do") or not awaits_draft(found):
            raise DraftRefused(job, "the job does not wait for code")
        return self.drafting.render_brief(found, page)

    def decline_job(self, job: str, given: Mapping[str, Any]) -> Job | tuple[SchemaViolation, ...]:
        """A job ended by who was to write its server; or what is wrong with how that was said.
        Raises DraftRefused.
        """
        reason = sanitize_line(given[DECLINE], MAX_REASON)
        if not reason or any(key in given for key in CONTENT if key != "why"):
            return (SchemaViolation(f"/{DECLINE}", "stands alone, and says why"),)
        taken = None
        if awaits_draft(self.store.jobs.get(job)):
            taken = self.store.jobs.claim_waiting(job, self.process, time.time())
        if taken is None:
            raise DraftRefused(job, "the job does not wait for one")
        told = str(ForgeDeclined("the client", reason))
        return self.store.jobs.finish(job, taken.attempt, "failed", None, time.time(), told)

    def queue_experimental(self, job: str) -> Job:
        """A new job that registers the last draft of one that ended without a server, whatever the
        stages say. Only for a person. Raises OrchestratorError where there is no such draft.
        """
        earlier = self.store.jobs.get(job)
        drafts = [row for row in self.store.drafts.find(job) if row.content.get("code")]
        if earlier.state != "failed" or not drafts:
            raise OrchestratorError(f"job {job} did not end with a draft that failed.")
        if not is_admissible(drafts):
            raise OrchestratorError(
                f"the last code of job {job} is not fit to run, also not as an experiment: the "
                f"static stage refuses it. `toolwright jobs {job}` says why; `forge` again."
            )
        told = {"experimental": True, "author": "client", "source": NO_SOURCE}
        now, last = time.time(), drafts[-1]
        request = {**extract_order(earlier.request), **told}
        # It waits until it has its draft: nobody else is to begin it without.
        made = Job(generate_id(), "forge", request, created=now, updated=now, state="waiting")
        self.store.jobs.create(made)
        by = (last.author, last.model)
        self.store.drafts.copy_draft(made.id, last.digest, last.content, now, *by)
        self.store.jobs.resume(made.id, "terminal", now)
        return made
