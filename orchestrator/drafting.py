"""Servers whose code a client hands in: the brief, the drafts, and what came of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from forge.brief import Brief, Near
from forge.diagnosis import Diagnosis, diagnose
from forge.draft import Draft, read_draft
from forge.mutation import Purpose, bundle_of, gains, name_for, reference
from orchestrator.answers import draft_line
from orchestrator.errors import DraftWanted, ForgeFailed
from orchestrator.forging import Forge, Forged, Order, Report, Step
from registry.drafts import MAX_DRAFTS, awaits_draft
from registry.errors import DraftRefused, Unknown
from registry.records import DraftRow, Entry, Job
from registry.store import Store
from sandbox import report as stage_report
from sandbox.bundle import Bundle
from sandbox.example import Example
from sandbox.report import Finding, Proof, StageReport
from sandbox.static.stage import prove_static
from sandbox.validation import Problem

NEAR = 0.5
"""The score from which on a registered tool may well do the task already."""
ASKED_BY_PERSON = "network:"
"""Permissions that a person can grant: what a server may reach."""


@dataclass(frozen=True)
class Parent:
    """The bundle that a draft changes, with its examples."""

    bundle: Bundle
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Drafting:
    """Carries out forge jobs whose code their client writes."""

    store: Store
    forge: Forge
    now: Callable[[], float] = time.time

    async def carry_on(self, job: Job, order: Order, report: Report) -> Forged:
        """Prove and register the job's newest draft. Raises DraftWanted where there is none yet or
        it failed, ForgeFailed where there have been too many, ForgeWaits as `Forge.forge`.
        """
        parent, brief = await asyncio.to_thread(self._begun, job, order)
        drafts = self.store.drafts(job.id)
        if not drafts or drafts[-1].verdict:
            raise await asyncio.to_thread(self._wanted, job, brief)
        row = drafts[-1]
        draft = _read(row.content, parent)
        if not isinstance(draft, Draft):
            raise ForgeFailed(f"draft {row.number} of job {job.id} cannot be read: {draft[0]}")
        self._still_free(brief, order)
        bundle = self.forge.versioned(_bundle(draft, brief))
        report(Step("read", 0.25, f"draft {row.number}: {len(bundle.tools)} tools"))
        fence = (job.id, job.attempt)
        timings: dict[str, float] = {}
        proof = await self._proof(bundle, draft, brief, report, timings)
        if not proof.passed and not order.experimental:
            self._judge(fence, row, "failed", proof, diagnose(proof, bundle.source_code))
            raise await asyncio.to_thread(self._wanted, job, brief)
        entry = await self.forge.registered(bundle, proof, draft.examples, fence, report)
        self._judge(fence, row, "passed" if proof.passed else "failed", proof, ())
        return Forged(entry, bundle, proof, (), timings)

    def hand_in(self, job: Job, given: Mapping[str, Any]) -> DraftRow | tuple[Problem, ...]:
        """Keep a draft and queue its job, or what is wrong with it. Raises DraftRefused."""
        if not awaits_draft(job):
            raise DraftRefused(job.id, f"the job does not wait for one, it is {job.state}")
        order = Order.from_json(job.request)
        content = {key: given[key] for key in ("code", "tools", "cases", "why") if key in given}
        draft = _read(content, self._parent(job, order))
        if not isinstance(draft, Draft):
            return draft
        return self.store.hand_in(job.id, draft.digest(), content, self.now())

    async def _proof(
        self,
        bundle: Bundle,
        draft: Draft,
        brief: Brief,
        report: Report,
        timings: dict[str, float],
    ) -> Proof:
        """The stages, after what the draft takes for itself that its parent has not."""
        gained = gains(bundle, brief.parent)
        unasked = [g for g in gained if brief.parent and not g.startswith(ASKED_BY_PERSON)]
        if unasked:
            return Proof(bundle.digest(), (_overreach(unasked, brief),))
        if prove_static(bundle).passed:
            self.forge.check_hosts(bundle, gained)
        return await self.forge.proof(bundle, report, timings, draft.examples)

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

    def _begun(self, job: Job, order: Order) -> tuple[Parent | None, Brief]:
        parent = self._parent(job, order)
        return parent, self._brief(job, order, parent)

    def _wanted(self, job: Job, brief: Brief) -> Exception:
        """What the client is told when its turn comes."""
        drafts = self.store.drafts(job.id)
        problems = "\n".join(_text(d) for d in drafts[-1].diagnosis) if drafts else ""
        if len(drafts) >= MAX_DRAFTS:
            return ForgeFailed(
                f"{len(drafts)} drafts failed; nothing was registered. The last:\n{problems}\n"
                "`forge` again to start anew."
            )
        told = {
            "waits_for": "draft",
            "diagnosis": problems,
            "drafts": [draft_line(row) for row in drafts],
            "brief": brief.text(job.id),
            "name": brief.name,
            "parent": reference(brief.parent) if brief.parent else "",
            "near": [vars(near) for near in brief.near],
        }
        message = (
            f"draft {drafts[-1].number} failed; nothing was registered. {problems}"
            if drafts
            else "waits for the server's code: read the brief, then `submit`"
        )
        return DraftWanted(told, message)

    def _brief(self, job: Job, order: Order, parent: Parent | None) -> Brief:
        """The brief of a job, with the name that it was given first."""
        told = job.result if isinstance(job.result, dict) else {}
        near = tuple(Near(**near) for near in told["near"]) if "near" in told else self._near(order)
        return Brief(
            task=order.task,
            name=told.get("name") or self._name(order),
            parent=parent.bundle if parent else None,
            parents_examples=parent.examples if parent else (),
            near=near,
        )

    def _name(self, order: Order) -> str:
        taken = {summary.name for summary in self.store.summaries()}
        if order.name and order.name != order.parent and order.name in taken:
            raise ForgeFailed(_taken(order.name))
        return order.name or name_for(order.task, order.parent, taken)

    def _near(self, order: Order) -> tuple[Near, ...]:
        found = self.store.search(order.task, 3)
        return tuple(
            Near(f"{match.entry}.{match.tool}", match.description)
            for match in found
            if match.score >= NEAR and match.entry != order.parent
        )

    def _parent(self, job: Job, order: Order) -> Parent | None:
        """The parent as it was when the job was begun. Raises Unknown, BundleInvalid."""
        if not order.parent:
            return None
        told = job.result.get("parent", "") if isinstance(job.result, dict) else ""
        entry = self._entry(order.parent, told)
        bundle = self.forge.shelf.bundle(entry)
        if bundle.launch is not None:
            raise ForgeFailed(f"{entry.name} is a third-party server, not ours to change.")
        return Parent(bundle, self.forge.shelf.examples(entry))

    def _entry(self, name: str, told: str) -> Entry:
        if not told:
            return self.store.entry(name)
        digest = told.rpartition(":")[2]
        versions = self.store.versions(name)
        found = next((entry for entry in versions if entry.digest == digest), None)
        if found is None:
            raise Unknown("version", told)
        return found

    def _still_free(self, brief: Brief, order: Order) -> None:
        """Raises ForgeFailed where the name is another's by now, or the parent not what it was."""
        try:
            entry = self.store.entry(brief.name)
        except Unknown:
            return
        if self._is_ours(entry, brief):
            return
        if brief.parent is None or not brief.versions:
            raise ForgeFailed(_taken(brief.name))
        if entry.digest != brief.parent.digest():
            raise ForgeFailed(
                f"{entry.name} is at version {entry.version} by now, and this draft changes "
                f"version {brief.parent.version}. `forge` again with parent={entry.name}."
            )

    def _is_ours(self, entry: Entry, brief: Brief) -> bool:
        """Whether an entry was registered for this very brief, by an attempt that then died."""
        made = self.forge.shelf.bundle(entry).provenance
        return made.author == "client" and made.prompt_digest == brief.digest()


def _read(content: Mapping[str, Any], parent: Parent | None) -> Draft | tuple[Problem, ...]:
    if parent is None:
        return read_draft(content)
    return read_draft(content, parent.bundle, parent.examples)


def _bundle(draft: Draft, brief: Brief) -> Bundle:
    return bundle_of(draft, Purpose(brief.task, brief.name, brief.digest()), brief.parent)


def _overreach(gained: list[str], brief: Brief) -> StageReport:
    assert brief.parent is not None
    reason = (
        f"more than {brief.parent.name} may do. A changed server keeps to its parent's requests "
        "and permissions; what needs others is forged from its API's description"
    )
    findings = tuple(Finding("tools.json", "", "gain", f"{what}: {reason}") for what in gained)
    return StageReport("static", "failed", 0.0, findings=findings)


def _text(told: Mapping[str, Any]) -> str:
    return Diagnosis(**told).text()


def _taken(name: str) -> str:
    return (
        f"there is a server {name} already. `forge` with parent={name} and name={name} to change "
        "it, or choose another name."
    )
