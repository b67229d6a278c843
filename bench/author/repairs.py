"""Refused drafts that a model mends from their diagnosis, as recorded: at most three rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.author.operators import Given
from bench.author.readings import Recorded
from bench.author.task import Task
from bench.author.trial import FIELDS, Forgery, Trial, tried
from forge.drafts.brief import Brief
from forge.drafts.diagnosis import Diagnosis, diagnose_proof
from forge.drafts.draft import Draft
from forge.drafts.prompts import build_repair_request
from forge.errors import AuthorFailed
from orchestrator.forging.drafts.compose import add_earlier_cases, compose_draft
from orchestrator.forging.drafts.rounds import render_diagnosis, select_shown
from orchestrator.forging.order import MAX_REPAIRS
from registry.models import DraftRow
from sandbox.bundle.report import Proof
from sandbox.schemas.validator import SchemaViolation

ANSWER_TOKENS = 16_000


@dataclass(frozen=True)
class Repair:
    """What became of a refused draft: after how many rounds it was accepted and `good`; `rounds` 0
    where it was not within three, None where a round's answer is not recorded.
    """

    trial: Trial
    rounds: int | None
    good: bool

    def line(self) -> str:
        came = {None: "not recorded", 0: "not repaired"}.get(self.rounds, f"round {self.rounds}")
        told = "" if self.good or not self.rounds else ", and bad"
        return f"repair        {self.trial.source:24} {self.trial.change:28} {came}{told}"


async def repaired(
    forgery: Forgery, author: Recorded, task: Task, trial: Trial, given: Given, proof: Proof
) -> Repair:
    """Mend a draft that the stages refused. The author sees what the forge would show it."""
    brief = Brief(task.text, task.name)
    found = diagnose_proof(proof, str(given["code"]))
    for number in range(1, MAX_REPAIRS + 1):
        problems = render_diagnosis(select_shown(found))
        try:
            reply = await author.write(build_repair_request(brief, given, problems, ANSWER_TOKENS))
        except AuthorFailed:
            return Repair(trial, None, False)
        given, wrong = _next(given, reply.content, proof)
        if wrong:
            found = tuple(Diagnosis("draft", each.where, "", each.reason) for each in wrong)
            continue
        again, after = await tried(
            forgery, task, trial.source, trial.change, trial.presented, given
        )
        if again.unread:
            return Repair(trial, None, False)
        if again.accepted:
            return Repair(trial, number, again.good)
        if after is None:
            found = (Diagnosis("draft", "", "", again.reason),)
        else:
            proof, found = after, diagnose_proof(after, str(given["code"]))
    return Repair(trial, 0, False)


def _next(
    given: Given, said: Mapping[str, Any], proof: Proof
) -> tuple[Given, tuple[SchemaViolation, ...]]:
    """The content of the next draft, as the forge puts it together, and what is wrong with it."""
    before = DraftRow("", 1, "", 0.0, given, "failed", proof.reports)
    answered = {key: said[key] for key in FIELDS if key in said}
    content, draft = compose_draft(add_earlier_cases(answered, before), None, (before,))
    return content, () if isinstance(draft, Draft) else draft
