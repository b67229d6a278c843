"""Independent review of a server: claims about its task by an author who saw neither code nor
tests, and the acceptance stage that checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from forge.authors.interface import Author, ModelRequest
from forge.drafts.review import (
    build_claims_request,
    build_rulings_request,
    list_differences,
    parse_claims,
    parse_rulings,
)
from forge.errors import AuthorFailed
from orchestrator.errors import ModelNotAsked
from orchestrator.forging.drafts.rounds import AuthorLoop
from orchestrator.forging.order import ForgeOrder, ForgeStep, Report
from orchestrator.forging.progress import PROGRESS, render_stage
from registry.models import DraftRow, Job
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.session.interface import Runner, Session
from sandbox.stages.acceptance import Claim, apply_rulings, is_readable, prove_acceptance
from sandbox.wire.policy import Policy

STAGE: Final = "acceptance"
MAX_NOTE = 400
UNUSABLE = frozenset({"malformed", "endless"})
"""Failures of a reader that was asked and cannot answer: asked again it would do the same."""
UNREAD = (
    "only its author has read the task: configure OPENAI_MODEL, or hand in `acceptance`, and "
    "another reading is held against it"
)


@dataclass(frozen=True)
class Review:
    """Holds servers against what another reading of their task says of them."""

    rounds: AuthorLoop
    runner: Runner

    async def review_draft(
        self,
        job: Job,
        order: ForgeOrder,
        bundle: Bundle,
        row: DraftRow,
        report: Report,
        examples: tuple[Example, ...] = (),
    ) -> StageReport:
        """The acceptance stage: the claims that came with a draft, and those of a model where one
        can be asked.

        Raises Unasked where none answers about what a model wrote; Frozen, SandboxError.
        """
        tools = [tool for tool in bundle.tools if is_readable(tool)]
        if not tools:
            return _build_skipped_report("every tool calls an operation of its API")
        claims = parse_claims(row.content.get("acceptance"), order.task, tools)[0]
        try:
            with self.rounds.translate_failures(job):
                found = await self._run_review(job, order, bundle, claims, examples, report)
        except ModelNotAsked as error:
            if row.author != "client":
                raise
            found = _build_skipped_report(f"the second reader did not answer: {error}"[:MAX_NOTE])
        report(ForgeStep(STAGE, PROGRESS[STAGE], render_stage(found)))
        return found

    async def _run_review(
        self,
        job: Job,
        order: ForgeOrder,
        bundle: Bundle,
        claims: tuple[Claim, ...],
        examples: tuple[Example, ...],
        report: Report,
    ) -> StageReport:
        alive = partial(self.rounds.jobs.check_held, job.id, job.attempt)
        reader = await self.rounds.authors.open_reader(order.author, job, bundle.name, alive)
        if reader is None and not claims:
            return _build_skipped_report(UNREAD)
        if reader is None:
            found = await _try_claims(bundle, claims, self.runner)
            return replace(found, note=f"{len(claims)} claims that came with the draft")
        report(ForgeStep(STAGE, 0.96, f"{reader.name} reads the task for itself"))
        most = self.rounds.authors.settings.answer_tokens
        return await review_bundle(reader, self.runner, bundle, order.task, claims, most, examples)


async def review_bundle(
    reader: Author,
    runner: Runner,
    bundle: Bundle,
    task: str,
    claims: tuple[Claim, ...] = (),
    max_tokens: int = 16_000,
    examples: tuple[Example, ...] = (),
) -> StageReport:
    """The acceptance stage of a bundle by these claims and those of a reader of its task, who is
    asked once more about what differs. Of the draft's `examples` the reader sees how an API
    answers. Raises AuthorFailed, BudgetSpent, Frozen, SandboxError.
    """
    ask = build_claims_request(task, bundle.tools, max_tokens, examples)
    said = await _ask_reader(reader, ask)
    claims += parse_claims(said.get("claims"), task, bundle.tools)[0]
    if not claims:
        return _build_skipped_report("a second reading said nothing of it")
    found = await _try_claims(bundle, claims, runner)
    note = f"{len(claims)} claims, read by {reader.name}"
    found = replace(found, note=note, code="read_independently")
    if found.passed:
        return found
    differing = list_differences(found)
    said = await _ask_reader(
        reader, build_rulings_request(task, bundle.tools, differing, max_tokens)
    )
    return apply_rulings(found, parse_rulings(said.get("verdicts"), task, differing))


async def _try_claims(bundle: Bundle, claims: tuple[Claim, ...], runner: Runner) -> StageReport:
    return await prove_acceptance(bundle, claims, partial(_open_session, bundle, runner))


async def _ask_reader(reader: Author, ask: ModelRequest) -> Mapping[str, Any]:
    """What a reader says; nothing where it cannot keep to the form that was asked for."""
    try:
        return (await reader.write(ask)).content
    except AuthorFailed as error:
        if error.kind not in UNUSABLE:
            raise
        return {}


def _open_session(bundle: Bundle, runner: Runner) -> AbstractAsyncContextManager[Session]:
    return runner.open(bundle, Broker(Policy(()), Cassette(())))


def _build_skipped_report(note: str) -> StageReport:
    return StageReport(STAGE, "skipped", 0.0, coverage=0.0, note=note)
