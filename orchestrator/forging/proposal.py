"""Drafts as they are tried: with the job that they are for, and what they are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forge.brief import Brief
from forge.diagnosis import Diagnosis, diagnose
from forge.draft import Draft
from forge.mutation import Purpose, bundle_of
from orchestrator.composing import EARLIER, Parent, read
from orchestrator.errors import ForgeFailed
from orchestrator.orders import Order, Report
from orchestrator.rounds import is_last
from registry.records import DraftRow, Job
from sandbox.bundle import Bundle
from sandbox.report import Proof


@dataclass(frozen=True)
class Proposal:
    """The newest draft of a job. `parent` is what it changes, None where it is a server of its own;
    `drafts` are all of the job's, the newest last.
    """

    job: Job
    order: Order
    parent: Parent | None
    brief: Brief
    drafts: Sequence[DraftRow]
    draft: Draft
    report: Report

    @property
    def row(self) -> DraftRow:
        return self.drafts[-1]

    @property
    def fence(self) -> tuple[str, int]:
        """The job and the attempt at it that the draft is tried in."""
        return self.job.id, self.job.attempt

    def bundle(self) -> Bundle:
        """The draft as a bundle, without its packages and not yet a version of its server."""
        row, brief = self.row, self.brief
        purpose = Purpose(brief.task, brief.name, brief.digest(), row.author, row.model)
        return bundle_of(self.draft, purpose, brief.parent)

    def diagnosis(self, proof: Proof) -> tuple[Diagnosis, ...]:
        """What is wrong with the draft by what the stages say of it."""
        return diagnose(proof, self.draft.source_code, self.row.content.get(EARLIER, ()))

    def stands_as_experiment(self, proof: Proof) -> bool:
        """Whether code that failed is registered all the same, as it was ordered to be."""
        return (
            self.order.experimental
            and proof.admissible
            and is_last(self.drafts, self.order.author)
            and not self.draft.is_specification
        )


def proposed(
    job: Job,
    order: Order,
    parent: Parent | None,
    brief: Brief,
    drafts: Sequence[DraftRow],
    report: Report,
) -> Proposal:
    """The newest of a job's drafts as it was kept. Raises ForgeFailed where it cannot be read."""
    row = drafts[-1]
    draft = read(row.content, parent, str(row.content.get("tests", "")))
    if not isinstance(draft, Draft):
        raise ForgeFailed(f"draft {row.number} of job {job.id} cannot be read: {draft[0]}")
    return Proposal(job, order, parent, brief, drafts, draft, report)
