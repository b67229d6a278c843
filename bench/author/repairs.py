"""Refused drafts that a model mends from their diagnosis, as recorded: at most three rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.author.operators import Given
from bench.author.readings import Recorded
from bench.author.task import Task
from bench.author.trial import FIELDS, Forgery, Trial, tried
from forge.brief import Brief
from forge.diagnosis import Diagnosis, diagnose
from forge.draft import Draft
from forge.errors import AuthorFailed
from forge.prompts import ask_repair
from orchestrator.composing import composed, with_cases
from orchestrator.orders import MAX_REPAIRS
from orchestrator.rounds import shown, told
from registry.records import DraftRow
from sandbox.report import Proof, to_json
from sandbox.validation import Problem

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
    found = diagnose(proof, str(given["code"]))
    for number in range(1, MAX_REPAIRS + 1):
        problems = told(shown([vars(each) for each in found]))
        try:
            reply = await author.write(ask_repair(brief, given, problems, ANSWER_TOKENS))
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
            proof, found = after, diagnose(after, str(given["code"]))
    return Repair(trial, 0, False)


def _next(given: Given, said: Mapping[str, Any], proof: Proof) -> tuple[Given, tuple[Problem, ...]]:
    """The content of the next draft, as the forge puts it together, and what is wrong with it."""
    reports = tuple(map(to_json, proof.reports))
    before = DraftRow("", 1, "", 0.0, given, "failed", reports)
    answered = {key: said[key] for key in FIELDS if key in said}
    content, draft = composed(with_cases(answered, before), None, (before,))
    return content, () if isinstance(draft, Draft) else draft
