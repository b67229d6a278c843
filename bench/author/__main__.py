"""Drafts through the stages: how many good ones are refused, how many bad ones accepted, and what
caught each.

    python -m bench.author [--engine wasm|docker|none] [--each N] [--drafts DIR] [--out FILE]
        [--pending DIR]

Every stored draft that a model wrote is proved as it is; each good one then broken by `--each` of
the operators, as code for the tests that were there, and by itself without those of its own tests
and cases that it fails. So are the bad drafts that models wrote on purpose. The hidden checks of
its task, which no stage sees, say which is good.

Whatever no stage refuses is then held against a second reading of its task, as recorded in
`readings/`: each is a model's answer to that very prompt. A question that has no answer there is
left in the directory `--pending` for a model to answer, and the draft counts as unread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.author.operators import OPERATORS, Given
from bench.author.readings import READINGS, Recorded
from bench.author.task import Task
from bench.author.tasks import TASKS
from bench.author.weakening import weakened
from bench.runners import opened_runner
from forge.draft import Draft, read_draft
from forge.errors import AuthorFailed
from forge.literals import unasked
from forge.mutation import Purpose, bundle_of
from orchestrator.acceptance import read_again
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cassette import Cassette
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.policy import Policy
from sandbox.prove import prove
from sandbox.report import Proof
from sandbox.runner import Runner

DRAFTS = Path(__file__).parent / "drafts"
CALL_SECONDS = 3.0
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


def stored(directory: Path) -> Iterator[tuple[str, Task, Given]]:
    tasks = {task.name: task for task in TASKS}
    for path in sorted(directory.glob("*.json")):
        given = json.loads(path.read_text())
        if given.get("task") in tasks:
            yield path.stem, tasks[given["task"]], given


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
    draft = read_draft({key: given[key] for key in _FIELDS if key in given})
    problems = unasked(task.text, draft) if isinstance(draft, Draft) else draft
    if not isinstance(draft, Draft) or problems:
        return _refused(task, source, change, presented, str(problems[0]), started), None
    bundle = bundle_of(draft, Purpose(task.text, task.name, ""))
    proof = await prove(bundle, runner, examples=draft.examples, suite=draft.tests)
    unread = False
    if proof.passed:
        proof, unread = await _read(forgery, task, bundle, proof)
    seconds = time.perf_counter() - started
    failed = next((report for report in proof.reports if not report.passed), None)
    told = [f.reason for f in failed.findings] if failed else []
    told += [f"{c.case}: {c.evidence}" for c in failed.failures()] if failed else []
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
        report = await read_again(forgery.reader, forgery.runner, bundle, task.text)
    except AuthorFailed:
        return proof, True
    return Proof(proof.bundle_digest, (*proof.reports, report)), False


_FIELDS = ("code", "tools", "cases", "tests", "why")


def _refused(
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


async def measured(engine: str, each: int, directory: Path, reader: Recorded) -> list[Trial]:
    trials: list[Trial] = []
    specifications: dict[str, Given] = {}

    def noted(trial: Trial) -> None:
        trials.append(trial)
        print(_line(trial), flush=True)

    async with opened_runner(engine, spares=2) as opened:
        forgery = Forgery(opened, reader)
        drafts = list(stored(directory))
        for source, task, given in drafts:
            if "wrong" in given:
                continue
            first, _ = await tried(forgery, task, source, WRITTEN, LIVE, given)
            noted(first)
            if first.accepted and first.good:
                specifications[task.name] = given
                for change, broken in _chosen(given, each, len(trials)):
                    async for trial in _both(forgery, task, source, change, broken):
                        noted(trial)
        for source, task, given in drafts:
            if "wrong" in given:
                noted((await tried(forgery, task, source, WRITTEN, ALONE, given))[0])
                if task.name in specifications:
                    kept = {**specifications[task.name], "code": given["code"]}
                    noted((await tried(forgery, task, source, WRITTEN, SPECIFIED, kept))[0])
    return trials


async def _both(forgery: Forgery, task: Task, source: str, change: str, broken: Given) -> Any:
    """A broken draft with the tests that were there before it, and with its own weakened ones."""
    trial, proof = await tried(forgery, task, source, change, SPECIFIED, broken)
    yield trial
    for _ in range(3):
        if proof is None or proof.passed:
            return
        weaker = weakened(broken, proof)
        if weaker is None:
            return
        broken = weaker
        trial, proof = await tried(forgery, task, source, change, ALONE, broken)
        if trial.accepted or trial.caught not in ("suite", "cases"):
            yield trial
            return


def _chosen(given: Given, each: int, turn: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """So many operators' first results, beginning with another operator for each draft."""
    taken = 0
    if not each:
        return
    for at in range(len(OPERATORS)):
        operator = OPERATORS[(turn + at) % len(OPERATORS)]
        broken = next(operator.broken(given), None)
        if broken is not None:
            yield operator.name, broken
            taken += 1
        if taken == each:
            return


def _line(trial: Trial) -> str:
    checks = "not callable" if trial.missed is None else f"{trial.missed} checks missed"
    caught = trial.caught or ("unread" if trial.unread else "")
    return (
        f"{trial.fate:13} {trial.source:24} {trial.change:28} {trial.presented:18} "
        f"{caught:10} {checks:17} {trial.seconds:5.1f} s  {trial.reason[:90]}"
    )


def summary(trials: Sequence[Trial]) -> str:
    lines = [f"{len(trials)} drafts, {len({t.change for t in trials})} kinds of change"]
    for presented in (LIVE, SPECIFIED, ALONE):
        mine = [trial for trial in trials if trial.presented == presented]
        fates = Counter(trial.fate for trial in mine)
        told = ", ".join(f"{fate} {fates[fate]}" for fate in _FATES)
        lines.append(f"  {presented:22} {len(mine):4}: {told}")
    unread = sum(trial.unread for trial in trials)
    lines.append(f"not refused, and no second reading of it is recorded: {unread}")
    caught = Counter(trial.caught for trial in trials if not trial.accepted)
    lines.append("refused by " + ", ".join(f"{stage} {n}" for stage, n in caught.most_common()))
    seconds = [trial.seconds for trial in trials]
    lines.append(f"seconds per round: median {median(seconds):.1f}, longest {max(seconds):.1f}")
    return "\n".join(lines)


_FATES = ("accepted-good", "refused-good", "accepted-bad", "refused-bad")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", default="wasm", choices=("wasm", "docker", "none"))
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--drafts", type=Path, default=DRAFTS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pending", type=Path)
    given = parser.parse_args()
    reader = Recorded(READINGS, given.pending)
    trials = asyncio.run(measured(given.engine, given.each, given.drafts, reader))
    if given.out:
        given.out.write_text("\n".join(json.dumps(asdict(trial)) for trial in trials) + "\n")
    print(summary(trials))


if __name__ == "__main__":
    main()
