"""Ranking of tools for a task, a variant of BM25F with bonuses for names. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from math import log

from registry.search.documents import LETTERS, FoundTool, WeightedField
from registry.search.postings import Postings, Stems, WeighedTerm
from registry.search.thesaurus import find_related
from registry.search.words import (
    MOST_REMEMBERED,
    SearchQuery,
    SearchTerm,
    find_intent,
    stem_word,
)
from sandbox.bundle.apispec import Access

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
        having = max([self.having[word] for word in term.spellings]) + unseen
        told = log(1 + (self.size + UNSEEN_TOOLS - having + 0.5) / (having + 0.5))
        return told * (WEAK if term.is_weak else 1.0)

    def has_term(self, term: SearchTerm) -> bool:
        return any(map(self.having.get, term.spellings))

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
        WeighedTerm(registry.weigh_term(term), _list_stems(term, related)) for term in query.terms
    )


@lru_cache(MOST_REMEMBERED)
def _list_stems(term: SearchTerm, related: bool) -> Stems:
    credits: dict[str, float] = {}
    own = (term.word, *term.english)
    for word in term.spellings:
        credit = 1.0 if word in own else INSTEAD if word == term.intent else MANY
        credits.setdefault(stem_word(word), credit)
    if related and not term.is_weak:
        for word in own:
            for stem, credit in find_related(stem_word(word)):
                credits.setdefault(stem, credit)
    return _share_stems(tuple(credits.items()))


@lru_cache(MOST_REMEMBERED)
def _share_stems(stems: Stems) -> Stems:
    """The same for all words that have these stems."""
    return stems


class Scorer:
    """Scores tools for one task, whose weighed words are `terms`."""

    def __init__(
        self,
        task: SearchQuery,
        terms: Sequence[WeighedTerm],
        known: Sequence[bool],
    ) -> None:
        self._forms = task.forms
        self._weights = [term.weight for term in terms]
        self._known = sum(compress(self._weights, known))
        self._best = sum(self._weights) * (1 + COVERAGE + WHOLE_NAME) * (1 + FORM)
        self._of_access = {access: _compare_access(task.access, access) for access in LETTERS}
        self._ways: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._of_name: dict[str, tuple[float, float]] = {}
        for number, term in enumerate(terms):
            for stem, credit in term.stems:
                self._ways[stem].append((number, credit))

    def score_tools(
        self, tools: Sequence[FoundTool], evidence: Sequence[float], covered: Sequence[float]
    ) -> list[float]:
        """The tools' scores relative to the best possible one, 1 at most; their sums are those of
        the task's words.

        Negative where the penalty for other words in its name is larger than the rest.
        """
        known, best, of_name, of_access = self._known, self._best, self._of_name, self._of_access
        if not known:
            return [0.0] * len(tools)
        scores = []
        for tool, own, cover in zip(tools, evidence, covered, strict=True):
            bonus, form = of_name.get(tool.words) or self._read_name(tool.words)
            own += COVERAGE * cover * cover / known + bonus
            scores.append(own * form * of_access[tool.access] / best)
        return scores

    def _read_name(self, words: str) -> tuple[float, float]:
        name, stems = _split_name(words)
        found = self._of_name[words] = self._score_name(stems), self._score_form(name)
        return found

    def _score_name(self, stems: Sequence[tuple[str, str]]) -> float:
        """The bonus of a name whose words all answer the task, or else the penalty of
        the others.
        """
        strays, answered = 0.0, []
        for stem, intent in stems:
            ways = self._ways.get(stem) or self._ways.get(intent)
            if ways:
                strays += 1 - max([credit for _, credit in ways])
                answered += ways
            else:
                strays += 1
        if strays >= 1:
            return -STRAY * strays
        known: dict[int, float] = {}
        for number, credit in answered:
            if credit > known.get(number, 0.0):
                known[number] = credit
        return WHOLE_NAME * sum(self._weights[number] * credit for number, credit in known.items())

    def _score_form(self, name: Sequence[str]) -> float:
        if self._forms.isdisjoint(name):
            return 1.0
        return 1 + FORM * sum(word in self._forms for word in name) / len(name)


@lru_cache(MOST_REMEMBERED)
def _split_name(words: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The words of a name, and for each its stem and that of all verbs of its intent, "" where it
    is no verb.
    """
    name = tuple(words.split())
    return name, tuple((stem_word(word), stem_word(find_intent(word) or "")) for word in name)


def _compare_access(asked: Access | None, access: Access) -> float:
    """The factor on the score of a tool with this access."""
    if asked is None or asked == access:
        return 1.0
    return WRITES_UNASKED if access == "write" else READS_ONLY
