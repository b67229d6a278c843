"""Ranking of tools for a task, a variant of BM25F with bonuses for names. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import log
from operator import mul

from registry.search.words import SearchQuery, SearchTerm, find_intent, stem_word
from sandbox.bundle.apispec import Access

WEIGHTS = {"name": 4.0, "description": 2.0, "parameters": 1.0, "context": 1.0}
SATURATION = 2.0
"""The weighted frequency at which a word reaches half of its largest weight (k1 of BM25)."""
LENGTH = (0.4, 0.75, 0.75, 0.0)
"""How much longer fields than usual count less, per field (b of BM25F)."""
UNSEEN_TOOLS = 100
"""Tools imagined beside those there are, so that in a registry of one server, which is all about
zones, "zone" still counts beside a word that one tool happens to use.
"""
WEAK = 0.6
"""Weight of a filler word, relative to another word."""
INSTEAD = 0.9
"""Weight of a verb of the same intent, relative to the task's own verb."""
MANY = 0.5
"""Weight of "list" in a name where the task says "every"."""
COVERAGE = 0.1
"""Bonus for containing every word of the task, however weakly."""
WHOLE_NAME = 0.1
"""Bonus where the task contains every word of the name."""
STRAY = 0.08
"""Penalty for each word of a name that the task does not contain."""
FORM = 0.15
"""Bonus where a name's words have the task's own form: `zones` rather than `zone` for "zones"."""
WRITES_UNASKED = 0.5
"""Factor on the score of a tool that writes where the task asks to read."""
READS_ONLY = 0.85
"""Factor on the score of a tool that reads where the task asks to write."""

_FIELDS = tuple(WEIGHTS.values())


@dataclass(frozen=True)
class SearchCandidate:
    """A tool that contains a word of the task. Its texts are lower-case words joined by spaces.

    `words` are those of its name; the other texts are stems. `context` has the name and title of
    its server and the intents of the verbs in its name.
    """

    id: int
    entry: str
    tool: str
    access: Access
    words: str
    name: str
    description: str
    parameters: str
    context: str

    @cached_property
    def fields(self) -> tuple[list[str], ...]:
        """The stems in the fields that WEIGHTS names, in its order."""
        texts = (self.name, self.description, self.parameters, self.context)
        return tuple(text.split() for text in texts)


@dataclass(frozen=True)
class TermStatistics:
    """The number of tools, and of those that contain each word of the task."""

    size: int
    having: Mapping[str, int]

    def weigh_term(self, term: SearchTerm) -> float:
        """The weight of a word by its rarity (as idf); a verb counts as often as its intent."""
        having = max(self.having[word] for word in term.spellings)
        told = log(1 + (self.size - having + UNSEEN_TOOLS + 0.5) / (having + 0.5))
        return told * (WEAK if term.is_weak else 1.0)

    def has_term(self, term: SearchTerm) -> bool:
        return any(self.having[word] for word in term.spellings)

    def select_rarest(self, terms: Iterable[SearchTerm], most: int) -> tuple[SearchTerm, ...]:
        """The `most` rarest of the terms that some tool has."""
        return tuple(sorted(filter(self.has_term, terms), key=self._rank_rarity)[:most])

    def _rank_rarity(self, term: SearchTerm) -> tuple[int, str]:
        return min(filter(None, map(self.having.get, term.spellings))), term.word


class Scorer:
    """Scores the candidates for one task."""

    def __init__(
        self, task: SearchQuery, registry: TermStatistics, candidates: Sequence[SearchCandidate]
    ) -> None:
        self._task = task
        self._weights = [registry.weigh_term(term) for term in task.terms]
        has = map(registry.has_term, task.terms)
        self._known = sum(compress(self._weights, has))
        self._best = sum(self._weights) * (1 + COVERAGE + WHOLE_NAME) * (1 + FORM)
        self._ways = _map_stems(task.terms)
        self._usual = _average_lengths(candidates)

    def score_tool(self, tool: SearchCandidate) -> float:
        """The tool's score relative to the best possible one, 1 at most.

        Negative where the penalty for other words in its name is larger than the rest.
        """
        if not self._known:
            return 0.0
        worths = self._measure_terms(tool)
        evidence = sum(map(mul, self._weights, worths))
        covered = sum(weight for weight, worth in zip(self._weights, worths, strict=True) if worth)
        evidence += COVERAGE * covered * covered / self._known + self._score_name(tool)
        return float(evidence * self._score_form(tool) * self._score_access(tool) / self._best)

    def _measure_terms(self, tool: SearchCandidate) -> list[float]:
        """For each term, from 0 to 1, how strongly the tool contains it or a synonym."""
        said: dict[str, float] = {}
        for field, weight, b, usual in zip(tool.fields, _FIELDS, LENGTH, self._usual, strict=True):
            one = weight / (1 - b + b * len(field) / usual)
            for word in field:
                if word in self._ways:
                    said[word] = said.get(word, 0.0) + one
        worths = [0.0] * len(self._weights)
        for word, often in said.items():
            for number, credit in self._ways[word]:
                worths[number] = max(worths[number], credit * often / (often + SATURATION))
        return worths

    def _score_name(self, tool: SearchCandidate) -> float:
        """The bonus of a name whose words all answer the task, or else the penalty of
        the others.
        """
        known: set[int] = set()
        strays = 0
        for word in tool.words.split():
            ways = self._ways.get(stem_word(word)) or self._ways.get(
                stem_word(find_intent(word) or "")
            )
            known.update(number for number, _ in ways or ())
            strays += not ways
        if strays:
            return -STRAY * strays
        return WHOLE_NAME * sum(self._weights[number] for number in known)

    def _score_form(self, tool: SearchCandidate) -> float:
        name = tool.words.split()
        return 1 + FORM * sum(word in self._task.forms for word in name) / max(len(name), 1)

    def _score_access(self, tool: SearchCandidate) -> float:
        if self._task.access is None or self._task.access == tool.access:
            return 1.0
        return WRITES_UNASKED if tool.access == "write" else READS_ONLY


def rank_candidates(
    task: SearchQuery, registry: TermStatistics, candidates: Sequence[SearchCandidate]
) -> list[tuple[SearchCandidate, float]]:
    """The candidates with their scores from 0 to 1, best first; equals in order of their names."""
    score = Scorer(task, registry, candidates).score_tool
    scored = [(tool, score(tool)) for tool in candidates]
    scored.sort(key=lambda pair: (-pair[1], pair[0].entry, pair[0].tool))
    return [(tool, max(share, 0.0)) for tool, share in scored]


def _map_stems(terms: Sequence[SearchTerm]) -> dict[str, list[tuple[int, float]]]:
    """By stem, the numbers of the terms that it matches, each with its credit from 0 to 1."""
    ways: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, term in enumerate(terms):
        for word in term.spellings:
            credit = 1.0 if word == term.word else INSTEAD if word == term.intent else MANY
            ways[stem_word(word)].append((number, credit))
    return dict(ways)


def _average_lengths(candidates: Sequence[SearchCandidate]) -> list[float]:
    totals = [sum(len(tool.fields[i]) for tool in candidates) for i in range(len(_FIELDS))]
    return [max(total / max(len(candidates), 1), 1.0) for total in totals]
