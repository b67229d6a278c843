"""Servers whose code somebody writes: the brief, the drafts, and what came of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.brief import Brief
from forge.diagnosis import Diagnosis
from forge.draft import Draft
from orchestrator.answers import draft_line
from orchestrator.briefing import Briefing
from orchestrator.composing import Parent, composed, with_cases
from orchestrator.draftneeds import check_permissions, check_tests
from orchestrator.draftproblems import of_a_clients, of_a_models
from orchestrator.errors import DraftWanted, ForgeFailed, ForgeWaits, Unasked
from orchestrator.forging import Forge
from orchestrator.needs import engine_needs, engineless, unfreeze_needs, waiting_needs
from orchestrator.orders import Forged, Order, Report, Step
from orchestrator.proposals import Proposal, proposed
from orchestrator.proving import Proved, Proving
from orchestrator.rounds import Rounds, Written, exhausted, told
from registry.drafts import MAX_DRAFTS, awaits_draft
from registry.errors import DraftRefused
from registry.jsontext import compact, sha256
from registry.records import DraftRow, Job
from registry.store import Store
from sandbox import report as stage_report
from sandbox.acceptance import open_points
from sandbox.bundle import Bundle
from sandbox.errors import NO_ENGINE, Frozen, SandboxError
from sandbox.report import Proof
from sandbox.validation import Problem


@dataclass(frozen=True)
class Drafting:
    """Carries out forge jobs whose code somebody writes: a client, or a model that is asked."""

    store: Store
    forge: Forge
    briefing: Briefing
    rounds: Rounds
    proving: Proving
    now: Callable[[], float] = time.time

    async def carry_on(self, job: Job, order: Order, report: Report) -> Forged:
        """Prove and register the job's newest draft, asking for it and for repairs where a model
        may be asked. Raises DraftWanted where somebody has to hand one in or to allow something,
        ForgeFailed where there have been too many, ForgeWaits as `Forge.forge`.
        """
        parent, brief = await asyncio.to_thread(self.briefing.begun, job, order)
        self.store.keep_job(job.id, job.attempt, self.briefing.told(brief), self.now())
        try:
            return await self._drafted(job, order, parent, brief, report)
        except (Unasked, ForgeWaits, SandboxError) as error:
            why = self._held_up(job, error)
            if why is None:
                raise
            raise await asyncio.to_thread(self._wanted, job, brief, why) from error

    async def _drafted(
        self, job: Job, order: Order, parent: Parent | None, brief: Brief, report: Report
    ) -> Forged:
        """The server of the first draft of whole code that is registered."""
        while True:
            drafts = self.store.drafts(job.id)
            if not drafts or drafts[-1].verdict:
                written = await self.rounds.write(job, order, brief, drafts, report)
                self._keep(job, written, parent, drafts)
                continue
            forged = await self._tried(proposed(job, order, parent, brief, drafts, report))
            if forged is not None:
                return forged

    def _held_up(self, job: Job, error: Exception) -> Unasked | None:
        """What somebody has to do before the job goes on, which no process holds until then; None
        where the error is to be raised as it is.
        """
        if isinstance(error, Unasked):
            return error
        if isinstance(error, ForgeWaits):
            # What a model wrote is paid for: the job keeps it, and belongs to nobody meanwhile.
            if self.store.drafts(job.id)[-1].author == "client":
                return None
            return Unasked(str(error), waiting_needs(error.need, error.what, error.how))
        # The draft that was being proved is kept as it came, and tried again.
        if self.forge.brake.engaged:
            return Unasked(str(Frozen()), unfreeze_needs())
        if isinstance(error, NO_ENGINE):
            return Unasked(engineless(job.id, error), engine_needs(error))
        return None

    async def _tried(self, proposal: Proposal) -> Forged | None:
        """What came of a draft: the server, or None where it is a specification that holds, or was
        judged to fail.
        """
        self.briefing.check_free(proposal.brief)
        packed = await self.proving.packed(proposal)
        if isinstance(packed, Proof):
            self._failed(proposal, packed)
            return None
        bundle, draft = self.forge.versioned(packed), proposal.draft
        step = f"draft {proposal.row.number}: {len(bundle.tools)} tools"
        proposal.report(Step("read", 0.25, step))
        if self.proving.composes(bundle):
            check_permissions(self.forge.consents, proposal, bundle)
        proved = await self.proving.of(proposal, bundle)
        if not proved.proof.passed and not proposal.stands_as_experiment(proved.proof):
            self._failed(proposal, proved.proof)
            return None
        if draft.is_specification:
            self._judge(proposal.fence, proposal.row, "passed", proved.proof, ())
            return None
        if proved.proof.passed:
            check_tests(self.forge.consents, proposal)
        return await self._registered(proposal, bundle, proved)

    def _failed(self, proposal: Proposal, proof: Proof) -> None:
        """Keep what is wrong with a draft, for whoever writes the next one."""
        found = proposal.diagnosis(proof)
        self._judge(proposal.fence, proposal.row, "failed", proof, found)

    async def _registered(self, proposal: Proposal, bundle: Bundle, proved: Proved) -> Forged:
        draft, fence, proof = proposal.draft, proposal.fence, proved.proof
        entry = await self.forge.registered(
            bundle,
            proof,
            draft.examples,
            fence,
            proposal.report,
            suite=draft.tests,
            recorded=proved.recorded,
        )
        self._judge(fence, proposal.row, "passed" if proof.passed else "failed", proof, ())
        return Forged(entry, bundle, proof, open_points(proof.reports), proved.timings)

    def _keep(
        self, job: Job, written: Written, parent: Parent | None, drafts: Sequence[DraftRow]
    ) -> None:
        """Keep what a model wrote as the next draft, also where it is none: then it has failed.

        Raises ForgeFailed where it is one of those before.
        """
        content, draft = composed(_given(written, drafts), parent, drafts)
        if isinstance(draft, Draft):
            private = self.forge.brokers.private
            problems = of_a_models(Order.from_json(job.request), draft, private)
        else:
            problems = draft
        digest = draft.digest() if isinstance(draft, Draft) else sha256(compact(content))
        by = (written.author, written.model)
        try:
            row = self.store.keep_draft(job, digest, content, self.now(), *by)
        except DraftRefused as error:
            reason = "the model gave the same draft twice"
            raise ForgeFailed(exhausted(job, drafts, reason)) from error
        if problems:
            found = tuple(Diagnosis("draft", p.where, "", p.reason) for p in problems)
            self._judge((job.id, job.attempt), row, "failed", Proof(digest), found)

    def hand_in(self, job: Job, given: Mapping[str, Any]) -> DraftRow | tuple[Problem, ...]:
        """Keep a draft and queue its job, or what is wrong with it. Raises DraftRefused."""
        if not awaits_draft(job):
            raise DraftRefused(job.id, f"the job does not wait for one, it is {job.state}")
        order = Order.from_json(job.request)
        parent, drafts = self.briefing.parent(job, order), self.store.drafts(job.id)
        kept, draft = composed(given, parent, drafts)
        if not isinstance(draft, Draft):
            return draft
        problems = of_a_clients(order, kept, draft, self.forge.brokers.private)
        if problems:
            return problems
        digest = draft.digest()
        if kept.get("acceptance"):
            digest = sha256(compact([digest, kept["acceptance"]]))
        return self.store.hand_in(job.id, digest, kept, self.now())

    def _judge(
        self,
        fence: tuple[str, int],
        row: DraftRow,
        verdict: Any,
        proof: Proof,
        found: tuple[Diagnosis, ...],
    ) -> None:
        reports = [stage_report.to_json(report) for report in proof.reports]
        told = [vars(diagnosis) for diagnosis in found]
        self.store.judge_draft(*fence, row.number, verdict, reports, told, self.now())

    def _wanted(self, job: Job, brief: Brief, why: Unasked) -> Exception:
        """What whoever writes is told when the next draft is theirs to hand in."""
        drafts = self.store.drafts(job.id)
        problems = told(drafts[-1].diagnosis) if drafts else ""
        if len(drafts) >= MAX_DRAFTS and drafts[-1].verdict:
            return ForgeFailed(
                f"{len(drafts)} drafts failed; nothing was registered. The last:\n{problems}\n"
                "`forge` again to start anew."
            )
        wanted = {
            "waits_for": "draft",
            "diagnosis": problems,
            "drafts": [draft_line(row) for row in drafts],
            "brief": brief.text(job.id),
            **self.briefing.told(brief),
        }
        message = _message(drafts, problems)
        if str(why):
            judged = bool(drafts) and bool(drafts[-1].verdict)
            message = f"{why}\n{message}" if judged else str(why)
        return DraftWanted(wanted, message, why.needs)


def _given(written: Written, drafts: Sequence[DraftRow]) -> Mapping[str, Any]:
    """What a model gave for the next draft; a second reading is not its own to hand in."""
    given = {key: value for key, value in written.given.items() if key != "acceptance"}
    return with_cases(given, drafts[-1]) if drafts else given


def _message(drafts: Sequence[DraftRow], problems: str) -> str:
    if problems:
        return f"draft {drafts[-1].number} failed; nothing was registered. {problems}"
    if drafts:
        return (
            "the specification is kept: its tests prove something. Waits for the code: `submit` "
            "it; what you leave out of tools, cases and tests stays"
        )
    return "waits for the server's code: read the brief, then `submit`"
