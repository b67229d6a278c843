"""One mutant before the stages: is it another server at all, and do they notice?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from bench.mutants.corpus import Call, calls
from bench.mutants.mutant import Mutant
from bench.mutants.observation import LIMITS, Difference, Seen, difference, observed
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.session.interface import Limits, Runner, Session
from sandbox.stages.prove import prove_bundle

MORE_SEEDS = 5

Fate = Literal["static", "mock", "survived", "equivalent", "indistinct"]
"""The stage that rejected it; `equivalent`: nothing tells it apart, and it passed; `indistinct`:
nothing tells it apart, and a stage rejected it.
"""


@dataclass(frozen=True)
class Trial:
    """What became of one mutant. `why` is the stage's first evidence, or where a survivor differs
    from its original.
    """

    bundle: str
    operator: str
    tool: str
    note: str
    fate: Fate
    why: str
    seconds: float


class Court:
    """An original, what it does on the corpus, and the trial of its mutants."""

    def __init__(self, name: str, original: Bundle, runner: Runner, seed: int) -> None:
        self.name, self.original = name, original
        self._runner = runner
        self._seed = seed
        self._known: dict[tuple[str, int], tuple[Sequence[Call], tuple[Seen, ...]]] = {}

    async def rejection(self) -> str:
        """Why the stages reject the original; "" where they do not."""
        reasons = _reasons(await self._proof(self.original))
        return next((f"{stage}: {why}" for stage, why in reasons), "")

    async def tried(self, mutant: Mutant) -> Trial:
        started = time.perf_counter()
        proof = await self._proof(mutant.bundle)
        found = await self._difference(mutant, self._seed)
        for seed in range(1, 1 + MORE_SEEDS if not proof.passed else 1):
            # What a stage rejects ought to differ: look further for where.
            found = found or await self._difference(mutant, self._seed + 1_000 * seed)
        fate, why = _fate(proof, found is not None)
        if fate == "survived" and found is not None:
            why = f"{found.where}: {found.original} | {found.mutant}"
        seconds = time.perf_counter() - started
        return Trial(self.name, mutant.operator, mutant.tool, mutant.note, fate, why, seconds)

    async def _difference(self, mutant: Mutant, seed: int) -> Difference | None:
        """The first difference on a corpus of calls of the mutant's tool."""
        key = mutant.tool, seed
        if key not in self._known:
            made = calls(self.original, seed)[mutant.tool]
            self._known[key] = made, await _all(self.original, self._runner, made)
        corpus, known = self._known[key]
        return await difference(self.original, mutant.bundle, self._runner, corpus, known)

    async def _proof(self, bundle: Bundle) -> Proof:
        return await prove_bundle(bundle, _Bounded(self._runner), lanes=1)


class _Bounded:
    """A runner whose calls end sooner than in earnest: nothing here is worth a minute's wait."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AbstractAsyncContextManager[Session]:
        return self._runner.open(bundle, broker, LIMITS)


async def _all(bundle: Bundle, runner: Runner, corpus: Sequence[Call]) -> tuple[Seen, ...]:
    return tuple([seen async for seen in observed(bundle, runner, corpus)])


def _fate(proof: Proof, differs: bool) -> tuple[Fate, str]:
    stage, why = next(_reasons(proof), ("", ""))
    if not differs:
        return ("indistinct", why) if stage else ("equivalent", "")
    if not stage:
        return "survived", ""
    return ("static" if stage == "static" else "mock"), why


def _reasons(proof: Proof) -> Iterator[tuple[str, str]]:
    for report in proof.reports:
        for finding in report.findings:
            yield report.stage, f"{finding.rule}: {finding.reason}"
        for cell in report.list_failures():
            yield report.stage, f"{cell.operation} {cell.case}: {cell.evidence}"
        if not report.passed:
            yield report.stage, report.note
