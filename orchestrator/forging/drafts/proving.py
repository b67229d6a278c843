"""Proof of a draft: the forge's stages, a rehearsal of the parent's last calls, and an independent
review.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from forge.drafts.brief import Brief
from forge.drafts.gains import list_gains
from forge.drafts.told_answers import find_told_answers
from orchestrator.forging.descriptions import check_hosts
from orchestrator.forging.drafts.checks import ASKED_BY_PERSON
from orchestrator.forging.drafts.proposal import Proposal
from orchestrator.forging.drafts.review import Review
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import ForgeOrder, ForgeStep
from orchestrator.forging.packages import lock_packages
from orchestrator.gateway.composition import (
    Find,
    check_known_answer,
    find_answer_problems,
    find_composition_problems,
)
from orchestrator.replay.rehearsal import CALLS, LOOKED_AT, Rehearsal, build_failed_case
from registry.calls.invocations import CallTable
from registry.errors import RecordingMissing, RowNotFound
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Finding, Proof, StageReport, finding_at
from sandbox.errors import PackagesNeedDocker, PackageUnusable
from sandbox.offload import run_beside
from sandbox.session.recorded_case import RecordedCase, add_case
from sandbox.stages.static.stage import prove_static

TESTS = "tests/test_server.py"
Timings = Mapping[str, float]
"""Milliseconds by stage."""


@dataclass(frozen=True)
class DraftProof:
    """What came of a proof. `recorded` are the cases that it was held to, and that are kept with
    the server; None where those are the server's own.
    """

    proof: Proof
    timings: Timings
    recorded: tuple[RecordedCase, ...] | None


@dataclass(frozen=True)
class DraftProver:
    """Has drafts proved: by the stages, by their parent's last calls, by a second reading."""

    calls: CallTable
    forge: Forge
    second: Review
    tool_of: Find

    async def build_locked_bundle(self, proposal: Proposal) -> Bundle | Proof:
        """The draft as a bundle with its packages, locked, or the proof that failed where these
        cannot be had; a specification needs none yet. Raises ForgeWaits, SandboxError.
        """
        bundle, draft = proposal.build_bundle(), proposal.draft
        if draft.is_specification or not draft.packages:
            return bundle

        def progress(step: str) -> None:
            proposal.report(ForgeStep("packages", 0.2, step))

        engine, consents = self.forge.engine, self.forge.consents
        try:
            found = await lock_packages(draft.packages, bundle.name, engine, consents, progress)
        except (PackageUnusable, PackagesNeedDocker) as error:
            finding = Finding("packages", "", "package", str(error)[:1000])
            return Proof(bundle.compute_digest(), (_build_refused_report(finding),))
        return replace(bundle, packages=found)

    def can_compose(self, bundle: Bundle) -> bool:
        """Whether the calls of other tools that a bundle declares can be made."""
        return not find_composition_problems(bundle, self.tool_of)

    async def prove_draft(self, proposal: Proposal, bundle: Bundle) -> DraftProof:
        """What the stages say of a draft's bundle, each further one where those before it passed.

        Raises ForgeWaits for a host that nobody has named, Unasked as `Review.review_draft`,
        Frozen, SandboxError.
        """
        timings: dict[str, float] = {}
        recorded = await asyncio.to_thread(
            self._load_recorded_cases, proposal.order, proposal.brief
        )
        proof = self._refuse_early(proposal, bundle)
        if proof is None:
            proof = await self._run_stages(proposal, bundle, timings, recorded)
        self.forge.kill_switch.raise_if_engaged()
        if not proposal.draft.is_specification:
            proof = await self._rehearse_draft(proposal, bundle, proof)
            proof = await self._review_draft(proposal, bundle, proof)
        return DraftProof(proof, timings, recorded)

    def _load_recorded_cases(
        self, order: ForgeOrder, brief: Brief
    ) -> tuple[RecordedCase, ...] | None:
        """The server's recorded cases with the call that a repair is about; None where there is
        none such.
        """
        if not order.failing or not brief.is_next_version:
            return None
        try:
            kept = self.calls.get_recording(order.failing)
            case = build_failed_case(self.calls.get(order.failing), kept.recording)
        except (RecordingMissing, RowNotFound):
            return None
        return add_case(self.forge.shelf.load_recorded_cases(brief.name), case) if case else None

    def _refuse_early(self, proposal: Proposal, bundle: Bundle) -> Proof | None:
        """The proof that fails before any stage: of what the draft takes for itself that its parent
        has not, or of tools that it cannot call; None where there is nothing such.
        """
        found = (
            _find_overreach(proposal.brief, bundle)
            or find_composition_problems(bundle, self.tool_of)
            or find_answer_problems(proposal.draft.examples, self.tool_of)
            or find_tested_problems(proposal.draft.tests, self.tool_of)
        )
        return Proof(bundle.compute_digest(), (_build_refused_report(*found),)) if found else None

    async def _run_stages(
        self,
        proposal: Proposal,
        bundle: Bundle,
        timings: dict[str, float],
        recorded: tuple[RecordedCase, ...] | None,
    ) -> Proof:
        """What the forge's stages say. What the static stage refuses asks nobody for a host."""
        draft, report = proposal.draft, proposal.report
        admitted = (
            draft.is_specification or (await run_beside(partial(prove_static, bundle))).passed
        )
        if admitted:
            gained = list_gains(bundle, proposal.brief.parent)
            check_hosts(self.forge.consents, bundle, gained)
        if draft.is_specification:
            return await self.forge.prove_spec(bundle, report, timings, draft.examples, draft.tests)
        return await self.forge.prove_bundle(
            bundle, report, timings, draft.examples, recorded, suite=draft.tests
        )

    async def _rehearse_draft(self, proposal: Proposal, after: Bundle, proof: Proof) -> Proof:
        """The proof, failed where a change that is to stay alike does not: where one of the last
        calls of the parent does not come out as it did.
        """
        parent = proposal.parent
        if not proof.passed or not proposal.order.alike or not parent:
            return proof
        before = parent.bundle
        calls = await asyncio.to_thread(self.calls.find, before.name, LOOKED_AT)
        good = [call for call in calls if call.succeeded][:CALLS]
        rehearsed = await Rehearsal(self.calls, self.forge.engine).rehearse_calls(
            before, after, good
        )
        if not rehearsed.worse:
            return proof
        reason = f"{rehearsed.worse} came out well before, and does not come out the same"
        finding = Finding("server.py", "", "alike", reason)
        report = StageReport("recorded", "failed", 0.0, findings=(finding,))
        return Proof(proof.bundle_digest, (*proof.reports, report))

    async def _review_draft(self, proposal: Proposal, bundle: Bundle, proof: Proof) -> Proof:
        """The proof with the acceptance stage. The task of a repair is ours, and says nothing of
        what is right.
        """
        order = proposal.order
        if not proof.passed or order.failing:
            return proof
        held = await self.second.review_draft(
            proposal.job,
            order,
            bundle,
            proposal.row,
            proposal.report,
            proposal.draft.examples,
        )
        return Proof(proof.bundle_digest, (*proof.reports, held))


def _find_overreach(brief: Brief, bundle: Bundle) -> tuple[Finding, ...]:
    """What a changed server takes for itself that its parent has not and no person can grant."""
    if brief.parent is None:
        return ()
    reason = (
        f"more than {brief.parent.name} may do. A changed server keeps to its parent's requests "
        "and permissions; what needs others is forged from its API's description"
    )
    beyond = [g for g in list_gains(bundle, brief.parent) if not g.startswith(ASKED_BY_PERSON)]
    return tuple(Finding("tools.json", "", "gain", f"{what}: {reason}") for what in beyond)


def find_tested_problems(tests: str, find: Find) -> tuple[Finding, ...]:
    """What a test suite has a called tool be asked or answer that its schemas do not admit: such a
    test proves a call that fails when it is made.
    """
    return tuple(
        finding_at(TESTS, told.line, "composition", reason)
        for told in find_told_answers(tests)
        for reason in check_known_answer(told.answer, find, is_fault=told.is_fault)
    )


def _build_refused_report(*findings: Finding) -> StageReport:
    return StageReport("static", "failed", 0.0, findings=findings)
