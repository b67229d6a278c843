"""The second reading of a forge job: who does it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from forge.acceptance import (
    ask_claims,
    ask_rulings,
    differences,
    read_claims,
    read_rulings,
)
from forge.author import Ask, Author
from forge.errors import AuthorFailed
from orchestrator.errors import Unasked
from orchestrator.orders import Order, Report, Step
from orchestrator.rounds import Rounds
from orchestrator.stages import PROGRESS, stage_line
from registry.records import DraftRow, Job
from sandbox.acceptance import Claim, is_computing, prove_acceptance, settled
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cassette import Cassette
from sandbox.policy import Policy
from sandbox.report import StageReport
from sandbox.runner import Runner, Session

STAGE: Final = "acceptance"
MAX_NOTE = 400
UNUSABLE = frozenset({"malformed", "endless"})
"""Failures of a reader that was asked and cannot answer: asked again it would do the same."""
READ_BY = "read by"
"""What the stage's note says of a reading that was not the draft's own."""
UNREAD = (
    "only its author has read the task: configure OPENAI_MODEL, or hand in `acceptance`, and "
    "another reading is held against it"
)


@dataclass(frozen=True)
class SecondReading:
    """Holds servers against what another reading of their task says of them."""

    rounds: Rounds
    runner: Runner

    async def held(
        self, job: Job, order: Order, bundle: Bundle, row: DraftRow, report: Report
    ) -> StageReport:
        """The acceptance stage: the claims that came with a draft, and those of a model where one
        can be asked.

        Raises Unasked where none answers about what a model wrote; Frozen, SandboxError.
        """
        tools = [tool for tool in bundle.tools if is_computing(tool)]
        if not tools:
            return _skipped("no tool only computes")
        claims = read_claims(row.content.get("acceptance"), order.task, tools)[0]
        try:
            with self.rounds.asking(job):
                found = await self._read(job, order, bundle, claims, report)
        except Unasked as error:
            if row.author != "client":
                raise
            found = _skipped(f"the second reader did not answer: {error}"[:MAX_NOTE])
        report(Step(STAGE, PROGRESS[STAGE], stage_line(found)))
        return found

    async def _read(
        self, job: Job, order: Order, bundle: Bundle, claims: tuple[Claim, ...], report: Report
    ) -> StageReport:
        alive = partial(self.rounds.check, job)
        reader = await self.rounds.authors.reader(order.author, job, bundle.name, alive)
        if reader is None and not claims:
            return _skipped(UNREAD)
        if reader is None:
            found = await _tried(bundle, claims, self.runner)
            return replace(found, note=f"{len(claims)} claims that came with the draft")
        report(Step(STAGE, 0.96, f"{reader.name} reads the task for itself"))
        most = self.rounds.authors.settings.answer_tokens
        return await read_again(reader, self.runner, bundle, order.task, claims, most)


async def read_again(
    reader: Author,
    runner: Runner,
    bundle: Bundle,
    task: str,
    claims: tuple[Claim, ...] = (),
    max_tokens: int = 16_000,
) -> StageReport:
    """The acceptance stage of a bundle by these claims and those of a reader of its task, who is
    asked once more about what differs. Raises AuthorFailed, BudgetSpent, Frozen, SandboxError.
    """
    said = await _answer(reader, ask_claims(task, bundle.tools, max_tokens))
    claims += read_claims(said.get("claims"), task, bundle.tools)[0]
    if not claims:
        return _skipped("a second reading said nothing of it")
    found = await _tried(bundle, claims, runner)
    found = replace(found, note=f"{len(claims)} claims, {READ_BY} {reader.name}")
    if found.passed:
        return found
    differing = differences(found)
    said = await _answer(reader, ask_rulings(task, bundle.tools, differing, max_tokens))
    return settled(found, read_rulings(said.get("verdicts"), task, differing))


async def _tried(bundle: Bundle, claims: tuple[Claim, ...], runner: Runner) -> StageReport:
    return await prove_acceptance(bundle, claims, partial(_opened, bundle, runner))


async def _answer(reader: Author, ask: Ask) -> Mapping[str, Any]:
    """What a reader says; nothing where it cannot keep to the form that was asked for."""
    try:
        return (await reader.write(ask)).content
    except AuthorFailed as error:
        if error.kind not in UNUSABLE:
            raise
        return {}


def _opened(bundle: Bundle, runner: Runner) -> AbstractAsyncContextManager[Session]:
    return runner.open(bundle, Broker(Policy(()), Cassette(())))


def _skipped(note: str) -> StageReport:
    return StageReport(STAGE, "skipped", 0.0, coverage=0.0, note=note)
