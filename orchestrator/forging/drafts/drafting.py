"""Forge jobs whose server is written as code: briefs, drafts, proofs, verdicts and registration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forge.drafts.brief import Brief
from forge.drafts.diagnosis import Diagnosis
from forge.drafts.draft import Draft
from forge.drafts.pages import Kind
from forge.text import render_count
from orchestrator.approvals.needs import describe_engine_wait, engine_need
from orchestrator.errors import DraftWanted, ForgeFailed, ForgeWaits, ModelNotAsked
from orchestrator.forging.drafts.briefing import Briefing
from orchestrator.forging.drafts.checks import (
    check_client_draft,
    check_model_draft,
    check_order,
    check_permissions,
    check_tests,
)
from orchestrator.forging.drafts.compose import ParentServer, add_earlier_cases, compose_draft
from orchestrator.forging.drafts.declared_api import DeclaredApis
from orchestrator.forging.drafts.proposal import Proposal, read_proposal
from orchestrator.forging.drafts.proving import DraftProof, DraftProver
from orchestrator.forging.drafts.rounds import (
    AuthorLoop,
    WrittenDraft,
    diagnoses,
    render_diagnosis,
    render_exhausted,
)
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import ForgeOrder, ForgeResult, ForgeStep, Report
from orchestrator.forging.secret_scan import SecretScan
from registry.database.canonical import hash_text, to_compact_json
from registry.errors import DraftRefused
from registry.jobs.drafts import MAX_DRAFTS, awaits_draft
from registry.jobs.pending import draft_line, pending_json
from registry.models import DraftRow, Job
from registry.needs import UnfreezeNeed
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.errors import NO_ENGINE, Frozen, SandboxError
from sandbox.schemas.validator import SchemaViolation
from sandbox.stages.acceptance import list_open_points


@dataclass(frozen=True)
class DraftJobRunner:
    """Carries out forge jobs whose code somebody writes: a client, or a model that is asked."""

    store: Store
    forge: Forge
    briefing: Briefing
    rounds: AuthorLoop
    proving: DraftProver
    apis: DeclaredApis
    scan: SecretScan = field(default_factory=SecretScan)
    now: Callable[[], float] = time.time

    def render_brief(self, job: Job, page: Kind) -> str:
        """A waiting job's brief with another page."""
        _, brief = self.briefing.prepare_brief(job, ForgeOrder.from_request(job.request))
        return replace(brief, page=page).render_for_job(job.id)

    def has_drafts(self, job: Job) -> bool:
        """Whether code was handed in for a job, also for one that waited for a document."""
        return bool(self.store.drafts.find(job.id))

    async def forge_draft(self, job: Job, order: ForgeOrder, report: Report) -> ForgeResult:
        """Prove and register the job's newest draft, asking for it and for repairs where a model
        may be asked. Raises DraftWanted where somebody has to hand one in or to allow something,
        ForgeFailed where there have been too many, ForgeWaits as `Forge.forge_server`.
        """
        parent, brief = await asyncio.to_thread(self.briefing.prepare_brief, job, order)
        decided = pending_json(self.briefing.pending(brief))
        self.store.jobs.keep_result(job.id, job.attempt, decided, self.now())
        try:
            return await self._try_drafts(job, order, parent, brief, report)
        except (ModelNotAsked, ForgeWaits, SandboxError) as error:
            why = self._explain_hold(job, error)
            if why is None:
                raise
            raise await asyncio.to_thread(self._build_draft_wanted, job, brief, why) from error

    async def _try_drafts(
        self, job: Job, order: ForgeOrder, parent: ParentServer | None, brief: Brief, report: Report
    ) -> ForgeResult:
        """The server of the first draft of whole code that is registered."""
        while True:
            drafts = self.store.drafts.find(job.id)
            if not drafts or drafts[-1].verdict:
                written = await self.rounds.write_draft(job, order, brief, drafts, report)
                self._keep_draft(job, written, parent, drafts)
                continue
            proposal = read_proposal(job, order, parent, brief, drafts, report)
            resolved = await self.apis.resolve_api(proposal)
            if not isinstance(resolved, Proposal):
                proof = Proof(proposal.draft.compute_digest())
                self._store_verdict(proposal.fence, proposal.row, "failed", proof, resolved)
                continue
            forged = await self._try_draft(resolved)
            if forged is not None:
                return forged

    def _explain_hold(self, job: Job, error: Exception) -> ModelNotAsked | None:
        """What somebody has to do before the job goes on, which no process holds until then; None
        where the error is to be raised as it is.
        """
        if isinstance(error, ModelNotAsked):
            return error
        if isinstance(error, ForgeWaits):
            # What a model wrote is paid for: the job keeps it, and belongs to nobody meanwhile.
            if self.store.drafts.find(job.id)[-1].author == "client":
                return None
            return ModelNotAsked(str(error), error.need)
        # The draft that was being proved is kept as it came, and tried again.
        if self.forge.kill_switch.engaged:
            return ModelNotAsked(str(Frozen()), UnfreezeNeed())
        if isinstance(error, NO_ENGINE):
            need = engine_need(error)
            return ModelNotAsked(describe_engine_wait(job.id, need), need)
        return None

    async def _try_draft(self, proposal: Proposal) -> ForgeResult | None:
        """What came of a draft: the server, or None where it is a specification that holds, or was
        judged to fail.
        """
        self.briefing.check_name_free(proposal.brief)
        planned = proposal.build_bundle()
        if not proposal.draft.is_specification and self.proving.can_compose(planned):
            check_order(self.forge.consents, proposal, planned)
        packed = await self.proving.build_locked_bundle(proposal)
        if isinstance(packed, Proof):
            self._judge_failed(proposal, packed)
            return None
        # Fetching packages takes its time, in which somebody may have registered the name.
        self.briefing.check_name_free(proposal.brief)
        bundle, draft = self.forge.assign_version(packed), proposal.draft
        step = f"draft {proposal.row.number}: {render_count(len(bundle.tools), 'tool')}"
        proposal.report(ForgeStep("read", 0.25, step))
        if self.proving.can_compose(bundle):
            check_permissions(self.forge.consents, proposal, bundle)
        proved = await self.proving.prove_draft(proposal, bundle)
        if not proved.proof.passed and not proposal.is_experiment(proved.proof):
            self._judge_failed(proposal, proved.proof)
            return None
        if draft.is_specification:
            self._store_verdict(proposal.fence, proposal.row, "passed", proved.proof, ())
            return None
        if proved.proof.passed:
            check_tests(self.forge.consents, proposal)
        return await self._register_server(proposal, bundle, proved)

    def _judge_failed(self, proposal: Proposal, proof: Proof) -> None:
        """Keep what is wrong with a draft, for whoever writes the next one."""
        found = proposal.diagnose_draft(proof)
        self._store_verdict(proposal.fence, proposal.row, "failed", proof, found)

    async def _register_server(
        self, proposal: Proposal, bundle: Bundle, proved: DraftProof
    ) -> ForgeResult:
        draft, fence, proof = proposal.draft, proposal.fence, proved.proof
        entry = await self.forge.register_bundle(
            bundle,
            proof,
            draft.examples,
            fence,
            proposal.report,
            suite=draft.tests,
            recorded=proved.recorded,
        )
        self._store_verdict(fence, proposal.row, "passed" if proof.passed else "failed", proof, ())
        return ForgeResult(entry, bundle, proof, list_open_points(proof.reports), proved.timings)

    def _keep_draft(
        self,
        job: Job,
        written: WrittenDraft,
        parent: ParentServer | None,
        drafts: Sequence[DraftRow],
    ) -> None:
        """Keep what a model wrote as the next draft, also where it is none: then it has failed.

        Raises ForgeFailed where it is one of those before.
        """
        given = _select_given(written, drafts)
        texts = _list_texts(ForgeOrder.from_request(job.request))
        secrets = self.scan.find_problems(given, texts)
        if secrets:
            given = self.scan.mask_content(given, texts)
        content, draft = compose_draft(given, parent, drafts)
        if secrets:
            problems = secrets
        elif isinstance(draft, Draft):
            private = self.forge.brokers.private
            problems = check_model_draft(ForgeOrder.from_request(job.request), draft, private)
        else:
            problems = draft
        digest = (
            draft.compute_digest()
            if isinstance(draft, Draft)
            else hash_text(to_compact_json(content))
        )
        by = (written.author, written.model)
        try:
            row = self.store.drafts.store_draft(job, digest, content, self.now(), *by)
        except DraftRefused as error:
            reason = "the model gave the same draft twice"
            raise ForgeFailed(render_exhausted(job, drafts, reason)) from error
        if problems:
            found = tuple(Diagnosis("draft", p.where, "", p.reason) for p in problems)
            self._store_verdict((job.id, job.attempt), row, "failed", Proof(digest), found)

    def submit_draft(
        self, job: Job, given: Mapping[str, Any]
    ) -> DraftRow | tuple[SchemaViolation, ...]:
        """Keep a draft and queue its job, or what is wrong with it. Raises DraftRefused."""
        if not awaits_draft(job):
            raise DraftRefused(job.id, f"the job does not wait for one, it is {job.state}")
        order = ForgeOrder.from_request(job.request)
        if secrets := self.scan.find_problems(given, _list_texts(order)):
            return secrets
        parent, drafts = self.briefing.load_parent(job, order), self.store.drafts.find(job.id)
        kept, draft = compose_draft(given, parent, drafts)
        if not isinstance(draft, Draft):
            return draft
        problems = check_client_draft(order, kept, draft, self.forge.brokers.private)
        if problems:
            return problems
        digest = draft.compute_digest()
        if beside := [kept[key] for key in ("acceptance", "api") if kept.get(key)]:
            digest = hash_text(to_compact_json([digest, *beside]))
        return self.store.drafts.hand_in(job.id, digest, kept, self.now())

    def _store_verdict(
        self,
        fence: tuple[str, int],
        row: DraftRow,
        verdict: Any,
        proof: Proof,
        found: tuple[Diagnosis, ...],
    ) -> None:
        told = [vars(diagnosis) for diagnosis in found]
        self.store.drafts.store_verdict(
            *fence, row.number, verdict, proof.reports, told, self.now()
        )

    def _build_draft_wanted(self, job: Job, brief: Brief, why: ModelNotAsked) -> Exception:
        """What whoever writes is told when the next draft is theirs to hand in."""
        drafts = self.store.drafts.find(job.id)
        problems = render_diagnosis(diagnoses(drafts[-1])) if drafts else ""
        if len(drafts) >= MAX_DRAFTS and drafts[-1].verdict:
            return ForgeFailed(
                f"{len(drafts)} drafts failed; nothing was registered. The last:\n{problems}\n"
                "`forge` again to start anew."
            )
        wanted = replace(
            self.briefing.pending(brief),
            waits_for="draft",
            diagnosis=problems,
            drafts=tuple(map(draft_line, drafts)),
            brief=brief.render_for_job(job.id),
        )
        message = _render_message(drafts, problems)
        if str(why):
            judged = bool(drafts) and bool(drafts[-1].verdict)
            message = f"{why}\n{message}" if judged else str(why)
        return DraftWanted(wanted, message, why.needs)


def _list_texts(order: ForgeOrder) -> tuple[str, ...]:
    """The texts that a draft is written from: a token of a command in them belongs to no code."""
    return (order.task, order.document)


def _select_given(written: WrittenDraft, drafts: Sequence[DraftRow]) -> Mapping[str, Any]:
    """What a model gave for the next draft; a second reading is not its own to hand in."""
    given = {key: value for key, value in written.given.items() if key != "acceptance"}
    return add_earlier_cases(given, drafts[-1]) if drafts else given


def _render_message(drafts: Sequence[DraftRow], problems: str) -> str:
    if problems:
        return f"draft {drafts[-1].number} failed; nothing was registered. {problems}"
    if drafts:
        return (
            "the specification is kept: its tests prove something. Waits for the code: `submit` "
            "it; what you leave out of tools, cases and tests stays"
        )
    return "waits for the server's code: read the brief, then `submit`"
