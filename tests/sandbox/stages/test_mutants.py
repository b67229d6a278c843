"""The mutation check in small: broken servers of two minimal documents do not pass the stages."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from bench.mutants.corpus import calls
from bench.mutants.mutant import mutants
from bench.mutants.operators import OPERATORS
from bench.mutants.originals import originals
from bench.mutants.trial import Court, Trial
from sandbox.bundle.model import Bundle
from tests.sandbox.local import LocalRunner

DOCUMENTS = Path(__file__).parents[2] / "fixtures" / "mutants"
BUNDLES = dict(originals(DOCUMENTS, 2, 20))
SAMPLE = 18
"""Mutants of each bundle, each by another operator: more than thirty operators, in seconds."""


async def tried(at: int, name: str, bundle: Bundle) -> list[Trial]:
    rng = random.Random(name)
    court = Court(name, bundle, LocalRunner(), seed=1)
    assert await court.rejection() == ""
    made = list(mutants(bundle, OPERATORS[at :: len(BUNDLES)], 1, rng))
    return [await court.tried(mutant) for mutant in rng.sample(made, SAMPLE)]


def test_broken_servers_are_rejected_and_their_originals_are_not() -> None:
    trials = [
        trial
        for at, (name, bundle) in enumerate(BUNDLES.items())
        for trial in asyncio.run(tried(at, name, bundle))
    ]
    assert [t for t in trials if t.fate in ("survived", "indistinct")] == []
    assert len({t.operator for t in trials}) >= 30
    assert sum(t.fate in ("static", "mock") for t in trials) >= 30


@pytest.mark.parametrize("name", BUNDLES)
def test_every_mutant_is_another_bundle_that_can_be_made_again(name: str) -> None:
    bundle = BUNDLES[name]
    made = list(mutants(bundle, OPERATORS, 1, random.Random(7)))
    assert all(mutant.bundle != bundle for mutant in made)
    again = list(mutants(bundle, OPERATORS, 1, random.Random(7)))
    assert [mutant.bundle.compute_digest() for mutant in made] == [
        m.bundle.compute_digest() for m in again
    ]
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)


def test_the_corpus_of_calls_is_the_same_for_the_same_seed() -> None:
    bundle = BUNDLES["library"]
    assert calls(bundle, 1) == calls(bundle, 1)
    assert calls(bundle, 1) != calls(bundle, 2)
    assert all(len(corpus) > 60 for corpus in calls(bundle, 1).values())
