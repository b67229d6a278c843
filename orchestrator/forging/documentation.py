"""Forge jobs for APIs that only have documentation for people: a model or client reads it once, and
the result is compiled like any other description.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from forge.authors.interface import Author
from forge.documentation.checking import LocatedClaims
from forge.documentation.claims import is_api_claims, parse_api_claims
from forge.documentation.prompts import build_part_request, render_brief
from forge.documentation.sections import DocumentationPart, split_pages
from forge.documentation.to_openapi import DerivedDocument, derive_document
from forge.errors import AuthorFailed, NoUsableOperation
from forge.readers.document import DocumentProblem
from forge.readers.page import Page
from forge.text import render_count
from orchestrator.approvals.needs import count_budgets, render_way
from orchestrator.errors import (
    BudgetSpent,
    DraftWanted,
    ForgeFailed,
    ForgeWaits,
    ModelNotAsked,
    ProseFound,
)
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.authors.choice import AuthorChoice
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import ForgeOrder, ForgeResult, ForgeStep, Report
from registry.jobs.jobs import JobTable
from registry.jobs.pending import PendingForge, pending_json, read_pending
from registry.models import Job
from registry.needs import BudgetNeed, Need, UnfreezeNeed
from sandbox.errors import Frozen
from sandbox.injection import find_instruction

ANSWER_TOKENS = 12_000
UNUSABLE = ("malformed", "endless")
"""Failures that concern one part of the text: the others are asked about all the same."""


@dataclass(frozen=True)
class _PartAnswer:
    answered: LocatedClaims
    prompt: str
    model: str


@dataclass(frozen=True)
class _PartFailure:
    problem: DocumentProblem
    error: AuthorFailed


@dataclass(frozen=True)
class Documentation:
    """Carries out forge jobs whose API is documented in prose."""

    jobs: JobTable
    forge: Forge
    authors: Authors
    now: Callable[[], float] = time.time

    async def read_and_forge(
        self, job: Job, order: ForgeOrder, found: ProseFound, report: Report
    ) -> ForgeResult:
        """Read the documentation, compile, prove and register. Raises DraftWanted where somebody
        has to hand in a description or to allow something, otherwise as `Forge.forge_server`.
        """
        pages = await self.forge.descriptions.gather_pages(found.place, found.pages)
        report(ForgeStep("read", 0.08, _render_pages(pages)))
        try:
            made = await self._derive_document(job, order, pages, report)
            made = replace(made, problems=(*found.problems, *made.problems))
        except ModelNotAsked as why:
            raise _build_draft_wanted(job, order, pages, str(why), why.needs) from why
        except Frozen as frozen:
            raise _build_draft_wanted(job, order, pages, str(frozen), UnfreezeNeed()) from frozen
        kept_json = pending_json(_encode_derived(made))
        self.jobs.keep_result(job.id, job.attempt, kept_json, self.now())
        return await self.forge_derived(job, order, made, report)

    async def forge_derived(
        self, job: Job, order: ForgeOrder, made: DerivedDocument, report: Report
    ) -> ForgeResult:
        """Compile, prove and register what was derived. What it waits for it waits for as nobody's
        job: what a model read is paid for.
        """
        try:
            return await self.forge.forge_server(order, report, _build_fence(job), made)
        except ForgeWaits as wait:
            if not made.author or made.author == "client":
                raise
            pending = replace(_encode_derived(made), waits_for="document", brief=str(wait))
            raise DraftWanted(pending, str(wait), wait.need) from wait

    async def forge_claims(
        self, job: Job, order: ForgeOrder, content: Mapping[str, Any], report: Report
    ) -> ForgeResult:
        """As `carry_on` with what the job's client read. Raises ForgeFailed where the documentation
        is not there.
        """
        looked = ForgeOrder.from_json({**vars(order), "document": ""})
        try:
            await self.forge.descriptions.find_document(looked, report)
        except ProseFound as found:
            pages = await self.forge.descriptions.gather_pages(found.place, found.pages)
        else:
            raise ForgeFailed(
                "there is a machine-readable description: `forge` again without yours."
            )
        answers = (LocatedClaims(pages[0].location, "", parse_api_claims(content)),)
        text = json.dumps(content, sort_keys=True)
        made = await asyncio.to_thread(derive_document, pages, answers, "client", (text,))
        return await self.forge_derived(job, order, made, report)

    async def _derive_document(
        self, job: Job, order: ForgeOrder, pages: tuple[Page, ...], report: Report
    ) -> DerivedDocument:
        """What is read out of the pages. Raises Unasked where somebody else has to read them, and
        they hold no curl commands that would do, or a client wants to.
        """
        choice = self.authors.choose_for_job(order.author, job.id, "")
        if choice.writer in ("openai", "sampling"):
            return await self._read_pages(job, order, pages, choice, report)
        if not choice.needs and order.author != "client":
            with suppress(NoUsableOperation):
                made = await asyncio.to_thread(derive_document, pages, ())
                report(ForgeStep("read", 0.1, "only its curl commands are read"))
                reason = f"{choice.why}; only its curl commands were read"
                unread = DocumentProblem(pages[0].location, "", reason)
                return _add_findings(made, pages, (unread,))
        if choice.writer == "none":
            raise ForgeFailed(
                f"{pages[0].location} is documentation for people without curl commands, and "
                "nobody is to read it. `forge` again without `--author none`."
            )
        raise ModelNotAsked(choice.told, choice.needs)

    async def _read_pages(
        self,
        job: Job,
        order: ForgeOrder,
        pages: tuple[Page, ...],
        choice: AuthorChoice,
        report: Report,
    ) -> DerivedDocument:
        """What a model reads out of the pages, part by part. Raises Unasked."""
        parts, count = split_pages(pages)
        report(ForgeStep("read", 0.1, f"{choice.told}: the documentation in {len(parts)} parts"))
        try:
            alive = partial(self.jobs.check_held, job.id, job.attempt)
            author = await self.authors.open_author(choice, job, order.name, alive, "extractor")
            read = [
                await self._read_part(author, part, len(parts), order, report) for part in parts
            ]
        except AuthorFailed as error:
            raise _build_not_asked(job, error) from error
        except BudgetSpent as error:
            need = BudgetNeed(error.line, count_budgets(self.authors.consents, job.id))
            raise ModelNotAsked(f"{error} `{render_way(need, job.id)}`", need) from error
        good = [one for one in read if isinstance(one, _PartAnswer)]
        failed = [one for one in read if isinstance(one, _PartFailure)]
        if failed and not good:
            raise _build_not_asked(job, failed[0].error)
        left = [one.problem for one in failed]
        if count > len(parts):
            reason = f"only {len(parts)} of its {count} parts were read"
            left.append(DocumentProblem(pages[0].location, "", reason))
        answers, prompts = [one.answered for one in good], [one.prompt for one in good]
        name = f"{author.name} {good[-1].model}".strip() if good else ""
        made = await asyncio.to_thread(derive_document, pages, answers, name, prompts)
        return _add_findings(made, pages, left)

    async def _read_part(
        self, author: Author, part: DocumentationPart, parts: int, order: ForgeOrder, report: Report
    ) -> _PartAnswer | _PartFailure:
        """What a model says of one part. Raises AuthorFailed where others need not be tried."""
        most = min(ANSWER_TOKENS, self.authors.settings.answer_tokens)
        ask, pointer = build_part_request(part, parts, order.task, most), f"/part/{part.number}"
        try:
            reply = await author.write(ask)
        except AuthorFailed as error:
            if error.kind not in UNUSABLE:
                raise
            return _PartFailure(
                DocumentProblem(part.location, pointer, f"not read: {error.reason}"), error
            )
        answered = LocatedClaims(part.location, pointer, parse_api_claims(reply.content))
        step = f"part {part.number}: {len(answered.claims.operations)} operations named"
        report(ForgeStep("read", 0.1 + 0.1 * part.number / parts, step))
        return _PartAnswer(answered, ask.prompt, reply.model)


def load_derived(job: Job) -> DerivedDocument | None:
    """What was read for a job before its process ended, or before it waited for a person."""
    pending = read_pending(job.result)
    return DerivedDocument.from_json(pending.derived) if pending and pending.derived else None


def awaits_document(job: Job) -> bool:
    """Whether a job waits, or waited, for an API description rather than for code."""
    pending = read_pending(job.result)
    return pending is not None and pending.waits_for == "document"


def parse_claims(document: str) -> Mapping[str, Any] | None:
    """What a client read out of documentation, where that is what it handed in."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return None
    return value if is_api_claims(value) else None


def _build_draft_wanted(
    job: Job, order: ForgeOrder, pages: Sequence[Page], why: str, needs: Need | None
) -> DraftWanted:
    pending = PendingForge(
        waits_for="document",
        pages=tuple(page.location for page in pages),
        brief=render_brief(pages, order.task, job.id),
    )
    return DraftWanted(pending, f"waits for the API's description: {why}", needs)


def _encode_derived(made: DerivedDocument) -> PendingForge:
    return PendingForge(derived=made.to_json())


def _add_findings(
    made: DerivedDocument, pages: Sequence[Page], more: Sequence[DocumentProblem] = ()
) -> DerivedDocument:
    """With what is to be known of the pages' text beside what it documents."""
    problems = list(more)
    for page in pages:
        found = find_instruction(page.text)
        if found:
            reason = f"it speaks to a model ({found!r}); it was read as material"
            problems.append(DocumentProblem(page.location, "", reason))
    return DerivedDocument(**{**vars(made), "problems": (*made.problems, *problems)})


def _build_not_asked(job: Job, error: AuthorFailed) -> ModelNotAsked:
    how = f"`toolwright jobs {job.id} --resume` asks it again"
    return ModelNotAsked(f"{error} {how}; or read the brief, then `submit`")


def _build_fence(job: Job) -> tuple[str, int]:
    return job.id, job.attempt


def _render_pages(pages: Sequence[Page]) -> str:
    size = sum(len(page.text) for page in pages)
    count = render_count(len(pages), "page")
    return f"documentation for people: {count}, {size:,} characters, {pages[0].location}"
