"""Ranking of tools for a task, a variant of BM25F with bonuses for names. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import log

from registry.search.documents import FoundTool, WeightedField
from registry.search.postings import Postings, WeighedTerm
from registry.search.thesaurus import find_related
from registry.search.words import SearchQuery, SearchTerm, find_intent, stem_word

NAME = WeightedField(4.0, 0.4, 3)
DESCRIPTION = WeightedField(2.0, 0.75, 20)
PARAMETERS = WeightedField(1.0, 0.75, 25)
CONTEXT = WeightedField(1.0, 0.0, 1)
ANSWER = WeightedField(0.5, 0.75, 25)
"""The fields of a tool. The usual lengths are those of public tools: one registry's own would
change with every server, and with them the order of tools that have nothing to do with it.
"""
UNSEEN_TOOLS = 100
"""Tools imagined beside those there are, so that in a registry of one server, which is all about
zones, "zone" still counts beside a word that one tool happens to use. They have the words that
public tools usually have.
"""
WEAK = 0.6
"""Weight of a filler word, relative to another word."""
INSTEAD = 0.9
"""Weight of a verb of the same intent, relative to the task's own verb."""
MANY = 0.5
"""Weight of "list" in a name where the task says "every"."""
SAME = 0.8
"""From this credit on a word stands for the task's own one; others cover it in part."""
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


@dataclass(frozen=True)
class TermStatistics:
    """The number of tools, of those that contain each stem of the task's words, and the shares of
    usual stems in public tools.
    """

    size: int
    having: Mapping[str, int]
    background: Mapping[str, float]

    def weigh_term(self, term: SearchTerm) -> float:
        """The weight of a word by its rarity (as idf); a verb counts as often as its intent."""
        unseen = UNSEEN_TOOLS * self.background.get(stem_word(term.word), 0.0)
        having = max(self.having[word] for word in term.spellings) + unseen
        told = log(1 + (self.size + UNSEEN_TOOLS - having + 0.5) / (having + 0.5))
        return told * (WEAK if term.is_weak else 1.0)

    def has_term(self, term: SearchTerm) -> bool:
        return any(self.having[word] for word in term.spellings)

    def select_rarest(self, terms: Iterable[SearchTerm], most: int) -> tuple[SearchTerm, ...]:
        """The `most` rarest of the terms; those that no tool has come last."""
        return tuple(sorted(terms, key=self._rank_rarity)[:most])

    def _rank_rarity(self, term: SearchTerm) -> tuple[bool, int, str]:
        counts = list(filter(None, map(self.having.get, term.spellings)))
        return not counts, min(counts, default=0), term.word


def count_terms(
    postings: Postings, query: SearchQuery, background: Mapping[str, float]
) -> TermStatistics:
    """How often the task's words occur."""
    words = dict.fromkeys(word for term in query.terms for word in term.spellings)
    having = {word: postings.count_documents(stem_word(word)) for word in words}
    return TermStatistics(len(postings), having, background)


def weigh_terms(
    query: SearchQuery, registry: TermStatistics, related: bool = True
) -> tuple[WeighedTerm, ...]:
    """The task's words with their weights and with the stems that may stand for each; those that
    mean nearly the same too, if `related`.
    """
    return tuple(
        WeighedTerm(registry.weigh_term(term), tuple(_list_stems(term, related)))
        for term in query.terms
    )


def _list_stems(term: SearchTerm, related: bool) -> Iterable[tuple[str, float]]:
    credits: dict[str, float] = {}
    own = (term.word, *term.english)
    for word in term.spellings:
        credit = 1.0 if word in own else INSTEAD if word == term.intent else MANY
        credits.setdefault(stem_word(word), credit)
    if related and not term.is_weak:
        for word in own:
            for stem, credit in find_related(stem_word(word)):
                credits.setdefault(stem, credit)
    return credits.items()


class Scorer:
    """Scores tools for one task, whose weighed words are `terms`."""

    def __init__(
        self,
        task: SearchQuery,
        terms: Sequence[WeighedTerm],
        known: Sequence[bool],
    ) -> None:
        self._task = task
        self._weights = [term.weight for term in terms]
        self._known = sum(compress(self._weights, known))
        self._best = sum(self._weights) * (1 + COVERAGE + WHOLE_NAME) * (1 + FORM)
        self._ways: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._known_ways: dict[str, Sequence[tuple[int, float]]] = {}
        self._strays: dict[str, float] = {}
        self._names: dict[str, tuple[float, float]] = {}
        for number, term in enumerate(terms):
            for stem, credit in term.stems:
                self._ways[stem].append((number, credit))

    def score_tool(self, tool: FoundTool, evidence: float, covered: float) -> float:
        """The tool's score relative to the best possible one, 1 at most; its sums are those of
        the task's words.

        Negative where the penalty for other words in its name is larger than the rest.
        """
        if not self._known:
            return 0.0
        if tool.words not in self._names:
            name = tool.words.split()
            self._names[tool.words] = self._score_name(name), self._score_form(name)
        bonus, form = self._names[tool.words]
        evidence += COVERAGE * covered * covered / self._known + bonus
        return float(evidence * form * self._score_access(tool) / self._best)

    def _score_name(self, name: Sequence[str]) -> float:
        """The bonus of a name whose words all answer the task, or else the penalty of
        the others.
        """
        for word in name:
            if word not in self._strays:
                self._read_word(word)
        strays = sum([self._strays[word] for word in name])
        if strays >= 1:
            return -STRAY * strays
        known: dict[int, float] = {}
        for word in name:
            for number, credit in self._known_ways[word]:
                if credit > known.get(number, 0.0):
                    known[number] = credit
        return WHOLE_NAME * sum(self._weights[number] * credit for number, credit in known.items())

    def _read_word(self, word: str) -> None:
        """Note which of the task's words a word of a name answers, and how much of it is stray."""
        ways = self._ways.get(stem_word(word)) or self._ways.get(
            stem_word(find_intent(word) or ""), []
        )
        self._known_ways[word] = ways
        self._strays[word] = 1 - max((credit for _, credit in ways), default=0.0)

    def _score_form(self, name: Sequence[str]) -> float:
        if self._task.forms.isdisjoint(name):
            return 1.0
        return 1 + FORM * sum(word in self._task.forms for word in name) / len(name)

    def _score_access(self, tool: FoundTool) -> float:
        if self._task.access is None or self._task.access == tool.access:
            return 1.0
        return WRITES_UNASKED if tool.access == "write" else READS_ONLY
