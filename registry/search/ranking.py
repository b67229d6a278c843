"""How well a tool fits a task: pure, from the texts of the tools that may."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import log
from operator import mul

from registry.stems import stem
from registry.wording import Task, Term, intent
from sandbox.apispec import Access

WEIGHTS = {"name": 4.0, "description": 2.0, "parameters": 1.0, "context": 1.0}
SATURATION = 2.0
"""The weighted frequency at which a word counts half of what it can (k1 of BM25)."""
LENGTH = (0.4, 0.75, 0.75, 0.0)
"""How much longer fields than usual count less, per field (b of BM25F)."""
UNSEEN_TOOLS = 100
"""Tools imagined beside those there are, so that in a registry of one server, which is all about
zones, "zone" still counts beside a word that one tool happens to use."""
WEAK = 0.6
"""What a word that people put around what they ask for is worth, compared with another."""
INSTEAD = 0.9
"""What a verb of the same intent is worth, compared with the task's own."""
MANY = 0.5
"""What "list" is worth in a name for "every" in a task."""
COVERAGE = 0.1
"""What it is worth to have every word of the task, however weakly."""
WHOLE_NAME = 0.1
"""What it is worth that the task has every word of the name."""
STRAY = 0.08
"""What each word of a name costs that the task does not have."""
FORM = 0.15
"""What it is worth that a name's words are the task's own: for "zones" not zone, but zones."""
WRITES_UNASKED = 0.5
"""What is left of a tool that writes where the task wants to read."""
READS_ONLY = 0.85
"""What is left of one that reads where the task wants to write."""

_FIELDS = tuple(WEIGHTS.values())


@dataclass(frozen=True)
class Candidate:
    """A tool that has a word of the task. The texts are words in lower case between spaces.

    `context` has the name and title of its server and the intents of the verbs in its name.
    """

    id: int
    entry: str
    tool: str
    access: Access
    name: str
    description: str
    parameters: str
    context: str

    @cached_property
    def fields(self) -> tuple[list[str], ...]:
        """The words of the fields that WEIGHTS names, in its order."""
        texts = (self.name, self.description, self.parameters, self.context)
        return tuple(text.split() for text in texts)


@dataclass(frozen=True)
class Registry:
    """How many tools there are, and how many of them have each word that was asked about."""

    size: int
    having: Mapping[str, int]

    def weight(self, term: Term) -> float:
        """How much a word tells by its rarity: that of its intent, where it is such a verb."""
        having = max(self.having[word] for word in term.spellings)
        told = log(1 + (self.size - having + UNSEEN_TOOLS + 0.5) / (having + 0.5))
        return told * (WEAK if term.is_weak else 1.0)

    def has(self, term: Term) -> bool:
        return any(self.having[word] for word in term.spellings)

    def rarest(self, terms: Iterable[Term], most: int) -> tuple[Term, ...]:
        """The `most` rarest of the terms that some tool has."""
        return tuple(sorted(filter(self.has, terms), key=self._rarity)[:most])

    def _rarity(self, term: Term) -> tuple[int, str]:
        return min(filter(None, map(self.having.get, term.spellings))), term.word


class Yardstick:
    """What the candidates for one task are measured by."""

    def __init__(self, task: Task, registry: Registry, candidates: Sequence[Candidate]) -> None:
        self._task = task
        self._weights = [registry.weight(term) for term in task.terms]
        has = map(registry.has, task.terms)
        self._known = sum(compress(self._weights, has))
        self._best = sum(self._weights) * (1 + COVERAGE + WHOLE_NAME) * (1 + FORM)
        self._ways = _ways(task.terms)
        self._usual = _usual_lengths(candidates)

    def score(self, tool: Candidate) -> float:
        """The share of what a tool could have that fits the task best, 1 at most.

        Below 0 where a name of many other words says more against it than the rest says for it.
        """
        if not self._known:
            return 0.0
        worths = self._worths(tool)
        evidence = sum(map(mul, self._weights, worths))
        covered = sum(weight for weight, worth in zip(self._weights, worths, strict=True) if worth)
        evidence += COVERAGE * covered * covered / self._known + self._named(tool)
        return float(evidence * self._form(tool) * self._access(tool) / self._best)

    def _worths(self, tool: Candidate) -> list[float]:
        """From 0 to 1 for each term: how strongly the tool has it, or what stands for it."""
        said: dict[str, float] = {}
        for field, weight, b, usual in zip(tool.fields, _FIELDS, LENGTH, self._usual, strict=True):
            one = weight / (1 - b + b * len(field) / usual)
            for word in map(stem, field):
                if word in self._ways:
                    said[word] = said.get(word, 0.0) + one
        worths = [0.0] * len(self._weights)
        for word, often in said.items():
            for number, credit in self._ways[word]:
                worths[number] = max(worths[number], credit * often / (often + SATURATION))
        return worths

    def _named(self, tool: Candidate) -> float:
        """What the tool's name says for it, if all of it was asked for, or else against it."""
        known: set[int] = set()
        strays = 0
        for word in tool.fields[0]:
            ways = self._ways.get(stem(word)) or self._ways.get(stem(intent(word) or ""))
            known.update(number for number, _ in ways or ())
            strays += not ways
        if strays:
            return -STRAY * strays
        return WHOLE_NAME * sum(self._weights[number] for number in known)

    def _form(self, tool: Candidate) -> float:
        name = tool.fields[0]
        return 1 + FORM * sum(word in self._task.forms for word in name) / max(len(name), 1)

    def _access(self, tool: Candidate) -> float:
        if self._task.access is None or self._task.access == tool.access:
            return 1.0
        return WRITES_UNASKED if tool.access == "write" else READS_ONLY


def rank(
    task: Task, registry: Registry, candidates: Sequence[Candidate]
) -> list[tuple[Candidate, float]]:
    """The candidates with their scores from 0 to 1, best first; equals in order of their names."""
    score = Yardstick(task, registry, candidates).score
    scored = [(tool, score(tool)) for tool in candidates]
    scored.sort(key=lambda pair: (-pair[1], pair[0].entry, pair[0].tool))
    return [(tool, max(share, 0.0)) for tool, share in scored]


def _ways(terms: Sequence[Term]) -> dict[str, list[tuple[int, float]]]:
    """By stem: which terms it answers, and how well."""
    ways: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, term in enumerate(terms):
        for word in term.spellings:
            credit = 1.0 if word == term.word else INSTEAD if word == term.intent else MANY
            ways[stem(word)].append((number, credit))
    return dict(ways)


def _usual_lengths(candidates: Sequence[Candidate]) -> list[float]:
    totals = [sum(len(tool.fields[i]) for tool in candidates) for i in range(len(_FIELDS))]
    return [max(total / max(len(candidates), 1), 1.0) for total in totals]
