"""Escalation after a failed repair: the server is archived, and a forge job for its replacement is
queued.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from forge.drafts.brief import fence_text
from forge.drafts.diagnosis import diagnose_proof
from registry.health.causes import Cause
from registry.health.repairs import is_past_repair
from registry.jobs.jobs import JobTable
from registry.models import ENDED_JOBS, Entry, Job, generate_id
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof, StageReport

MAX_TASK = 3_500


@dataclass(frozen=True)
class Escalation:
    """The end of the ladder: what no repair mends is archived and replaced."""

    store: Store
    now: Callable[[], float] = time.time

    def archive_unrepaired(
        self, entry: Entry, bundle: Bundle, cause: Cause, reason: str, last: bool
    ) -> str:
        """What becomes of a server whose repair failed, in words. It is archived where its repairs
        of more than a day failed and it answers nothing any more; a quarantined one also where no
        other repair can be tried. Its replacement is forged.
        """
        current = self.store.servers.get(entry.name)
        if current.state == "archived" or current.version != entry.version:
            return ""
        attempts = self.store.repairs.find_attempts(entry.name, entry.version, self.now())
        if not is_past_repair(attempts, self.now()):
            if current.state != "quarantined":
                return ""
            if not last:
                return "It stays quarantined; the repair is tried again"
        self.store.servers.archive(
            entry.name, self.now(), "healing", f"not repaired: {reason}"[:2000]
        )
        job = self.queue_rewrite(bundle, cause, "", None)
        return f"{entry.name} is archived; job {job} forges its replacement"

    def queue_rewrite(
        self, bundle: Bundle, cause: Cause, failing: str, report: StageReport | None
    ) -> str:
        """The id of the job in which an author changes the server's code; one that runs already is
        that one. `failing` is the call whose recording has to come out, `report` how it does not.
        """
        known = next(find_rewrites(self.store.jobs, bundle.name), None)
        if known is not None:
            return known.id
        now = self.now()
        task = _render_task(bundle, cause, report)
        made = queue_rewrite(self.store.jobs, bundle.name, task, now, failing=failing)
        payload = {"job": made.id, "cause": cause.kind, "call": failing}
        self.store.audit.add_note("replacement.queued", bundle.name, payload, now)
        return made.id


def find_rewrites(jobs: JobTable, server: str) -> Iterator[Job]:
    """The jobs under way in which an author writes a server's next version, the newest first."""
    for job in jobs.find(limit=200):
        if job.kind == "forge" and job.state not in ENDED_JOBS:
            if job.request.get("parent") == server == job.request.get("name"):
                yield job


def queue_rewrite(jobs: JobTable, server: str, task: str, now: float, **more: str) -> Job:
    """A new job in which an author writes a server anew; its last calls have to come out alike."""
    request = {"task": task[:MAX_TASK], "parent": server, "name": server, "alike": True, **more}
    job = Job(generate_id(), "forge", request, created=now, updated=now)
    jobs.create(job)
    return job


def _render_task(bundle: Bundle, cause: Cause, report: StageReport | None) -> str:
    """What the author is asked for. What the API or the code said stands between marks."""
    said = [cause.reason]
    if report is not None:
        proof = Proof(bundle.compute_digest(), (report,))
        said = [diagnosis.render_text() for diagnosis in diagnose_proof(proof, bundle.source_code)]
    head = (
        f"Repair the server {bundle.name}: its calls fail ({cause.kind}). Change what is wrong and "
        "nothing else; the recorded call has to succeed.\n"
    )
    return (head + fence_text("\n".join(said)[:1500], "what went wrong"))[:MAX_TASK]
