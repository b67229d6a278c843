"""Servers whose code somebody writes: the brief, the drafts, and what came of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.brief import Brief, Near
from forge.diagnosis import Diagnosis, diagnose
from forge.draft import Draft, read_draft
from forge.mutation import Purpose, bundle_of, gains, name_for, reference
from orchestrator.answers import draft_line
from orchestrator.authorship import WRITERS
from orchestrator.errors import DraftWanted, ForgeFailed, ForgeWaits, Unasked
from orchestrator.forging import Forge, Forged, Order, Report, Step
from orchestrator.needs import permission_needs, unfreeze_needs, ungranted
from orchestrator.packages import locked
from orchestrator.rounds import Rounds, Written, exhausted, is_last, told
from registry.drafts import MAX_DRAFTS, awaits_draft
from registry.errors import DraftRefused, Unknown
from registry.jsontext import compact, sha256
from registry.records import DraftRow, Entry, Job
from registry.store import Store
from sandbox import report as stage_report
from sandbox.bundle import Bundle
from sandbox.errors import Frozen, PackagesNeedDocker, PackageUnusable, SandboxError
from sandbox.example import Example
from sandbox.report import Finding, Proof, StageReport
from sandbox.static.stage import prove_static
from sandbox.validation import Problem

NEAR = 0.5
"""The score from which on a registered tool may well do the task already."""
CONTENT = ("code", "tools", "cases", "tests", "packages", "why")
KEPT = ("tools", "cases", "tests", "packages")
"""What a draft takes over from the job's draft before it where it says nothing of it."""
ASKED_BY_PERSON = "network:"
"""Permissions that a person can grant: what a server may reach."""


@dataclass(frozen=True)
class Parent:
    """The bundle that a draft changes, with its examples and tests."""

    bundle: Bundle
    examples: tuple[Example, ...]
    suite: str = ""


@dataclass(frozen=True)
class Drafting:
    """Carries out forge jobs whose code somebody writes: a client, or a model that is asked."""

    store: Store
    forge: Forge
    rounds: Rounds
    now: Callable[[], float] = time.time

    async def carry_on(self, job: Job, order: Order, report: Report) -> Forged:
        """Prove and register the job's newest draft, asking for it and for repairs where a model
        may be asked. Raises DraftWanted where somebody has to hand one in or to allow something,
        ForgeFailed where there have been too many, ForgeWaits as `Forge.forge`.
        """
        parent, brief = await asyncio.to_thread(self._begun, job, order)
        self.store.keep_job(job.id, job.attempt, self._told(job, brief), self.now())
        try:
            while True:
                drafts = self.store.drafts(job.id)
                if not drafts or drafts[-1].verdict:
                    written = await self.rounds.write(job, order, brief, drafts, report)
                    self._keep(job, written, parent, drafts)
                    continue
                forged = await self._tried(job, order, parent, brief, drafts, report)
                if forged is not None:
                    return forged
        except Unasked as why:
            raise await asyncio.to_thread(self._wanted, job, brief, why) from why
        except SandboxError as error:
            if not self.forge.brake.engaged:
                raise
            # The draft that was being proved is kept as it came, and tried again.
            frozen = Unasked(str(Frozen()), unfreeze_needs())
            raise await asyncio.to_thread(self._wanted, job, brief, frozen) from error

    async def _tried(
        self,
        job: Job,
        order: Order,
        parent: Parent | None,
        brief: Brief,
        drafts: Sequence[DraftRow],
        report: Report,
    ) -> Forged | None:
        """What came of the newest draft: the server, or None where it is a specification that
        holds, or was judged to fail.
        """
        row = drafts[-1]
        draft = _read(row.content, parent, str(row.content.get("tests", "")))
        if not isinstance(draft, Draft):
            raise ForgeFailed(f"draft {row.number} of job {job.id} cannot be read: {draft[0]}")
        self._still_free(brief, order)
        made = _bundle(draft, brief, row)
        fence = (job.id, job.attempt)
        try:
            made = await self._with_packages(made, draft, report)
        except (PackageUnusable, PackagesNeedDocker) as error:
            proof = Proof(made.digest(), (_unpackaged(error),))
            self._judge(fence, row, "failed", proof, diagnose(proof, made.source_code))
            return None
        bundle = self.forge.versioned(made)
        report(Step("read", 0.25, f"draft {row.number}: {len(bundle.tools)} tools"))
        self._check_permissions(job, row, bundle, brief)
        timings: dict[str, float] = {}
        proof = await self._proof(bundle, draft, brief, report, timings)
        self.forge.brake.check()
        if draft.is_specification and proof.passed:
            self._judge(fence, row, "passed", proof, ())
            return None
        experimental = (
            order.experimental and is_last(drafts, order.author) and not draft.is_specification
        )
        if not proof.passed and not experimental:
            self._judge(fence, row, "failed", proof, diagnose(proof, bundle.source_code))
            return None
        entry = await self.forge.registered(
            bundle, proof, draft.examples, fence, report, suite=draft.tests
        )
        self._judge(fence, row, "passed" if proof.passed else "failed", proof, ())
        return Forged(entry, bundle, proof, (), timings)

    async def _with_packages(self, bundle: Bundle, draft: Draft, report: Report) -> Bundle:
        """The bundle with the draft's packages, locked; a specification needs none yet.

        Raises as `orchestrator.packages.locked`.
        """
        if draft.is_specification or not draft.packages:
            return bundle

        def progress(step: str) -> None:
            report(Step("packages", 0.2, step))

        found = await locked(
            draft.packages, bundle.name, self.forge.engine, self.forge.consents, progress
        )
        return replace(bundle, packages=found)

    def _keep(
        self, job: Job, written: Written, parent: Parent | None, drafts: Sequence[DraftRow]
    ) -> None:
        """Keep what a model wrote as the next draft, also where it is none: then it has failed.

        Raises ForgeFailed where it is one of those before.
        """
        content, draft = _composed(written.given, parent, drafts)
        readable = isinstance(draft, Draft)
        digest = draft.digest() if isinstance(draft, Draft) else sha256(compact(content))
        by = (written.author, written.model)
        try:
            row = self.store.keep_draft(job, digest, content, self.now(), *by)
        except DraftRefused as error:
            reason = "the model gave the same draft twice"
            raise ForgeFailed(exhausted(job, drafts, reason)) from error
        if not readable:
            found = tuple(Diagnosis("draft", p.where, "", p.reason) for p in _problems(draft))
            self._judge((job.id, job.attempt), row, "failed", Proof(digest), found)

    def hand_in(self, job: Job, given: Mapping[str, Any]) -> DraftRow | tuple[Problem, ...]:
        """Keep a draft and queue its job, or what is wrong with it. Raises DraftRefused."""
        if not awaits_draft(job):
            raise DraftRefused(job.id, f"the job does not wait for one, it is {job.state}")
        order = Order.from_json(job.request)
        parent, drafts = self._parent(job, order), self.store.drafts(job.id)
        kept, draft = _composed(given, parent, drafts)
        if not isinstance(draft, Draft):
            return draft
        return self.store.hand_in(job.id, draft.digest(), kept, self.now())

    def _check_permissions(self, job: Job, row: DraftRow, bundle: Bundle, brief: Brief) -> None:
        """What a model asks for beyond the parent's permissions is a person's to allow. Raises
        Unasked.
        """
        if row.author == "client":
            return
        consents = self.forge.consents
        before = brief.parent.permissions if brief.parent else ()
        wanted = [p for p in bundle.permissions if p not in before]
        asked = [p for p in wanted if not p.startswith(ASKED_BY_PERSON)]
        missing = ungranted(consents, bundle.name, asked)
        if missing and brief.parent is None:
            needs = permission_needs(job.id, bundle.name, missing)
            what = ", ".join(missing)
            raise Unasked(f"{bundle.name} asks for {what}. Allow it: {needs['how']}", needs)
        try:
            self.forge.check_hosts(bundle, wanted)
        except ForgeWaits as wait:
            needs = {"kind": wait.need, "what": wait.what, "how": wait.how}
            raise Unasked(f"{bundle.name} asks to reach {wait.what}: {wait.how}", needs) from wait

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
        if draft.is_specification or prove_static(bundle).passed:
            self.forge.check_hosts(bundle, gained)
        if draft.is_specification:
            return await self.forge.specified(bundle, report, timings, draft.examples, draft.tests)
        return await self.forge.proof(bundle, report, timings, draft.examples, suite=draft.tests)

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
            **self._told(job, brief),
        }
        message = _message(drafts, problems)
        if str(why):
            message = f"{why}\n{message}" if drafts else str(why)
        return DraftWanted(wanted, message, why.needs)

    def _told(self, job: Job, brief: Brief) -> dict[str, Any]:
        """What of a brief is decided once for a job."""
        return {
            "name": brief.name,
            "parent": reference(brief.parent) if brief.parent else "",
            "near": [vars(near) for near in brief.near],
        }

    def _brief(self, job: Job, order: Order, parent: Parent | None) -> Brief:
        """The brief of a job, with the name that it was given first."""
        told = job.result if isinstance(job.result, dict) else {}
        near = tuple(Near(**near) for near in told["near"]) if "near" in told else self._near(order)
        return Brief(
            task=order.task,
            name=told.get("name") or self._name(order),
            parent=parent.bundle if parent else None,
            parents_examples=parent.examples if parent else (),
            parents_suite=parent.suite if parent else "",
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
        shelf = self.forge.shelf
        return Parent(bundle, shelf.examples(entry), shelf.registered_suite(entry))

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
        return made.author in WRITERS and made.prompt_digest == brief.digest()


def _message(drafts: Sequence[DraftRow], problems: str) -> str:
    if problems:
        return f"draft {drafts[-1].number} failed; nothing was registered. {problems}"
    if drafts:
        return (
            "the specification is kept: its tests prove something. Waits for the code: `submit` "
            "it; what you leave out of tools, cases and tests stays"
        )
    return "waits for the server's code: read the brief, then `submit`"


def _read(
    content: Mapping[str, Any], parent: Parent | None, earlier: str
) -> Draft | tuple[Problem, ...]:
    """`earlier` are the tests that must not be lost."""
    if parent is None:
        return read_draft(content, earlier=earlier)
    return read_draft(content, parent.bundle, parent.examples, earlier)


def _composed(
    given: Mapping[str, Any], parent: Parent | None, drafts: Sequence[DraftRow]
) -> tuple[dict[str, Any], Draft | tuple[Problem, ...]]:
    """A draft's content, with what it takes over from the one before, and the draft in it, or what
    is wrong with it.
    """
    content = {key: given[key] for key in CONTENT if key in given}
    read = [row for row in drafts if row.reports or not row.verdict]
    before = read[-1].content if read else {}
    content = {key: before[key] for key in KEPT if key in before} | content
    earlier = before.get("tests", "") or (parent.suite if parent else "")
    if "code" not in given:
        # Tests that are there already are no sign that code is to come.
        content |= {"tests": given.get("tests", "")}
    draft = _read(content, parent, earlier)
    if isinstance(draft, Draft):
        content |= {"tests": draft.tests} if draft.tests else {}
        if not draft.is_specification:
            content.setdefault("code", "")
    return content, draft


def _problems(draft: Draft | tuple[Problem, ...]) -> tuple[Problem, ...]:
    return () if isinstance(draft, Draft) else draft


def _bundle(draft: Draft, brief: Brief, row: DraftRow) -> Bundle:
    purpose = Purpose(brief.task, brief.name, brief.digest(), row.author, row.model)
    return bundle_of(draft, purpose, brief.parent)


def _unpackaged(error: Exception) -> StageReport:
    finding = Finding("packages", "", "package", str(error)[:1000])
    return StageReport("static", "failed", 0.0, findings=(finding,))


def _overreach(gained: list[str], brief: Brief) -> StageReport:
    assert brief.parent is not None
    reason = (
        f"more than {brief.parent.name} may do. A changed server keeps to its parent's requests "
        "and permissions; what needs others is forged from its API's description"
    )
    findings = tuple(Finding("tools.json", "", "gain", f"{what}: {reason}") for what in gained)
    return StageReport("static", "failed", 0.0, findings=findings)


def _taken(name: str) -> str:
    return (
        f"there is a server {name} already. `forge` with parent={name} and name={name} to change "
        "it, or choose another name."
    )
