"""A draft under proof, with its job, brief, parent server and earlier drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.brief import Brief
from forge.drafts.diagnosis import Diagnosis, diagnose_proof
from forge.drafts.draft import Draft
from orchestrator.errors import ForgeFailed
from orchestrator.forging.drafts.compose import EARLIER, ParentServer, read_kept_draft
from orchestrator.forging.drafts.rounds import is_last_draft
from orchestrator.forging.order import ForgeOrder, Report
from registry.models import DraftRow, Job
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof


@dataclass(frozen=True)
class Proposal:
    """The newest draft of a job. `parent` is what it changes, None where it is a server of its own;
    `drafts` are all of the job's, the newest last; `api` is compiled from what the draft says of
    its API, and None where it says nothing.
    """

    job: Job
    order: ForgeOrder
    parent: ParentServer | None
    brief: Brief
    drafts: Sequence[DraftRow]
    draft: Draft
    report: Report
    api: Bundle | None = None

    @property
    def row(self) -> DraftRow:
        return self.drafts[-1]

    @property
    def fence(self) -> tuple[str, int]:
        """The job and the attempt at it that the draft is tried in."""
        return self.job.id, self.job.attempt

    def build_bundle(self) -> Bundle:
        """The draft as a bundle, without its packages and not yet a version of its server."""
        row, brief = self.row, self.brief
        purpose = Purpose(brief.task, brief.name, brief.compute_digest(), row.author, row.model)
        return build_bundle(self.draft, purpose, brief.parent, self.api)

    def diagnose_draft(self, proof: Proof) -> tuple[Diagnosis, ...]:
        """What is wrong with the draft by what the stages say of it."""
        return diagnose_proof(proof, self.draft.source_code, self.row.content.get(EARLIER, ()))

    def is_experiment(self, proof: Proof) -> bool:
        """Whether code that failed is registered all the same, as it was ordered to be."""
        return (
            self.order.experimental
            and proof.admissible
            and is_last_draft(self.drafts, self.order.author)
            and not self.draft.is_specification
        )


def read_proposal(
    job: Job,
    order: ForgeOrder,
    parent: ParentServer | None,
    brief: Brief,
    drafts: Sequence[DraftRow],
    report: Report,
) -> Proposal:
    """The newest of a job's drafts as it was kept. Raises ForgeFailed where it cannot be read."""
    row = drafts[-1]
    draft = read_kept_draft(row.content, parent, str(row.content.get("tests", "")))
    if not isinstance(draft, Draft):
        raise ForgeFailed(f"draft {row.number} of job {job.id} cannot be read: {draft[0]}")
    return Proposal(job, order, parent, brief, drafts, draft, report)
