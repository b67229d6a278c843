"""What is handed in for forge jobs: drafts, descriptions, and that nobody will write one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forge.prose import visible
from orchestrator.composing import CONTENT, DECLINE, MAX_REASON
from orchestrator.documentation import awaits_document
from orchestrator.drafting import Drafting
from orchestrator.errors import Declined, OrchestratorError
from orchestrator.jobs import Jobs
from orchestrator.orders import NO_SOURCE
from orchestrator.rounds import is_admissible
from registry.drafts import awaits_draft
from registry.errors import DraftRefused
from registry.records import DraftRow, Job, new_id
from registry.store import Store
from sandbox.validation import Problem


@dataclass(frozen=True)
class Submissions:
    """Takes them to the jobs that wait for them, or makes new jobs of them."""

    store: Store
    process: str
    jobs: Jobs
    drafting: Drafting

    def resubmit(self, job: str, document: str) -> Job:
        """A new job for an order whose source was of no use, with the description handed in."""
        earlier = self.store.job(job)
        if earlier.kind != "forge":
            raise OrchestratorError(f"{job} is no forge job. `status` lists the jobs.")
        if earlier.request.get("parent"):
            raise OrchestratorError(f"{job} changes a server: hand in its code, not a document.")
        if awaits_draft(earlier):
            self.store.cancel_job(job, "submit", time.time())
        return self.jobs.create("forge", {**earlier.request, "document": document})

    def hand_in(self, job: str, given: Mapping[str, Any]) -> DraftRow | tuple[Problem, ...]:
        """A draft for a job that waits for one; it is queued. Or what is wrong with the draft.
        Raises DraftRefused.
        """
        if awaits_document(self.store.job(job)):
            raise DraftRefused(job, "it waits for the API's description: submit it as `document`")
        return self.drafting.hand_in(self.store.job(job), given)

    def decline(self, job: str, given: Mapping[str, Any]) -> Job | tuple[Problem, ...]:
        """A job ended by who was to write its server; or what is wrong with how that was said.
        Raises DraftRefused.
        """
        reason = visible(given[DECLINE], MAX_REASON)
        if not reason or any(key in given for key in CONTENT if key != "why"):
            return (Problem(f"/{DECLINE}", "stands alone, and says why"),)
        taken = None
        if awaits_draft(self.store.job(job)):
            taken = self.store.take_job(job, self.process, time.time())
        if taken is None:
            raise DraftRefused(job, "the job does not wait for one")
        told = str(Declined("the client", reason))
        return self.store.finish_job(job, taken.attempt, "failed", None, time.time(), told)

    def as_experimental(self, job: str) -> Job:
        """A new job that registers the last draft of one that ended without a server, whatever the
        stages say. Only for a person. Raises OrchestratorError where there is no such draft.
        """
        earlier = self.store.job(job)
        drafts = [row for row in self.store.drafts(job) if row.content.get("code")]
        if earlier.state != "failed" or not drafts:
            raise OrchestratorError(f"job {job} did not end with a draft that failed.")
        if not is_admissible(drafts):
            raise OrchestratorError(
                f"the last code of job {job} is not fit to run, also not as an experiment: the "
                f"static stage refuses it. `toolwright jobs {job}` says why; `forge` again."
            )
        told = {"experimental": True, "author": "client", "source": NO_SOURCE}
        now, last = time.time(), drafts[-1]
        request = {**earlier.request, **told}
        # It waits until it has its draft: nobody else is to begin it without.
        made = Job(new_id(), "forge", request, created=now, updated=now, state="waiting")
        self.store.create_job(made)
        by = (last.author, last.model)
        self.store.copy_draft(made.id, last.digest, last.content, now, *by)
        self.store.resume_job(made.id, "terminal", now)
        return made
