"""A draft through the stages and past its task's hidden checks."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.author.operators import Given
from bench.author.readings import Recorded
from bench.author.task import Task
from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.literals import find_unasked_literals
from forge.errors import AuthorFailed
from orchestrator.forging.drafts.review import review_bundle
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.session.interface import Runner
from sandbox.stages.prove import prove_bundle
from sandbox.wire.policy import Policy

CALL_SECONDS = 3.0
FIELDS = ("code", "tools", "cases", "tests", "why")
WRITTEN = "as written"
LIVE, SPECIFIED, ALONE = "live", "after a specification", "with its own tests"
"""How a draft is presented: as its author wrote it; as code for tests and cases that were there
before it; and by itself, with tests and cases that it passes.
"""


@dataclass(frozen=True)
class Trial:
    """One draft: whose, what was done to it, and what came of it. `caught` is the stage that
    refused it, `missed` the hidden checks that did not hold (None: it could not be called);
    `unread` says that no second reading of it is recorded.
    """

    task: str
    source: str
    change: str
    presented: str
    accepted: bool
    caught: str
    reason: str
    missed: int | None
    seconds: float
    unread: bool = False

    @property
    def good(self) -> bool:
        return self.missed == 0

    @property
    def fate(self) -> str:
        return f"{'accepted' if self.accepted else 'refused'}-{'good' if self.good else 'bad'}"


@dataclass(frozen=True)
class Forgery:
    """What drafts are proved with: an engine, and a reader of their tasks."""

    runner: Runner
    reader: Recorded


async def tried(
    forgery: Forgery, task: Task, source: str, change: str, presented: str, given: Given
) -> tuple[Trial, Proof | None]:
    """What the stages and the hidden checks say of a draft."""
    runner = forgery.runner
    started = time.perf_counter()
    draft = parse_draft({key: given[key] for key in FIELDS if key in given})
    problems = find_unasked_literals(task.text, draft) if isinstance(draft, Draft) else draft
    if not isinstance(draft, Draft) or problems:
        return refused(task, source, change, presented, str(problems[0]), started), None
    bundle = build_bundle(draft, Purpose(task.text, task.name, ""))
    proof = await prove_bundle(bundle, runner, examples=draft.examples, suite=draft.tests)
    unread = False
    if proof.passed:
        proof, unread = await _read(forgery, task, bundle, proof)
    seconds = time.perf_counter() - started
    failed = next((report for report in proof.reports if not report.passed), None)
    told = [f.reason for f in failed.findings] if failed else []
    told += [f"{c.case}: {c.evidence}" for c in failed.list_failures()] if failed else []
    trial = Trial(
        task.name,
        source,
        change,
        presented,
        proof.passed,
        failed.stage if failed else "",
        (told or [""])[0][:300],
        await missed(runner, bundle, task),
        seconds,
        unread,
    )
    return trial, proof


async def _read(forgery: Forgery, task: Task, bundle: Bundle, proof: Proof) -> tuple[Proof, bool]:
    """The proof with the acceptance stage, or without it where the draft is unread."""
    try:
        report = await review_bundle(forgery.reader, forgery.runner, bundle, task.text)
    except AuthorFailed:
        return proof, True
    return Proof(proof.bundle_digest, (*proof.reports, report)), False


def refused(
    task: Task, source: str, change: str, presented: str, why: str, started: float
) -> Trial:
    seconds = time.perf_counter() - started
    return Trial(task.name, source, change, presented, False, "draft", why[:300], None, seconds)


async def missed(runner: Runner, bundle: Bundle, task: Task) -> int | None:
    """How many of the task's hidden checks do not hold; None where it cannot be called at all."""
    left, wrong, breaks = list(task.checks), 0, 0
    known = {tool.name for tool in bundle.tools}
    while left and breaks < 3:
        try:
            async with runner.open(bundle, Broker(Policy(()), Cassette(()))) as session:
                while left:
                    check = left.pop(0)
                    if check.tool not in known:
                        wrong += 1
                        continue
                    came = await session.call(check.tool, check.arguments, CALL_SECONDS)
                    failure = came.failure.kind if came.failure else ""
                    wrong += not check.holds(came.structured, failure)
        except (CallTimedOut, SessionBroken):
            wrong, breaks = wrong + 1, breaks + 1
        except LoadFailed:
            return None
    return wrong + len(left)
