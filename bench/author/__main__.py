"""Drafts through the stages: how many good ones are refused, how many bad ones accepted, and what
caught each.

    python -m bench.author [--engine wasm|docker|none] [--each N] [--drafts DIR] [--out FILE]
        [--pending DIR]
    python -m bench.author --live [--engine wasm|docker] [--only TASK,…]
        [--through endpoint|sampling]

Every stored draft that a model wrote is proved as it is; each good one then broken by `--each` of
the operators, as code for the tests that were there, and by itself without those of its own tests
and cases that it fails. So are the bad drafts that models wrote on purpose. The hidden checks of
its task, which no stage sees, say which is good.

Whatever no stage refuses is then held against a second reading of its task, as recorded in
`readings/`: each is a model's answer to that very prompt. A question that has no answer there is
left in the directory `--pending` for a model to answer, and the draft counts as unread. The same
holds of repairs: what models wrote, badly on purpose or not, and the first two refused of each good
draft's are mended from their diagnosis, as recorded in `mended/` (for `--each 5`).

`--live` has the tasks forged instead by the endpoint that OPENAI_BASE_URL, OPENAI_MODEL and
OPENAI_API_KEY name, as `toolwright forge` does, and prints what that came to: so a model can be
chosen. It is paid for. With `--through sampling` an MCP client asks the endpoint, as its own model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.author.live import measure_live, summarize_live
from bench.author.operators import OPERATORS, Given
from bench.author.readings import READINGS, REPAIRS, Recorded
from bench.author.repairs import Repair, repaired
from bench.author.task import Task
from bench.author.tasks import TASKS
from bench.author.trial import ALONE, LIVE, SPECIFIED, WRITTEN, Forgery, Trial, tried
from bench.author.weakening import weakened
from bench.runners import opened_runner
from orchestrator.forging.order import MAX_REPAIRS
from sandbox.bundle.report import Proof

DRAFTS = Path(__file__).parent / "drafts"
MENDED = 2
"""Refused drafts of each good one that a model mends."""


def stored(directory: Path) -> Iterator[tuple[str, Task, Given]]:
    tasks = {task.name: task for task in TASKS}
    for path in sorted(directory.glob("*.json")):
        given = json.loads(path.read_text())
        if given.get("task") in tasks:
            yield path.stem, tasks[given["task"]], given


@dataclass
class Measured:
    """All trials of a run, and the repairs of those that were refused."""

    trials: list[Trial]
    repairs: list[Repair]

    def noted(self, trial: Trial) -> None:
        self.trials.append(trial)
        print(_line(trial), flush=True)


async def measured(
    engine: str, each: int, directory: Path, reader: Recorded, author: Recorded
) -> Measured:
    found = Measured([], [])
    specifications: dict[str, Given] = {}
    async with opened_runner(engine, spares=2) as opened:
        forgery = Forgery(opened, reader)
        drafts = list(stored(directory))
        for at, (source, task, given) in enumerate(drafts):
            if "wrong" in given:
                continue
            first, proof = await tried(forgery, task, source, WRITTEN, LIVE, given)
            found.noted(first)
            await _repair(found, forgery, author, task, first, given, proof)
            if first.accepted and first.good:
                specifications[task.name] = given
                await _broken(found, forgery, author, task, source, given, at * each, each)
        for source, task, given in drafts:
            if "wrong" in given:
                trial, proof = await tried(forgery, task, source, WRITTEN, ALONE, given)
                found.noted(trial)
                await _repair(found, forgery, author, task, trial, given, proof)
                if task.name in specifications:
                    kept = {**specifications[task.name], "code": given["code"]}
                    found.noted((await tried(forgery, task, source, WRITTEN, SPECIFIED, kept))[0])
    return found


async def _broken(
    found: Measured,
    forgery: Forgery,
    author: Recorded,
    task: Task,
    source: str,
    given: Given,
    turn: int,
    each: int,
) -> None:
    """A good draft, broken by so many operators; the first that are refused are mended as well."""
    mended = 0
    for change, broken in _chosen(given, each, turn):
        trial, proof = await tried(forgery, task, source, change, SPECIFIED, broken)
        found.noted(trial)
        if mended < MENDED and trial.fate == "refused-bad":
            mended += await _repair(found, forgery, author, task, trial, broken, proof)
        alone = await _alone(forgery, task, source, change, broken, proof)
        if alone is not None:
            found.noted(alone)


async def _repair(
    found: Measured,
    forgery: Forgery,
    author: Recorded,
    task: Task,
    trial: Trial,
    given: Given,
    proof: Proof | None,
) -> bool:
    """Whether it was tried to mend a draft that the stages refused; of one that was broken for it
    only where it shows.
    """
    if proof is None or trial.accepted or (trial.good and trial.presented != LIVE):
        return False
    repair = await repaired(forgery, author, task, trial, given, proof)
    found.repairs.append(repair)
    print(repair.line(), flush=True)
    return True


async def _alone(
    forgery: Forgery, task: Task, source: str, change: str, broken: Given, proof: Proof | None
) -> Trial | None:
    """A broken draft with its own tests, weakened until they agree; None where none are left."""
    for _ in range(3):
        if proof is None or proof.passed:
            return None
        weaker = weakened(broken, proof)
        if weaker is None:
            return None
        broken = weaker
        trial, proof = await tried(forgery, task, source, change, ALONE, broken)
        if trial.accepted or trial.caught not in ("suite", "cases"):
            return trial
    return None


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


def summary(found: Measured) -> str:
    trials = found.trials
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
    known = [repair for repair in found.repairs if repair.rounds is not None]
    mended = Counter(repair.rounds for repair in known if repair.good)
    good = sum(mended[number] for number in range(1, MAX_REPAIRS + 1))
    lines.append(
        f"refused, and mended by a model: {good} of {len(known)} within {MAX_REPAIRS} rounds "
        f"({mended[1]} in the first), {sum(bool(r.rounds) and not r.good for r in known)} bad; "
        f"{len(found.repairs) - len(known)} not recorded"
    )
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
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--through", default="endpoint", choices=("endpoint", "sampling"))
    given = parser.parse_args()
    if given.live:
        names = {*filter(None, given.only.split(","))}
        tasks = [task for task in TASKS if not names or task.name in names]
        print(
            summarize_live(
                asyncio.run(measure_live(given.engine, tasks, os.environ, given.through))
            )
        )
        return
    reader, author = Recorded(READINGS, given.pending), Recorded(REPAIRS, given.pending)
    found = asyncio.run(measured(given.engine, given.each, given.drafts, reader, author))
    if given.out:
        given.out.write_text("\n".join(json.dumps(asdict(trial)) for trial in found.trials) + "\n")
    print(summary(found))


if __name__ == "__main__":
    main()
