"""APIs that only people's documentation describes: it is read once, and compiled like any other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from forge.author import Author
from forge.document import Problem
from forge.errors import AuthorFailed, BudgetSpent, NoUsableOperation
from forge.prosedocs.asking import ask_about, brief
from forge.prosedocs.checking import Answered
from forge.prosedocs.claims import is_claims, read_claims
from forge.prosedocs.derived import Derived, derived
from forge.prosedocs.page import Page
from forge.prosedocs.parts import Part, parts_of
from orchestrator.authors import Authors
from orchestrator.authorship import Choice
from orchestrator.errors import DraftWanted, ForgeFailed, ForgeWaits, ProseFound, Unasked
from orchestrator.forging import Forge
from orchestrator.needs import budget_needs, budgets, unfreeze_needs, waiting_needs
from orchestrator.orders import Forged, Order, Report, Step
from registry.errors import JobLost
from registry.jobs import LIVE
from registry.records import Job
from registry.store import Store
from sandbox.errors import Frozen
from sandbox.instructions import instruction

WAITS_FOR = "document"
ANSWER_TOKENS = 12_000
UNUSABLE = ("malformed", "endless")
"""Failures that concern one part of the text: the others are asked about all the same."""


@dataclass(frozen=True)
class _Read:
    answered: Answered
    prompt: str
    model: str


@dataclass(frozen=True)
class _Unread:
    problem: Problem
    error: AuthorFailed


@dataclass(frozen=True)
class Documentation:
    """Carries out forge jobs whose API is documented in prose."""

    store: Store
    forge: Forge
    authors: Authors
    now: Callable[[], float] = time.time

    async def carry_on(self, job: Job, order: Order, found: ProseFound, report: Report) -> Forged:
        """Read the documentation, compile, prove and register. Raises DraftWanted where somebody
        has to hand in a description or to allow something, otherwise as `Forge.forge`.
        """
        pages = await self.forge.descriptions.documentation(found.place, found.pages)
        report(Step("read", 0.08, _told(pages)))
        try:
            made = await self._derived(job, order, pages, report)
        except Unasked as why:
            raise _wanted(job, order, pages, str(why), why.needs) from why
        except Frozen as frozen:
            raise _wanted(job, order, pages, str(frozen), unfreeze_needs()) from frozen
        self.store.keep_job(job.id, job.attempt, _kept(made), self.now())
        return await self.finish(job, order, made, report)

    async def finish(self, job: Job, order: Order, made: Derived, report: Report) -> Forged:
        """Compile, prove and register what was derived. What it waits for it waits for as nobody's
        job: what a model read is paid for.
        """
        try:
            return await self.forge.forge(order, report, _fence(job), made)
        except ForgeWaits as wait:
            if not made.author or made.author == "client":
                raise
            needs = waiting_needs(wait.need, wait.what, wait.how)
            told = {**_kept(made), "waits_for": WAITS_FOR, "diagnosis": "", "brief": str(wait)}
            raise DraftWanted(told, str(wait), needs) from wait

    async def claimed(
        self, job: Job, order: Order, content: Mapping[str, Any], report: Report
    ) -> Forged:
        """As `carry_on` with what the job's client read. Raises ForgeFailed where the documentation
        is not there.
        """
        looked = Order.from_json({**vars(order), "document": ""})
        try:
            await self.forge.descriptions.find(looked, report)
        except ProseFound as found:
            pages = await self.forge.descriptions.documentation(found.place, found.pages)
        else:
            raise ForgeFailed(
                "there is a machine-readable description: `forge` again without yours."
            )
        answers = (Answered(pages[0].location, "", read_claims(content)),)
        text = json.dumps(content, sort_keys=True)
        made = await asyncio.to_thread(derived, pages, answers, "client", (text,))
        return await self.finish(job, order, made, report)

    async def _derived(
        self, job: Job, order: Order, pages: tuple[Page, ...], report: Report
    ) -> Derived:
        """What is read out of the pages. Raises Unasked where somebody else has to read them, and
        they hold no curl commands that would do, or a client wants to.
        """
        choice = self.authors.choice(order.author, job.id, "")
        if choice.writer in ("openai", "sampling"):
            return await self._read(job, order, pages, choice, report)
        if not choice.needs and order.author != "client":
            with suppress(NoUsableOperation):
                made = await asyncio.to_thread(derived, pages, ())
                report(Step("read", 0.1, f"its curl commands are read alone: {choice.told}"))
                unread = Problem(pages[0].location, "", f"only curl commands: {choice.told}")
                return _noted(made, pages, (unread,))
        if choice.writer == "none":
            raise ForgeFailed(
                f"{pages[0].location} is documentation for people without curl commands, and "
                "nobody is to read it. `forge` again without `--author none`."
            )
        raise Unasked(choice.told, choice.needs)

    async def _read(
        self, job: Job, order: Order, pages: tuple[Page, ...], choice: Choice, report: Report
    ) -> Derived:
        """What a model reads out of the pages, part by part. Raises Unasked."""
        parts, count = parts_of(pages)
        report(Step("read", 0.1, f"{choice.told}: the documentation in {len(parts)} parts"))
        try:
            author = await self.authors.asked(choice, job, order.name, partial(self._check, job))
            read = [await self._part(author, part, len(parts), order, report) for part in parts]
        except AuthorFailed as error:
            raise _unasked(job, error) from error
        except BudgetSpent as error:
            needs = budget_needs(job.id, error.what, budgets(self.authors.consents, job.id))
            raise Unasked(f"{error} `{needs['how']}`", needs) from error
        good = [one for one in read if isinstance(one, _Read)]
        failed = [one for one in read if isinstance(one, _Unread)]
        if failed and not good:
            raise _unasked(job, failed[0].error)
        left = [one.problem for one in failed]
        if count > len(parts):
            reason = f"only {len(parts)} of its {count} parts were read"
            left.append(Problem(pages[0].location, "", reason))
        answers, prompts = [one.answered for one in good], [one.prompt for one in good]
        name = f"{author.name} {good[-1].model}".strip() if good else ""
        made = await asyncio.to_thread(derived, pages, answers, name, prompts)
        return _noted(made, pages, left)

    async def _part(
        self, author: Author, part: Part, parts: int, order: Order, report: Report
    ) -> _Read | _Unread:
        """What a model says of one part. Raises AuthorFailed where others need not be tried."""
        most = min(ANSWER_TOKENS, self.authors.settings.answer_tokens)
        ask, pointer = ask_about(part, parts, order.task, most), f"/part/{part.number}"
        try:
            reply = await author.write(ask)
        except AuthorFailed as error:
            if error.kind not in UNUSABLE:
                raise
            return _Unread(Problem(part.location, pointer, f"not read: {error.reason}"), error)
        answered = Answered(part.location, pointer, read_claims(reply.content))
        step = f"part {part.number}: {len(answered.claims.operations)} operations named"
        report(Step("read", 0.1 + 0.1 * part.number / parts, step))
        return _Read(answered, ask.prompt, reply.model)

    def _check(self, job: Job) -> None:
        """Raises JobLost where the job was cancelled or taken over while its model read."""
        current = self.store.job(job.id)
        if current.attempt != job.attempt or current.state not in LIVE:
            raise JobLost(job.id, job.attempt)


def kept(job: Job) -> Derived | None:
    """What was read for a job before its process ended, or before it waited for a person."""
    told = job.result.get("derived") if isinstance(job.result, dict) else None
    return Derived.from_json(told) if isinstance(told, dict) else None


def awaits_document(job: Job) -> bool:
    """Whether a job waits, or waited, for an API description rather than for code."""
    return isinstance(job.result, dict) and job.result.get("waits_for") == WAITS_FOR


def claims_in(document: str) -> Mapping[str, Any] | None:
    """What a client read out of documentation, where that is what it handed in."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return None
    return value if is_claims(value) else None


def _wanted(
    job: Job, order: Order, pages: Sequence[Page], why: str, needs: Mapping[str, str]
) -> DraftWanted:
    told = {
        "waits_for": WAITS_FOR,
        "diagnosis": "",
        "pages": [page.location for page in pages],
        "brief": brief(pages, order.task, job.id),
    }
    return DraftWanted(told, f"waits for the API's description: {why}", needs)


def _kept(made: Derived) -> dict[str, Any]:
    return {"derived": made.to_json()}


def _noted(made: Derived, pages: Sequence[Page], more: Sequence[Problem] = ()) -> Derived:
    """With what is to be known of the pages' text beside what it documents."""
    problems = list(more)
    for page in pages:
        found = instruction(page.text)
        if found:
            reason = f"it speaks to a model ({found!r}); it was read as material"
            problems.append(Problem(page.location, "", reason))
    return Derived(**{**vars(made), "problems": (*made.problems, *problems)})


def _unasked(job: Job, error: AuthorFailed) -> Unasked:
    how = f"`toolwright jobs {job.id} --resume` asks it again"
    return Unasked(f"{error} {how}; or read the brief, then `submit`")


def _fence(job: Job) -> tuple[str, int]:
    return job.id, job.attempt


def _told(pages: Sequence[Page]) -> str:
    size = sum(len(page.text) for page in pages)
    return f"documentation for people: {len(pages)} pages, {size} characters, {pages[0].location}"
