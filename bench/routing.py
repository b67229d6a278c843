"""Fits how sure the search is of its first match, and prints what that is worth on other pools.

    python -m bench.routing [--data DIRECTORY] [--queries 160] [--words] [--unseen | --halves]
                          [--cache DIR]

Asks at most `--queries` tasks of each pool and arm of the routing benchmark (see `bench.search`):
with the right tools in the registry and without them. Prints hit@k beside that of plain FTS5, AUROC
of the probability (0 where nothing is found) between tasks whose first match is right and tasks
that nothing fits, each pool judged by a fit of the others, how well a margin tells a right first
match from a wrong one, and the weights of a fit of all, which stand in
`registry/search/calibration.py`. `--words` leaves the vectors out; without it the extra `semantic`
is needed, and `--cache` keeps them for the next run.
`--unseen` asks each pool with what was learned of the others: the matrix that turns its tasks, and
how usual words are. What is shipped has seen all of them. `--halves` asks each task with a matrix
that was fitted on the other half of the tasks of every pool, as in a registry that is known and
tasks that are not.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bench.adapter import POOLS, load_pools
from bench.adapter import fit as fit_adapter
from bench.background import POOLS as USUAL
from bench.background import measure_background
from bench.pools import PlainSearch, Pool, encode_tasks
from bench.search import DATA, Question, questions
from registry.search.background import load_background
from registry.search.calibration import MEANING, MatchEvidence, measure_margin
from registry.search.encoder import SentenceEncoder, load_encoder
from registry.search.index import MAX_RANKED, weigh_task
from registry.search.vectors import turn_vector

ARMS = ("small", "none_small", "full", "none_full", "local", "none_local")
SIZES = ("small", "full", "local")
PENALTY = 1 / 0.3
"""Of the squared weights after standardising (1/C of logistic regression)."""
DEEP = 10


@dataclass(frozen=True)
class Asked:
    """A task, what was found first, and the evidence for it. `plain` is what FTS5 found."""

    pool: str
    size: str
    fits: bool
    gold: tuple[int, ...]
    ranked: tuple[int, ...]
    plain: tuple[int, ...]
    evidence: MatchEvidence

    @property
    def is_right(self) -> bool:
        return self.fits and bool(self.ranked) and self.ranked[0] in self.gold


@dataclass(frozen=True)
class Learned:
    """What a pool is asked with: how its tasks are turned, and how usual words are."""

    turn: Callable[[Any], Any] = turn_vector
    background: Mapping[str, float] = field(default_factory=load_background)


def ask(
    data: Path,
    asked: Sequence[Question],
    encoder: SentenceEncoder | None,
    cache: Path,
    unseen: bool = False,
    halves: bool = False,
) -> list[Asked]:
    """`unseen`: nothing that a pool is asked with was learned from that pool. `halves`: nothing was
    fitted on the task that is asked.
    """
    names = list(dict.fromkeys(each.pool for each in asked))
    answers: list[Asked] = []
    vectors = encode_tasks(encoder, [each.q for each in asked], cache) if encoder else {}
    fitting = [name for name in POOLS if name in names]
    fits = (
        dict(zip(fitting, load_pools(data, fitting, cache), strict=True))
        if unseen and encoder
        else {}
    )
    turns = [_fit_half(data, fitting, cache, half) for half in (0, 1)] if halves else []
    for name in names:
        pool = Pool(data, name, encoder, cache)
        plain = PlainSearch(pool.rows)
        group = [each for each in asked if each.pool == name]
        learned = Learned()
        if unseen:
            others = [other for other in USUAL if other != name and other in names]
            fitted = [known for other, known in fits.items() if other != name]
            turn = partial(_turn, fit_adapter(fitted)) if encoder else turn_vector
            learned = Learned(turn, measure_background(data, others))
        for each in group:
            known = replace(learned, turn=turns[1 - _get_half(each.q)]) if turns else learned
            answers.append(_ask(pool, plain, each, vectors.get(each.q), known))
        print(f"asked {name}: {len(group)}", flush=True)
    return answers


def _get_half(task: str) -> int:
    return crc32(task.encode()) & 1


def _fit_half(data: Path, names: Sequence[str], cache: Path, half: int) -> Callable[[Any], Any]:
    """How tasks are turned by a matrix that was fitted on one half of the tasks of every pool."""
    known = load_pools(data, names, cache, lambda task: _get_half(task) == half)
    return partial(_turn, fit_adapter(list(known)))


def _turn(matrix: Any, vector: Any) -> Any:
    turned = matrix @ vector
    return turned / np.linalg.norm(turned)


def _ask(
    pool: Pool, plain: PlainSearch, question: Question, vector: Any, learned: Learned
) -> Asked:
    without = {pool.get_key(id) for id in question.without}
    postings = pool.index_tools(question.tools)
    likeness = None if vector is None else pool.compare(vector, question.tools, learned.turn)
    most = MAX_RANKED + len(without)
    weighed = weigh_task(question.q, postings, likeness, most, without, learned.background)
    by_fts5 = plain.find(question.q, DEEP + len(without), question.tools)
    return Asked(
        question.pool,
        question.arm.removeprefix("none_"),
        not question.arm.startswith("none_"),
        question.gold,
        tuple(each.tool.id for each in weighed.ranked[:DEEP]),
        tuple(id for id in by_fts5 if id not in question.without)[:DEEP],
        weighed.evidence or MatchEvidence(*[0.0] * len(fields(MatchEvidence))),
    )


AHEAD: dict[str, Callable[[Asked], float]] = {
    "margin": lambda each: measure_margin(each.evidence),
    "yard gap": lambda each: each.evidence.yard_gap,
    "cosine gap": lambda each: each.evidence.cosine_gap,
}
"""What may say that the first of several is the right one."""


@dataclass(frozen=True)
class Fit:
    intercept: float
    weights: Any

    def estimate(self, rows: Any) -> Any:
        return 1 / (1 + np.exp(-(self.intercept + rows @ self.weights)))


def fit(asked: Sequence[Asked], names: Sequence[str]) -> Fit:
    """Logistic regression by Newton's method; each pool and arm weighs the same."""
    asked = [each for each in asked if each.ranked]
    rows, right = _tabulate(asked, names), np.array([float(each.is_right) for each in asked])
    often = Counter((each.pool, each.size) for each in asked)
    worth = np.array([1 / often[each.pool, each.size] for each in asked])
    worth *= len(worth) / worth.sum()
    mean, deviation = rows.mean(0), rows.std(0) + 1e-9
    design = np.hstack([np.ones((len(rows), 1)), (rows - mean) / deviation])
    weights = np.zeros(design.shape[1])
    penalty = np.full(len(weights), PENALTY)
    penalty[0] = 0.0
    for _ in range(50):
        likely = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (worth * (likely - right)) + penalty * weights
        bend = (design * (worth * likely * (1 - likely))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        weights -= step
        if abs(step).max() < 1e-9:
            break
    scaled = weights[1:] / deviation
    return Fit(float(weights[0] - (scaled * mean).sum()), scaled)


def _tabulate(asked: Sequence[Asked], names: Sequence[str]) -> Any:
    return np.array([[getattr(each.evidence, name) for name in names] for each in asked])


def _estimate(fitted: Fit, asked: Sequence[Asked], names: Sequence[str]) -> Any:
    found = np.array([bool(each.ranked) for each in asked])
    return np.where(found, fitted.estimate(_tabulate(asked, names)), 0.0)


def measure_auroc(positive: Any, negative: Any) -> float:
    """Probability that a random positive scores above a random negative; ties count half."""
    both = np.concatenate([positive, negative])
    _, places, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places][: len(positive)]
    most = len(positive) * len(negative)
    return float((ranks.sum() - len(positive) * (len(positive) + 1) / 2) / most)


def print_report(asked: Sequence[Asked], names: Sequence[str]) -> None:
    pools = sorted({each.pool for each in asked})
    told: dict[str, dict[str, float]] = defaultdict(dict)
    for pool in pools:
        own = [each for each in asked if each.pool == pool]
        others = fit([each for each in asked if each.pool != pool], names)
        likely = _estimate(others, own, names)
        for size in SIZES:
            sized = [(p, each) for p, each in zip(likely, own, strict=True) if each.size == size]
            fitting = [each for _, each in sized if each.fits]
            for k in (1, 5, DEEP):
                if fitting:
                    for name, found in (("", "ranked"), (" FTS5", "plain")):
                        hits = [
                            not set(each.gold).isdisjoint(getattr(each, found)[:k])
                            for each in fitting
                        ]
                        told[f"{size} hit@{k}{name}"][pool] = float(np.mean(hits))
            right = np.array([p for p, each in sized if each.is_right])
            none = np.array([p for p, each in sized if not each.fits])
            if len(right) and len(none):
                told[f"{size} AUROC"][pool] = measure_auroc(right, none)
            for what, ahead in AHEAD.items():
                gaps = [np.array([ahead(e) for e in fitting if e.is_right == ok]) for ok in (1, 0)]
                if all(map(len, gaps)):
                    told[f"{size} {what} AUROC"][pool] = measure_auroc(*gaps)
    print("measure".ljust(20), "macro", *(pool.rjust(10) for pool in pools))
    for name, by in told.items():
        shown = (f"{by[pool]:10.3f}" if pool in by else " " * 10 for pool in pools)
        print(name.ljust(20), f"{np.mean(list(by.values())):5.3f}", *shown)
    whole = fit(asked, names)
    print(f'"intercept": {whole.intercept:.4f},')
    for name, weight in zip(names, whole.weights, strict=True):
        print(f'"{name}": {weight:.4f},')
    print_bars(asked, _estimate(whole, asked, names))


def print_bars(asked: Sequence[Asked], likely: Any) -> None:
    """What becomes of the tasks where a tool is taken from a probability on."""
    for bar in (0.1, 0.28, 0.5, 0.7, 0.9):
        for size in ("small", "full"):
            sized = [(p, each) for p, each in zip(likely, asked, strict=True) if each.size == size]
            taken = [(p >= bar, each.is_right) for p, each in sized if each.fits]
            right = np.mean([sure and ok for sure, ok in taken])
            wrong = np.mean([sure and not ok for sure, ok in taken])
            false = np.mean([p >= bar for p, each in sized if not each.fits])
            print(f"P >= {bar} {size}: right {right:.3f} wrong {wrong:.3f} false {false:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--queries", type=int, default=160)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--pools", nargs="*")
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--halves", action="store_true")
    args = parser.parse_args()
    encoder = None if args.words else load_encoder()
    if encoder is None and not args.words:
        parser.error("the extra `semantic` is not installed; --words goes without it")
    if args.halves and (args.words or args.unseen):
        parser.error("--halves is about the vectors of tasks that one fit has not seen")
    asked = questions(args.data, args.queries, ARMS)
    asked = [each for each in asked if not args.pools or each.pool in args.pools]
    names = [
        each.name for each in fields(MatchEvidence) if not args.words or each.name not in MEANING
    ]
    with tempfile.TemporaryDirectory() as scratch:
        cache = args.cache or Path(scratch)
        print_report(ask(args.data, asked, encoder, cache, args.unseen, args.halves), names)


if __name__ == "__main__":
    main()
