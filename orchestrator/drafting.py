"""Servers whose code somebody writes: the brief, the drafts, and what came of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forge.acceptance import read_claims
from forge.brief import Brief
from forge.diagnosis import Diagnosis, diagnose
from forge.draft import ASKED_LOCALLY, Draft
from forge.heldback import merged, repeats
from forge.literals import unasked
from forge.mutation import Purpose, bundle_of, gains
from forge.suite import altered
from orchestrator.acceptance import READ_BY, SecondReading
from orchestrator.answers import draft_line
from orchestrator.briefing import Briefing
from orchestrator.composing import (
    EARLIER,
    Parent,
    composed,
    is_told_of_nothing,
    read,
    taken_out,
    without_tools,
)
from orchestrator.composition import Find, composition_findings
from orchestrator.errors import DraftWanted, ForgeFailed, ForgeWaits, Unasked
from orchestrator.forging import Forge, Forged, Order, Report, Step
from orchestrator.needs import (
    are_allowed,
    engine_needs,
    engineless,
    permission_needs,
    tests_needs,
    unfreeze_needs,
    ungranted,
    waiting_needs,
)
from orchestrator.packages import locked
from orchestrator.rehearsal import CALLS, Rehearsal
from orchestrator.remedies import case_of
from orchestrator.replacing import LOOKED_AT
from orchestrator.rounds import Rounds, Written, exhausted, is_last, told
from registry.drafts import MAX_DRAFTS, awaits_draft
from registry.errors import DraftRefused, NotRecorded, Unknown
from registry.jsontext import compact, sha256
from registry.records import DraftRow, Job
from registry.store import Store
from sandbox import report as stage_report
from sandbox.acceptance import open_points
from sandbox.asked import METHODS
from sandbox.bundle import Bundle
from sandbox.errors import NO_ENGINE, Frozen, PackagesNeedDocker, PackageUnusable, SandboxError
from sandbox.meaning import meaning
from sandbox.permissions import permissions_of, place_problem
from sandbox.recordedcase import RecordedCase, added
from sandbox.report import Finding, Proof, StageReport
from sandbox.static.stage import prove_static
from sandbox.validation import Problem

REACHING = tuple(f"{kind}:" for kind in METHODS)
ASKED_BY_PERSON = ("network:", *REACHING)
"""Permissions that a person can grant: what a server may reach."""


@dataclass(frozen=True)
class Drafting:
    """Carries out forge jobs whose code somebody writes: a client, or a model that is asked."""

    store: Store
    forge: Forge
    briefing: Briefing
    rounds: Rounds
    second: SecondReading
    tool_of: Find
    now: Callable[[], float] = time.time

    async def carry_on(self, job: Job, order: Order, report: Report) -> Forged:
        """Prove and register the job's newest draft, asking for it and for repairs where a model
        may be asked. Raises DraftWanted where somebody has to hand one in or to allow something,
        ForgeFailed where there have been too many, ForgeWaits as `Forge.forge`.
        """
        parent, brief = await asyncio.to_thread(self.briefing.begun, job, order)
        self.store.keep_job(job.id, job.attempt, self.briefing.told(brief), self.now())
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
        except ForgeWaits as wait:
            # What a model wrote is paid for: the job keeps it, and belongs to nobody meanwhile.
            if self.store.drafts(job.id)[-1].author == "client":
                raise
            asked = Unasked(str(wait), waiting_needs(wait.need, wait.what, wait.how))
            raise await asyncio.to_thread(self._wanted, job, brief, asked) from wait
        except SandboxError as error:
            # The draft that was being proved is kept as it came, and tried again.
            if self.forge.brake.engaged:
                held = Unasked(str(Frozen()), unfreeze_needs())
            elif isinstance(error, NO_ENGINE):
                held = Unasked(engineless(job.id, error), engine_needs(error))
            else:
                raise
            raise await asyncio.to_thread(self._wanted, job, brief, held) from error

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
        draft = read(row.content, parent, str(row.content.get("tests", "")))
        if not isinstance(draft, Draft):
            raise ForgeFailed(f"draft {row.number} of job {job.id} cannot be read: {draft[0]}")
        self.briefing.check_free(brief)
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
        if not composition_findings(bundle, self.tool_of):
            self._check_permissions(job, row, bundle, brief)
        timings: dict[str, float] = {}
        recorded = await asyncio.to_thread(self._recorded, order, brief)
        proof = await self._proof(bundle, draft, brief, report, timings, recorded)
        self.forge.brake.check()
        if proof.passed and order.alike and parent and not draft.is_specification:
            proof = await self._rehearsed(proof, parent.bundle, bundle)
        if proof.passed and not draft.is_specification and not order.failing:
            # The task of a repair is ours, and says nothing of what is right.
            held = await self.second.held(job, order, bundle, row, report)
            proof = Proof(proof.bundle_digest, (*proof.reports, held))
        if draft.is_specification and proof.passed:
            self._judge(fence, row, "passed", proof, ())
            return None
        experimental = (
            order.experimental
            and proof.admissible
            and is_last(drafts, order.author)
            and not draft.is_specification
        )
        if not proof.passed and not experimental:
            found = diagnose(proof, bundle.source_code, row.content.get(EARLIER, ()))
            self._judge(fence, row, "failed", proof, found)
            return None
        if proof.passed:
            self._check_tests(job, parent, drafts, draft)
        entry = await self.forge.registered(
            bundle, proof, draft.examples, fence, report, suite=draft.tests, recorded=recorded
        )
        self._judge(fence, row, "passed" if proof.passed else "failed", proof, ())
        return Forged(entry, bundle, proof, open_points(proof.reports), timings)

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
        given = {key: value for key, value in written.given.items() if key != "acceptance"}
        if "code" in given and "cases" in given and drafts:
            gone = taken_out(given, drafts[-1].content)
            before = without_tools(drafts[-1].content.get("cases"), gone)
            given["cases"] = merged(before, given["cases"])
        content, draft = composed(given, parent, drafts)
        ours = self.forge.brokers.private
        problems = (
            (*_missing(job, draft), *_ours(draft, ours)) if isinstance(draft, Draft) else draft
        )
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
        ours = self.forge.brokers.private
        missing = (*_left_out(order, draft), *_ours(draft, ours), *_unclaimed(order, kept, draft))
        if missing:
            return missing
        digest = draft.digest()
        if kept.get("acceptance"):
            digest = sha256(compact([digest, kept["acceptance"]]))
        return self.store.hand_in(job.id, digest, kept, self.now())

    def _check_permissions(self, job: Job, row: DraftRow, bundle: Bundle, brief: Brief) -> None:
        """What a model asks for beyond the parent's permissions is a person's to allow, and what
        reaches this machine or further whoever asks. Raises Unasked, ForgeWaits.
        """
        consents = self.forge.consents
        before = brief.parent.permissions if brief.parent else ()
        wanted = [p for p in bundle.permissions if p not in before]
        asked = [p for p in wanted if not p.startswith("network:")]
        if row.author == "client":
            asked = [p for p in asked if p.partition(":")[0] in (*ASKED_LOCALLY, *METHODS)]
        if brief.parent is not None:
            asked = [p for p in asked if p.startswith(REACHING)]
        missing = ungranted(consents, bundle.name, asked)
        if missing:
            needs = permission_needs(job.id, bundle.name, missing)
            what = "\n  and for ".join(f"{p}, {meaning(p)}" for p in missing)
            how = f"Allow that: {needs['how']}; or hand in a draft that asks for less"
            raise Unasked(f"{bundle.name} asks for {what}.\n{how}", needs)
        if row.author != "client":
            self.forge.check_hosts(bundle, wanted)

    def _check_tests(
        self, job: Job, parent: Parent | None, drafts: Sequence[DraftRow], draft: Draft
    ) -> None:
        """Code that passes other tests than were written before it is a person's to take: what
        changed may be a mistake of the tests, or the one that they found. Raises Unasked.
        """
        kept = drafts[_overturned(drafts) : -1]
        earlier = [str(row.content.get("tests", "")) for row in kept if _proved(row)]
        earlier += [parent.suite] if parent else []
        before = {tool.name for tool in parent.bundle.tools} if parent else set()
        gone = before - {tool.name for tool in draft.tools}
        changed = [name for suite in earlier for name in altered(draft.tests, suite, gone)]
        if changed and not are_allowed(self.forge.consents, job.id, draft.tests):
            needs = tests_needs(job.id, dict.fromkeys(changed), draft.tests)
            raise Unasked(
                f"the draft passes, with other tests than before ({needs['what']}). Look at them, "
                f"and take it: {needs['how']}; or hand in a draft that passes the earlier ones",
                needs,
            )

    async def _proof(
        self,
        bundle: Bundle,
        draft: Draft,
        brief: Brief,
        report: Report,
        timings: dict[str, float],
        recorded: tuple[RecordedCase, ...] | None,
    ) -> Proof:
        """The stages, after what the draft takes for itself that its parent has not."""
        gained = gains(bundle, brief.parent)
        beyond = [g for g in gained if brief.parent and not g.startswith(ASKED_BY_PERSON)]
        if beyond:
            return Proof(bundle.digest(), (_overreach(beyond, brief),))
        if wrong := composition_findings(bundle, self.tool_of):
            reports = (StageReport("static", "failed", 0.0, findings=wrong),)
            return Proof(bundle.digest(), reports)
        if draft.is_specification or prove_static(bundle).passed:
            self.forge.check_hosts(bundle, gained)
        if draft.is_specification:
            return await self.forge.specified(bundle, report, timings, draft.examples, draft.tests)
        return await self.forge.proof(
            bundle, report, timings, draft.examples, recorded, suite=draft.tests
        )

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

    async def _rehearsed(self, proof: Proof, before: Bundle, after: Bundle) -> Proof:
        """The proof, failed where one of the last calls does not come out as it did."""
        calls = await asyncio.to_thread(self.store.invocations, before.name, LOOKED_AT)
        good = [call for call in calls if call.succeeded][:CALLS]
        rehearsed = await Rehearsal(self.store, self.forge.engine).of(before, after, good)
        if not rehearsed.worse:
            return proof
        reason = f"{rehearsed.worse} came out well before, and does not come out the same"
        finding = Finding("server.py", "", "alike", reason)
        report = StageReport("recorded", "failed", 0.0, findings=(finding,))
        return Proof(proof.bundle_digest, (*proof.reports, report))

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


def _missing(job: Job, draft: Draft) -> tuple[Problem, ...]:
    """What the cases and tests of a model's draft leave out."""
    return (*repeats(draft), *_left_out(Order.from_json(job.request), draft))


def _unclaimed(order: Order, content: Mapping[str, Any], draft: Draft) -> tuple[Problem, ...]:
    """What is wrong with the second reading that was handed in."""
    if not isinstance(content.get("acceptance", []), list):
        return (Problem("/acceptance", "is not an array of claims"),)
    return read_claims(content.get("acceptance"), order.task, draft.tools)[1]


def _ours(draft: Draft, private: tuple[Path, ...]) -> tuple[Problem, ...]:
    """The paths that a draft asks for and that lie where our own files are."""
    asked = (each for each in permissions_of(draft.permissions) if each.kind == "fs")
    refused = ((each, place_problem(Path(each.name), private)) for each in asked)
    return tuple(
        Problem("/tools", f"{each} is granted to no server: {why}") for each, why in refused if why
    )


def _left_out(order: Order, draft: Draft) -> tuple[Problem, ...]:
    """What the task names and nothing asks for. The task of a repair is ours, and names places."""
    return () if order.failing else unasked(order.task, draft)


def _overturned(drafts: Sequence[DraftRow]) -> int:
    """How many of the drafts agreed with a mistake that a second reading of the task found: their
    tests have to change, and bind nobody.
    """
    at = [number for number, row in enumerate(drafts, 1) if _is_overturned(row)]
    return at[-1] if at else 0


def _is_overturned(row: DraftRow) -> bool:
    found = (report for report in row.reports if report.get("stage") == "acceptance")
    return any(r.get("verdict") == "failed" and READ_BY in str(r.get("note")) for r in found)


def _proved(row: DraftRow) -> bool:
    """Whether the stages said of a draft's tests that they prove something."""
    suites = [report for report in row.reports if report.get("stage") == "suite"]
    cells = [cell for report in suites for cell in report.get("cases", ())]
    stubbed = any(map(is_told_of_nothing, cells))
    return bool(suites) and not stubbed and not any(r.get("findings") for r in suites)


def _message(drafts: Sequence[DraftRow], problems: str) -> str:
    if problems:
        return f"draft {drafts[-1].number} failed; nothing was registered. {problems}"
    if drafts:
        return (
            "the specification is kept: its tests prove something. Waits for the code: `submit` "
            "it; what you leave out of tools, cases and tests stays"
        )
    return "waits for the server's code: read the brief, then `submit`"


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
