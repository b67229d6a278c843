"""What follows where a server cannot be repaired: it is archived, and another is forged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from forge.brief import fenced
from forge.diagnosis import diagnose
from registry.cause import Cause
from registry.health import REPAIRS_A_DAY
from registry.records import ENDED_JOBS, Entry, Job, new_id
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.report import Proof, StageReport

MAX_TASK = 3_500


@dataclass(frozen=True)
class Ladder:
    """The steps below `degraded`: quarantined, repaired or archived, replaced."""

    store: Store
    now: Callable[[], float] = time.time

    def given_up(self, entry: Entry, bundle: Bundle, cause: Cause, reason: str, last: bool) -> str:
        """What becomes of a server whose repair failed, in words. A quarantined one is archived
        where no other repair can be tried, or today's were; its replacement is forged.
        """
        current = self.store.entry(entry.name)
        if current.state != "quarantined" or current.version != entry.version:
            return ""
        if not last and len(self.store.repairs(entry.name, self.now())) < REPAIRS_A_DAY:
            return ""
        self.store.archive(entry.name, self.now(), "healing", f"not repaired: {reason}"[:2000])
        job = self.rewritten(bundle, cause, "", None)
        return f"{entry.name} is archived; job {job} forges its replacement"

    def rewritten(
        self, bundle: Bundle, cause: Cause, failing: str, report: StageReport | None
    ) -> str:
        """The id of the job in which an author changes the server's code; one that runs already is
        that one. `failing` is the call whose recording has to come out, `report` how it does not.
        """
        for job in self.store.jobs(limit=200):
            if job.kind == "forge" and job.state not in ENDED_JOBS:
                if job.request.get("parent") == bundle.name == job.request.get("name"):
                    return job.id
        request = {
            "task": _task(bundle, cause, report),
            "parent": bundle.name,
            "name": bundle.name,
            "failing": failing,
            "alike": True,
        }
        now = self.now()
        made = Job(new_id(), "forge", request, created=now, updated=now)
        self.store.create_job(made)
        payload = {"job": made.id, "cause": cause.kind, "call": failing}
        self.store.note("replacement.queued", bundle.name, payload, now)
        return made.id


def _task(bundle: Bundle, cause: Cause, report: StageReport | None) -> str:
    """What the author is asked for. What the API or the code said stands between marks."""
    said = [cause.reason]
    if report is not None:
        proof = Proof(bundle.digest(), (report,))
        said = [diagnosis.text() for diagnosis in diagnose(proof, bundle.source_code)]
    head = (
        f"Repair the server {bundle.name}: its calls fail ({cause.kind}). Change what is wrong and "
        "nothing else; the recorded call has to succeed.\n"
    )
    return (head + fenced("\n".join(said)[:1500], "what went wrong"))[:MAX_TASK]
