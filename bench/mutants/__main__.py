"""Break compiled servers in every way that is known, and see whether the stages notice.

    python -m bench.mutants DIRECTORY [--bundles 24] [--operations 5] [--per 1] [--jobs 2]
        [--seed 1] [--share 1.0] [--operators NAME …] [--engine none|wasm|docker] [--out r.jsonl]

DIRECTORY holds descriptions, or folders with an `index.json` that names each folder's main one.
`--per` mutants are made of every bundle by every operator that applies, and `--share` of them
tried, the same ones for the same seed. Ends with status 1 where
an original is rejected or fewer than 99 of 100 mutants that differ from their original are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.mutants.mutant import Operator, mutants
from bench.mutants.operators import OPERATORS
from bench.mutants.originals import originals
from bench.mutants.table import rate, table
from bench.mutants.trial import Court, Trial
from bench.runners import opened_runner
from sandbox.bundle.model import Bundle

BAR = 0.99


@dataclass(frozen=True)
class Plan:
    """What every job does with its bundle. `operators` are names, all of them where there are
    none; `share` is how many of the mutants (0..1) are tried, by chance.
    """

    operators: tuple[str, ...] = ()
    per: int = 1
    seed: int = 1
    engine: str = "none"
    share: float = 1.0


@dataclass(frozen=True)
class Verdict:
    """One bundle's original and its mutants. `rejected` is why the original does not pass."""

    bundle: str
    tools: int
    rejected: str
    trials: tuple[Trial, ...]


def judged(plan: Plan, named: tuple[str, Bundle]) -> Verdict:
    """Try an original and its mutants."""
    return asyncio.run(_judged(plan, *named))


async def _judged(plan: Plan, name: str, bundle: Bundle) -> Verdict:
    rng = random.Random(f"{plan.seed} {name}")
    async with opened_runner(plan.engine) as runner:
        court = Court(name, bundle, runner, plan.seed)
        rejected = await court.rejection()
        made = list(mutants(bundle, chosen(plan.operators), plan.per, rng))
        kept = [mutant for mutant in made if rng.random() < plan.share]
        trials = [] if rejected else [await court.tried(mutant) for mutant in kept]
    return Verdict(name, len(bundle.tools), rejected, tuple(trials))


def chosen(names: Sequence[str]) -> tuple[Operator, ...]:
    return tuple(o for o in OPERATORS if not names or o.name in names)


def told(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The tables and the rate."""
    trials = [trial for verdict in verdicts for trial in verdict.trials]
    yield table(trials, "operator", lambda trial: trial.operator)
    yield ""
    yield table(trials, "bundle", lambda trial: trial.bundle)
    yield ""
    for trial in trials:
        if trial.fate in ("survived", "indistinct"):
            where = f"{trial.bundle} {trial.tool} {trial.operator} {trial.note}"
            yield f"{trial.fate}: {where}: {trial.why}"
    for verdict in verdicts:
        if verdict.rejected:
            yield f"original rejected: {verdict.bundle}: {verdict.rejected}"
    yield (
        f"{len(verdicts)} originals, {len({t.operator for t in trials})} operators, "
        f"{len(trials)} mutants; of those that differ {rate(trials):.2%} are rejected"
    )


def _noted(verdict: Verdict, out: Path | None) -> None:
    """Tell of one bundle, and append its trials to the file."""
    spent = sum(trial.seconds for trial in verdict.trials)
    counted = f"{len(verdict.trials)} mutants, {rate(verdict.trials):.1%}, {spent:.0f} s"
    print(f"{verdict.bundle}: {verdict.rejected or counted}", file=sys.stderr, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.writelines(json.dumps(asdict(trial)) + "\n" for trial in verdict.trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--bundles", type=int, default=24)
    parser.add_argument("--operations", type=int, default=5)
    parser.add_argument("--per", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--operators", nargs="*", default=[])
    parser.add_argument("--engine", choices=("none", "wasm", "docker"), default="none")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    plan = Plan(tuple(args.operators), args.per, args.seed, args.engine, args.share)
    bundles = originals(args.directory, args.bundles, args.operations)
    verdicts = []
    if args.out:
        args.out.write_text("")
    with ProcessPoolExecutor(args.jobs) as pool:
        for verdict in pool.map(partial(judged, plan), list(bundles)):
            verdicts.append(verdict)
            _noted(verdict, args.out)
    for line in told(verdicts):
        print(line)
    trials = [trial for verdict in verdicts for trial in verdict.trials]
    if rate(trials) < BAR or any(verdict.rejected for verdict in verdicts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
