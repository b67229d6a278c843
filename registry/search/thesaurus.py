"""Words that mean nearly the same, for searching without sentence vectors.

The table lies beside this module: for each stem the stems of the words nearest to it by
all-MiniLM-L6-v2 (Apache-2.0; `minilm/NOTICE`), with their cosines in hundredths. It is made by
`python -m bench.thesaurus` from the model's vocabulary, and is read once, when the first task is
searched for.
"""

from __future__ import annotations

import gzip
from functools import cache, lru_cache
from importlib.resources import files

from registry.search.words import MOST_REMEMBERED, stem_word

TABLE = "thesaurus.txt.gz"
STRENGTH = 0.9
"""How far a word of the same meaning counts, beside the task's own word."""
LEAST = 40
"""The least cosine in the table, in hundredths; a word that is no nearer counts a tenth."""


GROUPS = (
    "available free open unoccupied vacant",
    "buy order purchase",
    "book reserve",
    "charge cost fare fee price rate",
    "image photo picture",
    "email mail message",
    "bill invoice",
    "client customer",
    "employee staff worker",
    "begin launch run start",
    "abort cancel halt stop",
    "call phone telephone",
    "flat apartment",
    "film movie",
    "song track tune",
    "repo repository",
    "mooring berth slip",
)
"""Everyday words for one thing that the model does not hold to be near enough."""
ALIKE = 0.7


@lru_cache(MOST_REMEMBERED)
def find_related(stem: str) -> tuple[tuple[str, float], ...]:
    """The stems that mean nearly the same, each with its credit from 0 to 1; best first."""
    found: dict[str, float] = dict.fromkeys(_map_groups().get(stem, ()), ALIKE)
    for pair in _load_table().get(stem, "").split():
        other, _, cosine = pair.partition(":")
        found.setdefault(other, STRENGTH * (int(cosine) - LEAST + 10) / (110 - LEAST))
    return tuple(found.items())


@cache
def _map_groups() -> dict[str, list[str]]:
    groups = [list(map(stem_word, group.split())) for group in GROUPS]
    return {word: [w for w in group if w != word] for group in groups for word in group}


@cache
def _load_table() -> dict[str, str]:
    packed = files("registry.search").joinpath("minilm", TABLE).read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    return dict(line.split(" ", 1) for line in lines)
