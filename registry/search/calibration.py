"""Probability that the best match is right: a logistic model over what is seen of it.

Fitted by `python -m bench.routing` on public tasks, half of them asked where nothing fits, with
sentence vectors and without; pure functions, no state. The figures stand in
docs/benchmarks.md. It reads the words of tools as evidence and never as orders: a text made to be
found raises its own score, so a probability alone permits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log2
from typing import NamedTuple

from registry.models import ToolMatch, Veto
from registry.search.documents import FoundTool
from registry.search.postings import Postings, WeighedTerm
from registry.search.ranking import TermStatistics
from registry.search.words import SearchQuery, find_intent, split_words, stem_word

POLITE = frozenset(
    "please can could you i we want need would like help me to let us lets kindly the a an my "
    "just also then now hey hi hello am is are do does".split()
)
SENDING = frozenset(
    "send email mail post publish notify message share forward submit tweet".split()
)
CLASSES: Mapping[str, str] = {
    "verbread": "read",
    "verbsearch": "read",
    "verbcreate": "create",
    "verbupdate": "update",
    "verbdelete": "delete",
}
MAX_READ = 2_000
PRESENT = 0.12
"""The worth from which on a tool has a word in full: a description of 200 words still comes to
that, a longer list of words, made to be found by any of them, does not.
"""
_VENDOR = re.compile(r"\b(?:on|via|with|using|at|from|our|my|through) ([A-Z][A-Za-z0-9]+)\b")
"""A name where a task says at whom something is done: "our Cloudflare account", "from GitHub"."""
_NAME = re.compile(r"(?<=[^.!?:\s] )[A-Z][A-Za-z0-9]+(?:\.(?:com|io|org|net|ai|app))?")
COMMON = frozenset(
    "api apis http https url urls json xml csv html id ids dns ip rest get post put delete patch i "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may "
    "june july august september october november december utc gmt english dr mr mrs ms prof "
    "professor doctor".split()
)
"""Words with capitals that name no vendor."""


@dataclass(frozen=True)
class MatchEvidence:
    """What is seen of the best match; see `FEATURES` for what each number is."""

    yard: float
    yard_gap: float
    coverage: float
    rarest_missing: float
    name_coverage: float
    verb_differs: float
    verb_agrees: float
    size: float
    length: float
    unknown: float
    cosine: float = 0.0
    cosine_gap: float = 0.0
    deviations: float = 0.0


class Ranked(NamedTuple):
    """A candidate with its scores: `yard` by words, `cosine` by meaning (None: no vector), `order`
    by words with those of its examples, `fused` of all, by which candidates are ordered.
    """

    slot: int
    tool: FoundTool
    yard: float
    cosine: float | None
    order: float
    fused: float


WORDS_ONLY: Mapping[str, float] = {
    "intercept": -9.6010,
    "yard": 3.4430,
    "yard_gap": 2.1802,
    "coverage": 6.1596,
    "rarest_missing": 2.8391,
    "name_coverage": 1.7769,
    "verb_differs": -1.0922,
    "verb_agrees": 0.3065,
    "size": -0.0225,
    "length": 0.9746,
    "unknown": 2.1314,
}
WITH_MEANING: Mapping[str, float] = {
    "intercept": -7.8423,
    "yard": -2.3176,
    "yard_gap": 3.7774,
    "coverage": 5.0527,
    "rarest_missing": 1.7771,
    "name_coverage": 1.4228,
    "verb_differs": -0.6575,
    "verb_agrees": 0.3137,
    "size": -0.1539,
    "length": 0.5155,
    "unknown": 2.1736,
    "cosine": 4.6845,
    "cosine_gap": -1.0484,
    "deviations": 0.2193,
}
INTERCEPT = "intercept"
MEANING = frozenset({"cosine", "cosine_gap", "deviations"})
"""The evidence that only vectors give."""


def estimate_probability(evidence: MatchEvidence, has_meaning: bool) -> float:
    """P(the best match is right), between 0 and 1."""
    weights = WITH_MEANING if has_meaning else WORDS_ONLY
    told = weights[INTERCEPT] + sum(
        weight * getattr(evidence, name) for name, weight in weights.items() if name != INTERCEPT
    )
    return 1 / (1 + exp(-max(min(told, 50.0), -50.0)))


def collect_evidence(
    query: SearchQuery,
    terms: Sequence[WeighedTerm],
    registry: TermStatistics,
    postings: Postings,
    ranked: Sequence[Ranked],
    spread: tuple[float, float] | None,
) -> MatchEvidence:
    """The evidence for the first of `ranked`, best first; `terms` are the query's with their
    weights, `spread` is mean and deviation of all cosines of the registry.
    """
    first, others = ranked[0], ranked[1:]
    weights = [term.weight for term in terms]
    total = sum(weights) or 1.0
    greatest = log(1 + registry.size + 100)
    had = [
        max([measure_presence(postings, word, first.slot) for word in term.spellings])
        for term in query.terms
    ]
    missing = [weight * (1 - has) for weight, has in zip(weights, had, strict=True)]
    name = [stem_word(word) for word in first.tool.words.split()]
    asked = {stem_word(word) for term in query.terms for word in term.spellings}
    said, does = classify_verb(query.words), classify_tool(first.tool)
    known = said is not None and does is not None
    cosine = first.cosine or 0.0
    best_other = max((each.cosine or 0.0 for each in others), default=0.0)
    return MatchEvidence(
        yard=first.yard,
        yard_gap=first.yard - max((each.yard for each in others), default=0.0),
        coverage=1 - sum(missing) / total,
        rarest_missing=max(missing, default=0.0) / greatest,
        name_coverage=sum(word in asked for word in name) / max(len(name), 1),
        verb_differs=float(known and said != does),
        verb_agrees=float(known and said == does),
        size=float(round(log2(max(registry.size, 1)))),
        length=log(1 + len(query.terms)),
        unknown=1 - sum(map(registry.has_term, query.terms)) / max(len(query.terms), 1),
        cosine=cosine,
        cosine_gap=cosine - best_other,
        deviations=(cosine - spread[0]) / spread[1] if spread else 0.0,
    )


def measure_margin(evidence: MatchEvidence) -> float:
    """How far the first is ahead of the best other, from 0 to 1: the sum of what it is ahead by
    words and by meaning. Two tools with the same texts are 0 apart.
    """
    return min(max(evidence.yard_gap + evidence.cosine_gap, 0.0), 1.0)


def measure_presence(postings: Postings, word: str, slot: int) -> float:
    """How far a tool has a word, from 0 to 1: in full but where it is one of very many."""
    return min(1.0, postings.get_worth(stem_word(word), slot) / PRESENT)


def classify_verb(words: Sequence[str]) -> str | None:
    """The class of a phrase's first word that is not polite: read, create, update, delete, send."""
    first = next((word for word in words if word not in POLITE), "")
    return "send" if first in SENDING else CLASSES.get(find_intent(first) or "")


def classify_tool(tool: FoundTool) -> str | None:
    """The class of the verb in a tool's name; None where it has none or several."""
    found = {classify_verb([word]) for word in tool.words.split()} - {None}
    return found.pop() if len(found) == 1 else None


def find_vetoes(
    task: str, words: Sequence[str], postings: Postings, first: Ranked, match: ToolMatch
) -> tuple[Veto, ...]:
    """Why the first match may be the wrong one, however alike it sounds: the task, whose `words`
    these are, changes something and the tool does something else, or both name vendors and none in
    common.
    """
    vetoes: list[Veto] = []
    said, does = classify_verb(words), classify_tool(first.tool)
    if said not in (None, "read") and does is not None and said != does:
        verb = next(word for word in words if word not in POLITE)
        if not postings.get_worth(stem_word(verb), first.slot):
            vetoes.append("another verb")
    asked = frozenset(name.lower() for name in _VENDOR.findall(task[:MAX_READ])) - COMMON
    told = find_names(match.description) | find_names(f"- {match.title}") if asked else frozenset()
    if told and asked.isdisjoint({*told, *split_words(match.title)}):
        vetoes.append("another vendor")
    return tuple(vetoes)


def find_names(text: str) -> frozenset[str]:
    """Capitalised words inside sentences, in lower case: names of vendors, places and people."""
    return frozenset(name.lower() for name in _NAME.findall(text[:MAX_READ])) - COMMON
