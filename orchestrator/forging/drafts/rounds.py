"""The author loop of a forge job: a model writes the specification, the code, and at most three
repairs of each. The cost of each question is stored before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from forge.authors.interface import Author, ModelReply, ModelRequest
from forge.drafts.brief import Brief
from forge.drafts.diagnosis import Diagnosis
from forge.drafts.prompts import (
    build_code_request,
    build_repair_request,
    build_specification_request,
)
from forge.errors import AuthorFailed
from forge.text import sanitize_line
from orchestrator.approvals.needs import count_budgets, render_way
from orchestrator.errors import (
    BudgetSpent,
    ForgeDeclined,
    ForgeFailed,
    ModelNotAsked,
    SourceMissing,
)
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.authors.choice import AuthorChoice, Wanted
from orchestrator.forging.drafts.compose import DECLINE, MAX_REASON
from orchestrator.forging.order import MAX_REPAIRS, ForgeOrder, ForgeStep, Report
from registry.jobs.drafts import MAX_DRAFTS
from registry.jobs.jobs import JobTable
from registry.models import DraftRow, Job
from registry.needs import BudgetNeed
from sandbox.bundle.report import Proof


@dataclass(frozen=True)
class DraftProgress:
    """How far a job's drafts are: whether a specification holds, and how many failed since."""

    specified: bool
    failed: int


def find_progress(drafts: Sequence[DraftRow]) -> DraftProgress:
    passed = [at for at, row in enumerate(drafts, 1) if row.verdict == "passed"]
    return DraftProgress(bool(passed), len(drafts) - (passed[-1] if passed else 0))


def is_last_draft(drafts: Sequence[DraftRow], wanted: Wanted) -> bool:
    """Whether no model mends a job's newest draft if that fails too."""
    by_hand = "client" in (drafts[-1].author, wanted)
    return by_hand or find_progress(drafts).failed > MAX_REPAIRS


def diagnoses(row: DraftRow) -> tuple[Diagnosis, ...]:
    """What a draft's author was told, out of its row."""
    return tuple(Diagnosis(**stored) for stored in row.diagnosis)


def render_diagnosis(found: Iterable[Diagnosis]) -> str:
    """A diagnosis as text."""
    return "\n".join(each.render_text() for each in found)


def select_shown(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    """What a model is shown of a diagnosis: of the cases that are held back from it, one per tool
    and round, so that it mends the cause and not the case.
    """
    seen: set[str] = set()
    kept = []
    for each in found:
        held = each.stage == "cases" and each.example > 0
        if not held or each.where not in seen:
            kept.append(each)
        if held:
            seen.add(each.where)
    return kept


@dataclass(frozen=True)
class WrittenDraft:
    """What a model gave for the next draft."""

    given: Mapping[str, Any]
    author: str
    model: str


@dataclass(frozen=True)
class AuthorLoop:
    """Asks whoever is chosen for a job's next draft."""

    jobs: JobTable
    authors: Authors

    async def write_draft(
        self, job: Job, order: ForgeOrder, brief: Brief, drafts: Sequence[DraftRow], report: Report
    ) -> WrittenDraft:
        """The next draft's content. Raises Unasked where no model can be asked or none answered,
        ForgeFailed where there were rounds enough, or the model declines.
        """
        began = drafts[-1].author if drafts else ""
        choice = self.authors.choose_for_job(order.author, job.id, began)
        if choice.writer == "none":
            raise SourceMissing
        if choice.writer == "client":
            raise ModelNotAsked(_explain_not_asked(job, choice, began), choice.needs)
        if find_progress(drafts).failed > MAX_REPAIRS or len(drafts) >= MAX_DRAFTS:
            raise ForgeFailed(
                render_exhausted(job, drafts, f"{len(drafts)} drafts, none of them held")
            )
        ask = self._build_request(brief, drafts)
        report(ForgeStep("write", 0.1, f"{choice.told}: {ask.purpose}, {_render_round(drafts)}"))
        with self.translate_failures(job):
            alive = partial(self.jobs.check_held, job.id, job.attempt)
            author = await self.authors.open_author(choice, job, brief.name, alive)
            reply = await author.write(ask)
        report(ForgeStep("write", 0.2, self._render_reply(reply, author)))
        if reply.content.get(DECLINE):
            reason = sanitize_line(reply.content[DECLINE], MAX_REASON)
            raise ForgeDeclined(f"{author.name} {reply.model}".strip(), reason)
        return WrittenDraft(reply.content, author.name, reply.model)

    @contextmanager
    def translate_failures(self, job: Job) -> Iterator[None]:
        """What keeps a model from answering, as Unasked: the job then waits."""
        try:
            yield
        except AuthorFailed as error:
            how = f"`toolwright jobs {job.id} --resume` asks it again"
            raise ModelNotAsked(f"{error} {how}; or read the brief, then `submit`") from error
        except BudgetSpent as error:
            had = count_budgets(self.authors.consents, job.id)
            need = BudgetNeed(error.line, had)
            raise ModelNotAsked(f"{error} `{render_way(need, job.id)}`", need) from error

    def _build_request(self, brief: Brief, drafts: Sequence[DraftRow]) -> ModelRequest:
        """What is asked next: nothing of it is asked twice
        (`orchestrator.forging.authors.metering`).
        """
        most, now = self.authors.settings.answer_tokens, find_progress(drafts)
        if now.failed:
            problems = render_diagnosis(select_shown(diagnoses(drafts[-1])))
            return build_repair_request(brief, drafts[-1].content, problems, most)
        if now.specified:
            return build_code_request(brief, drafts[-1].content, most)
        return build_specification_request(brief, most)

    def _render_reply(self, reply: ModelReply, author: Author) -> str:
        cost = self.authors.settings.budget.compute_cost(
            reply.tokens_in,
            reply.tokens_out,
            reply.model or self.authors.settings.model,
            reply.cached,
        )
        cached = f" ({reply.cached} of them from its cache)" if reply.cached else ""
        money = f", {cost:.4f} in money" if cost and author.name == "openai" else ""
        return (
            f"{reply.model} gave {', '.join(sorted(map(str, reply.content)))[:200]}: "
            f"{reply.tokens_in} tokens in{cached}, {reply.tokens_out} out, "
            f"{reply.seconds:.1f} s{money}"
        )


def render_exhausted(job: Job, drafts: Sequence[DraftRow], reason: str) -> str:
    """Why a job ends without a server, and what a person can still do."""
    problems = render_diagnosis(diagnoses(drafts[-1]))
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
    return bool(coded) and Proof(coded[-1].digest, coded[-1].reports).admissible


def _explain_not_asked(job: Job, choice: AuthorChoice, began: str) -> str:
    """Why no model is asked; nothing where somebody hands in by their own will."""
    if began == "client":
        return ""
    if began and not choice.needs:
        how = f"`toolwright jobs {job.id} --resume` where it can"
        return f"the model that began cannot be asked here: {how}, or `submit`"
    return choice.told


def _render_round(drafts: Sequence[DraftRow]) -> str:
    failed = find_progress(drafts).failed
    return f"repair {failed} of {MAX_REPAIRS}" if failed else "first draft"
