"""The proof of a draft: what the stages say of it, of first code as of changed code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from forge.brief import Brief
from forge.mutation import gains
from orchestrator.acceptance import SecondReading
from orchestrator.composition import Find, composition_findings
from orchestrator.draftneeds import ASKED_BY_PERSON
from orchestrator.forging import Forge
from orchestrator.hosts import check_hosts
from orchestrator.orders import Order, Step
from orchestrator.packages import locked
from orchestrator.proposals import Proposal
from orchestrator.rehearsal import CALLS, Rehearsal
from orchestrator.remedies import case_of
from orchestrator.replacing import LOOKED_AT
from registry.errors import NotRecorded, Unknown
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.errors import PackagesNeedDocker, PackageUnusable
from sandbox.recordedcase import RecordedCase, added
from sandbox.report import Finding, Proof, StageReport
from sandbox.static.stage import prove_static

Timings = Mapping[str, float]
"""Milliseconds by stage."""


@dataclass(frozen=True)
class Proved:
    """What came of a proof. `recorded` are the cases that it was held to, and that are kept with
    the server; None where those are the server's own.
    """

    proof: Proof
    timings: Timings
    recorded: tuple[RecordedCase, ...] | None


@dataclass(frozen=True)
class Proving:
    """Has drafts proved: by the stages, by their parent's last calls, by a second reading."""

    store: Store
    forge: Forge
    second: SecondReading
    tool_of: Find

    async def packed(self, proposal: Proposal) -> Bundle | Proof:
        """The draft as a bundle with its packages, locked, or the proof that failed where these
        cannot be had; a specification needs none yet. Raises ForgeWaits, SandboxError.
        """
        bundle, draft = proposal.bundle(), proposal.draft
        if draft.is_specification or not draft.packages:
            return bundle

        def progress(step: str) -> None:
            proposal.report(Step("packages", 0.2, step))

        engine, consents = self.forge.engine, self.forge.consents
        try:
            found = await locked(draft.packages, bundle.name, engine, consents, progress)
        except (PackageUnusable, PackagesNeedDocker) as error:
            finding = Finding("packages", "", "package", str(error)[:1000])
            return Proof(bundle.digest(), (_refused(finding),))
        return replace(bundle, packages=found)

    def composes(self, bundle: Bundle) -> bool:
        """Whether the calls of other tools that a bundle declares can be made."""
        return not composition_findings(bundle, self.tool_of)

    async def of(self, proposal: Proposal, bundle: Bundle) -> Proved:
        """What the stages say of a draft's bundle, each further one where those before it passed.

        Raises ForgeWaits for a host that nobody has named, Unasked as `SecondReading.held`, Frozen,
        SandboxError.
        """
        timings: dict[str, float] = {}
        recorded = await asyncio.to_thread(self._recorded, proposal.order, proposal.brief)
        proof = self._refusal(proposal, bundle)
        if proof is None:
            proof = await self._staged(proposal, bundle, timings, recorded)
        self.forge.brake.check()
        if not proposal.draft.is_specification:
            proof = await self._rehearsed(proposal, bundle, proof)
            proof = await self._read_again(proposal, bundle, proof)
        return Proved(proof, timings, recorded)

    def _recorded(self, order: Order, brief: Brief) -> tuple[RecordedCase, ...] | None:
        """The server's recorded cases with the call that a repair is about; None where there is
        none such.
        """
        if not order.failing or not brief.versions:
            return None
        try:
            kept = self.store.recording(order.failing)
            case = case_of(self.store.invocation(order.failing), kept.recording)
        except (NotRecorded, Unknown):
            return None
        return added(self.forge.shelf.recorded(brief.name), case) if case else None

    def _refusal(self, proposal: Proposal, bundle: Bundle) -> Proof | None:
        """The proof that fails before any stage: of what the draft takes for itself that its parent
        has not, or of tools that it cannot call; None where there is nothing such.
        """
        found = _overreach(proposal.brief, bundle) or composition_findings(bundle, self.tool_of)
        return Proof(bundle.digest(), (_refused(*found),)) if found else None

    async def _staged(
        self,
        proposal: Proposal,
        bundle: Bundle,
        timings: dict[str, float],
        recorded: tuple[RecordedCase, ...] | None,
    ) -> Proof:
        """What the forge's stages say. What the static stage refuses asks nobody for a host."""
        draft, report = proposal.draft, proposal.report
        if draft.is_specification or prove_static(bundle).passed:
            gained = gains(bundle, proposal.brief.parent)
            check_hosts(self.forge.consents, bundle, gained)
        if draft.is_specification:
            return await self.forge.specified(bundle, report, timings, draft.examples, draft.tests)
        return await self.forge.proof(
            bundle, report, timings, draft.examples, recorded, suite=draft.tests
        )

    async def _rehearsed(self, proposal: Proposal, after: Bundle, proof: Proof) -> Proof:
        """The proof, failed where a change that is to stay alike does not: where one of the last
        calls of the parent does not come out as it did.
        """
        parent = proposal.parent
        if not proof.passed or not proposal.order.alike or not parent:
            return proof
        before = parent.bundle
        calls = await asyncio.to_thread(self.store.invocations, before.name, LOOKED_AT)
        good = [call for call in calls if call.succeeded][:CALLS]
        rehearsed = await Rehearsal(self.store, self.forge.engine).of(before, after, good)
        if not rehearsed.worse:
            return proof
        reason = f"{rehearsed.worse} came out well before, and does not come out the same"
        finding = Finding("server.py", "", "alike", reason)
        report = StageReport("recorded", "failed", 0.0, findings=(finding,))
        return Proof(proof.bundle_digest, (*proof.reports, report))

    async def _read_again(self, proposal: Proposal, bundle: Bundle, proof: Proof) -> Proof:
        """The proof with the acceptance stage. The task of a repair is ours, and says nothing of
        what is right.
        """
        order = proposal.order
        if not proof.passed or order.failing:
            return proof
        held = await self.second.held(proposal.job, order, bundle, proposal.row, proposal.report)
        return Proof(proof.bundle_digest, (*proof.reports, held))


def _overreach(brief: Brief, bundle: Bundle) -> tuple[Finding, ...]:
    """What a changed server takes for itself that its parent has not and no person can grant."""
    if brief.parent is None:
        return ()
    reason = (
        f"more than {brief.parent.name} may do. A changed server keeps to its parent's requests "
        "and permissions; what needs others is forged from its API's description"
    )
    beyond = [g for g in gains(bundle, brief.parent) if not g.startswith(ASKED_BY_PERSON)]
    return tuple(Finding("tools.json", "", "gain", f"{what}: {reason}") for what in beyond)


def _refused(*findings: Finding) -> StageReport:
    return StageReport("static", "failed", 0.0, findings=findings)
