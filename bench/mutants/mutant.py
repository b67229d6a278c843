"""Mutants and the operators that make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bench.mutants.site import Site, sites
from sandbox.bundle.model import Bundle

Changed = Iterator[tuple[str, Callable[[], Bundle]]]
"""What is changed, in words, and what makes the bundle with that change."""
Change = Callable[[Site], Changed]

MAX_CHOICES = 60


@dataclass(frozen=True)
class Operator:
    """One way to break a tool. `apply` yields every mutant that the operator knows of a site."""

    name: str
    what: str
    apply: Change


@dataclass(frozen=True)
class Mutant:
    """`tool` is the one that was broken, `note` where."""

    operator: str
    tool: str
    note: str
    bundle: Bundle


def operator(change: Change) -> Operator:
    """The operator of a function: its name, and its docstring's first line."""
    what = (change.__doc__ or "").partition("\n")[0].rstrip(".")
    return Operator(change.__name__.strip("_").replace("_", "-"), what, change)


def mutants(
    bundle: Bundle, operators: Sequence[Operator], per_operator: int, rng: random.Random
) -> Iterator[Mutant]:
    """Up to `per_operator` mutants of every operator, each at a site of chance."""
    places = sites(bundle)
    for one in operators:
        found = [
            (site.tool.name, note, make)
            for site in places
            for note, make in islice(one.apply(site), MAX_CHOICES)
        ]
        for tool, note, make in rng.sample(found, min(per_operator, len(found))):
            yield Mutant(one.name, tool, note, make())
