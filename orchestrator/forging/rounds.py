"""The rounds of a forge that a model writes: specification, code, and at most three repairs of
each. What a round costs is kept before it is asked; what it gave is a draft like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from forge.author import Ask, Author, Reply
from forge.brief import Brief
from forge.diagnosis import Diagnosis
from forge.errors import AuthorFailed, BudgetSpent
from forge.prompts import ask_code, ask_repair, ask_specification
from forge.prose import visible
from orchestrator.authors import Authors
from orchestrator.authorship import Choice, Wanted
from orchestrator.composing import DECLINE, MAX_REASON
from orchestrator.errors import Declined, ForgeFailed, SourceMissing, Unasked
from orchestrator.needs import budget_needs, budgets
from orchestrator.orders import MAX_REPAIRS, Order, Report, Step
from registry.drafts import MAX_DRAFTS
from registry.errors import JobLost
from registry.jobs import LIVE
from registry.records import DraftRow, Job
from registry.store import Store
from sandbox import report as stage_report
from sandbox.report import Proof


@dataclass(frozen=True)
class Standing:
    """How far a job's drafts are: whether a specification holds, and how many failed since."""

    specified: bool
    failed: int


def standing(drafts: Sequence[DraftRow]) -> Standing:
    passed = [at for at, row in enumerate(drafts, 1) if row.verdict == "passed"]
    return Standing(bool(passed), len(drafts) - (passed[-1] if passed else 0))


def is_last(drafts: Sequence[DraftRow], wanted: Wanted) -> bool:
    """Whether no model mends a job's newest draft if that fails too."""
    by_hand = "client" in (drafts[-1].author, wanted)
    return by_hand or standing(drafts).failed > MAX_REPAIRS


def told(rows: Sequence[Mapping[str, Any]]) -> str:
    """A stored diagnosis as text."""
    return "\n".join(Diagnosis(**row).text() for row in rows)


def shown(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What a model is shown of a diagnosis: of the cases that are held back from it, one per tool
    and round, so that it mends the cause and not the case.
    """
    seen: set[str] = set()
    kept = []
    for row in rows:
        held = row["stage"] == "cases" and str(row["case"]).startswith("case ")
        if not held or row["where"] not in seen:
            kept.append(row)
        if held:
            seen.add(row["where"])
    return kept


@dataclass(frozen=True)
class Written:
    """What a model gave for the next draft."""

    given: Mapping[str, Any]
    author: str
    model: str


@dataclass(frozen=True)
class Rounds:
    """Asks whoever is chosen for a job's next draft."""

    store: Store
    authors: Authors

    async def write(
        self, job: Job, order: Order, brief: Brief, drafts: Sequence[DraftRow], report: Report
    ) -> Written:
        """The next draft's content. Raises Unasked where no model can be asked or none answered,
        ForgeFailed where there were rounds enough, or the model declines.
        """
        began = drafts[-1].author if drafts else ""
        choice = self.authors.choice(order.author, job.id, began)
        if choice.writer == "none":
            raise SourceMissing
        if choice.writer == "client":
            raise Unasked(_unasked(job, choice, began), choice.needs)
        if standing(drafts).failed > MAX_REPAIRS or len(drafts) >= MAX_DRAFTS:
            raise ForgeFailed(exhausted(job, drafts, f"{len(drafts)} drafts, none of them held"))
        ask = self._ask(brief, drafts)
        report(Step("write", 0.1, f"{choice.told}: {ask.purpose}, {_round(drafts)}"))
        with self.asking(job):
            alive = partial(self.check, job)
            author = await self.authors.asked(choice, job, brief.name, alive)
            reply = await author.write(ask)
        report(Step("write", 0.2, self._told(reply, author)))
        if reply.content.get(DECLINE):
            reason = visible(reply.content[DECLINE], MAX_REASON)
            raise Declined(f"{author.name} {reply.model}".strip(), reason)
        return Written(reply.content, author.name, reply.model)

    @contextmanager
    def asking(self, job: Job) -> Iterator[None]:
        """What keeps a model from answering, as Unasked: the job then waits."""
        try:
            yield
        except AuthorFailed as error:
            how = f"`toolwright jobs {job.id} --resume` asks it again"
            raise Unasked(f"{error} {how}; or read the brief, then `submit`") from error
        except BudgetSpent as error:
            had = budgets(self.authors.consents, job.id)
            needs = budget_needs(job.id, error.what, had)
            raise Unasked(f"{error} `{needs['how']}`", needs) from error

    def _ask(self, brief: Brief, drafts: Sequence[DraftRow]) -> Ask:
        """What is asked next: nothing of it is asked twice (`orchestrator.metering`)."""
        most, now = self.authors.settings.answer_tokens, standing(drafts)
        if now.failed:
            problems = told(shown(drafts[-1].diagnosis))
            return ask_repair(brief, drafts[-1].content, problems, most)
        if now.specified:
            return ask_code(brief, drafts[-1].content, most)
        return ask_specification(brief, most)

    def check(self, job: Job) -> None:
        """Raises JobLost where the job was cancelled or taken over while its model wrote."""
        current = self.store.job(job.id)
        if current.attempt != job.attempt or current.state not in LIVE:
            raise JobLost(job.id, job.attempt)

    def _told(self, reply: Reply, author: Author) -> str:
        cost = self.authors.settings.budget.cost(reply.tokens_in, reply.tokens_out)
        money = f", {cost:.4f} in money" if cost and author.name == "openai" else ""
        return (
            f"{reply.model} gave {', '.join(sorted(map(str, reply.content)))[:200]}: "
            f"{reply.tokens_in} tokens in, {reply.tokens_out} out, {reply.seconds:.1f} s{money}"
        )


def exhausted(job: Job, drafts: Sequence[DraftRow], reason: str) -> str:
    """Why a job ends without a server, and what a person can still do."""
    problems = told(drafts[-1].diagnosis)
    offer = (
        f"`toolwright jobs {job.id} --experimental` registers the last code all the same, every "
        "call of it asking you; "
        if is_admissible(drafts)
        else ""
    )
    return (
        f"{reason}; nothing was registered. The last:\n{problems}\n"
        f"{offer}`forge` again starts anew."
    )


def is_admissible(drafts: Sequence[DraftRow]) -> bool:
    """Whether the last code of a job may be registered as experimental though a stage failed."""
    coded = [row for row in drafts if row.content.get("code")]
    reports = tuple(map(stage_report.from_json, coded[-1].reports)) if coded else ()
    return Proof(coded[-1].digest, reports).admissible if coded else False


def _unasked(job: Job, choice: Choice, began: str) -> str:
    """Why no model is asked; nothing where somebody hands in by their own will."""
    if began == "client":
        return ""
    if began and not choice.needs:
        how = f"`toolwright jobs {job.id} --resume` where it can"
        return f"the model that began cannot be asked here: {how}, or `submit`"
    return choice.told


def _round(drafts: Sequence[DraftRow]) -> str:
    failed = standing(drafts).failed
    return f"repair {failed} of {MAX_REPAIRS}" if failed else "first draft"
