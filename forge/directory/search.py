"""Search of the directory by a task: which services it may mean, if any.

A word of the task that is in a service's host decides before all words of what it is about. Words
of what it is about are claims of strangers: each counts once, however often it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from forge.directory.service import FIELDS, Directory, Field, Service, load_directory
from forge.directory.words import ALIASES, STOP_WORDS, stem_word

MAX_TASK = 2_000
MAX_WORDS = 40
MAX_FOUND = 20
MOST_JOINED, SHORTEST = 4, 2
Reason = Literal["named", "fits"]
WEIGHTS: Mapping[Field, float] = {"name": 1.0, "title": 1.0, "topic": 0.62}
COMMON, COMMON_BEHIND, COMMON_OWN = 8, 40, 3
"""A host's word that more other services are about names its service only where the task writes it
as a name; the second number is for words behind one such as "at", the third behind "our" or "the".
"""
MANY, CROWDED = 8, 60
"""Of a provider with more services than the first those are meant that are about another word of
the task; of one with more than the second nothing is meant without.
"""
OWN = 0.5
"""What it is worth that the task says the very name that a provider has for the service."""
RARE = 10
"""A word says no more by being rarer than in so many services: what none is about may be a typo."""
QUALIFYING = 0.5
"""The part of its weight that a word behind "by" has, which says how and not what."""
FITTING, FITTING_ALONE = 0.5, 0.6
"""The share of a task's words, each by its rarity, that a service has to be about to fit it; the
second is for one word alone.
"""
MANY_TOPICS = 3
COMPUTING = frozenset(
    "calculate compute concatenate convert count decode decrypt divide encode encrypt explain "
    "factor format generate hash implement merge multiply normalize parse print prove refactor "
    "rename reverse round rewrite simplify slugify solve sort split subtract sum summarize "
    "transform translate trim truncate validate write".split()
)
"""Verbs of tasks that need no service; only by a name one is meant then, and an abbreviation such
as IBAN is what is computed rather than a name, unless it stands behind a word such as "with".
"""
_SIGNATURE = re.compile(r"\b[a-z][a-z0-9_]{0,60}\([a-z0-9_, =]{0,200}\)")
"""A function that a task wants, such as `check_iban(text)`: its name is none of a service's, and
what is told by signatures is to be written.
"""
_OPENERS = frozenset(
    "a an build can could create function i it make me need of please server small that to tool "
    "tools want which with write you".split()
)
"""What a task may begin with before it says what is to be done."""
_CHECKING, _BEFORE_CLAIMS = (
    frozenset({"check", "test", "tell"}),
    frozenset({"if", "that", "whether"}),
)
_BEFORE_NAMES = frozenset("at by from in into of on through to using via with".split())
_BEFORE_OWN = frozenset("his its my our their this your".split())
"""What stands behind one of these is the asker's own: no public service fits it by its words."""
_BEFORE_THINGS = (_BEFORE_OWN - {"my"}) | frozenset("a an the".split())


@cache
def _list_computing_stems() -> frozenset[str]:
    # At the first search: all languages of the stemmer are loaded with it, for 50 ms.
    return frozenset(map(stem_word, COMPUTING))


@dataclass(frozen=True)
class FoundService:
    """A service that a task may mean: `words` of it are in its host, or fit it. `score` orders
    those of one task.
    """

    service: Service
    reason: Reason
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class _Said:
    """A stem of a task: the word, in small letters and as it stands there, whether it is written as
    a name, and the word before it.
    """

    word: str
    raw: str
    stem: str
    as_name: bool
    before: str


def suggest_services(task: str, k: int = 3) -> tuple[FoundService, ...]:
    """The services of the shipped directory that a task may mean, at most `k`, best first; () where
    none fits.
    """
    return find_services(task, k, load_directory())


def find_services(task: str, k: int, directory: Directory) -> tuple[FoundService, ...]:
    """The services that a task may mean, at most `k`, best first: those that it names, and only
    where it names none those that fit it. Pure; work is bounded by the index.
    """
    task = task[:MAX_TASK]
    spoken = _split_cased(_SIGNATURE.sub(" ", task))
    said = _read_words(spoken)
    if not said:
        return ()
    words_said = {word.lower() for word in spoken}
    computing = _SIGNATURE.search(task) is not None or _is_computing(spoken)
    scores, worths = _score_topics(said, directory)
    named = _find_named(spoken, said, directory, computing)
    rank = {n: 10.0 * len(words) + scores.get(n, 0.0) for n, words in named.items()}
    if len(named) > MANY:
        rest = {n: score for n, score in rank.items() if worths.get(n, {}).keys() - named[n].keys()}
        rank = rest or (rank if len(rank) <= CROWDED else {})
    reason: Reason = "named"
    own = any(each.before in _BEFORE_OWN for each in said) or "our" in words_said
    if not named and not computing and not own:
        reason = "fits"
        rank = {n: score for n, score in scores.items() if _fits(score, worths[n], said)}
    for number in rank:
        identity = directory.rows[number].partition("\t")[0]
        rank[number] += OWN * (identity.partition("/")[2].lower() in words_said)
    order = sorted(rank, key=lambda n: (-rank[n], -directory.count_operations(n), n))
    return tuple(
        FoundService(
            directory.read_row(number),
            reason,
            rank[number],
            tuple(named[number].values())
            if reason == "named"
            else tuple(each.word for each in said if each.stem in worths[number]),
        )
        for number in order[: min(k, MAX_FOUND)]
    )


def _score_topics(
    said: Sequence[_Said], directory: Directory
) -> tuple[dict[int, float], dict[int, dict[str, float]]]:
    """How much of a task each service is about, from 0 to 1, and what each stem is worth for it."""
    worths: dict[int, dict[str, float]] = {}
    weights: dict[str, float] = {}
    for each in said:
        about = _read_posting(directory, each.stem)
        spread = len(set().union(*about.values()))
        rarity = math.log(1 + len(directory.rows) / (spread + RARE))
        weights[each.stem] = rarity * (QUALIFYING if each.before == "by" else 1.0)
        for field, numbers in about.items():
            for number in numbers:
                known = worths.setdefault(number, {})
                known[each.stem] = max(known.get(each.stem, 0.0), WEIGHTS[field])
    whole = sum(weights.values())
    scores = {
        number: sum(weights[stem] * worth for stem, worth in known.items()) / whole
        for number, known in worths.items()
    }
    return scores, worths


def _fits(score: float, worths: Mapping[str, float], said: Sequence[_Said]) -> bool:
    """Whether a service is about enough of a task, and by its title about some of it where few
    words of the task are in its description.
    """
    titled = max(worths.values()) > WEIGHTS["topic"] or len(worths) >= MANY_TOPICS
    most = FITTING if len(worths) > 1 else FITTING_ALONE
    return len(said) > 1 and titled and score >= most


def _find_named(
    spoken: Sequence[str], said: Sequence[_Said], directory: Directory, computing: bool
) -> dict[int, dict[str, str]]:
    """The services whose hosts a task names, each with the words by their stems."""
    named: dict[int, dict[str, str]] = {}
    for each in said:
        for stem in dict.fromkeys((each.stem, stem_word(ALIASES.get(each.word, each.word)))):
            about = _read_posting(directory, stem)
            hosts = set(about.get("name", ()))
            others = len({*about.get("title", ()), *about.get("topic", ())} - hosts)
            large = len(hosts) > MANY and not computing
            cased = each.as_name and not (computing and _is_abbreviation(each.raw))
            if cased or large or others <= _find_limit(each.before, computing):
                for number in hosts:
                    named.setdefault(number, {})[each.stem] = each.word
    # "Stack Exchange" is stackexchange.com.
    for start in range(min(len(spoken), MAX_WORDS)):
        for end in range(start + 2, min(start + MOST_JOINED, len(spoken)) + 1):
            words = [word.lower() for word in spoken[start:end]]
            if min(len(words[0]), len(words[-1])) < SHORTEST:
                continue
            joined = _read_posting(directory, stem_word("".join(words)))
            for number in joined.get("name", ()):
                known = named.setdefault(number, {})
                known |= {stem_word(word): word for word in words}
    return named


def _is_computing(spoken: Sequence[str]) -> bool:
    """Whether the first verb of a task is one of computing; "check whether" is one too."""
    words = [word.lower() for word in spoken[:MAX_WORDS]]
    at = next((n for n, word in enumerate(words) if word not in _OPENERS), 0)
    stem, after = stem_word(words[at]), words[at + 1] if at + 1 < len(words) else ""
    return stem in _list_computing_stems() or (words[at] in _CHECKING and after in _BEFORE_CLAIMS)


def _is_abbreviation(word: str) -> bool:
    return len(word) > 1 and word.removesuffix("s").isupper()


def _find_limit(before: str, computing: bool) -> int:
    """How many other services may be about a word that names one, by the word before it; -1 where
    it names none by itself.
    """
    if before in _BEFORE_NAMES:
        return COMMON_BEHIND
    return -1 if computing else COMMON_OWN if before in _BEFORE_THINGS else COMMON


def _read_words(spoken: Sequence[str]) -> tuple[_Said, ...]:
    """The different stems of a task's words without stop words."""
    found: dict[str, _Said] = {}
    titled = all(word[0].isupper() or word.lower() in STOP_WORDS for word in spoken)
    for before, raw in zip(("", *spoken), spoken, strict=False):
        word = raw.lower()
        if word in STOP_WORDS or len(word) < 2:
            continue
        stem = stem_word(word)
        as_name = raw[0].isupper() and bool(before) and not titled
        known = found.get(stem)
        if known is None or (as_name and not known.as_name):
            found[stem] = _Said(word, raw, stem, as_name, before.lower())
        if len(found) >= MAX_WORDS:
            break
    return tuple(found.values())


def _split_cased(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text).split()


def _read_posting(directory: Directory, stem: str) -> dict[Field, list[int]]:
    """The services of a stem by field."""
    line = directory.postings.get(stem, "")
    parts = line.split("\t") if line else []
    return {field: _add_up(part.split()) for field, part in zip(FIELDS, parts, strict=False)}


def _add_up(distances: Iterable[str]) -> list[int]:
    numbers, number = [], 0
    for distance in distances:
        number += int(distance)
        numbers.append(number)
    return numbers
