"""Splitting texts and identifiers into words, stemming them, and parsing a task into a query."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

from registry.search.languages import TaskTranslation, has_chinese, read_task
from sandbox.bundle.apispec import Access

MOST_REMEMBERED = 20_000
LONGEST = 64
MAX_TASK = 4_000

STOP_WORDS = frozenset(
    "a about an and any are as at be by can could do does for from give has have hello help how i "
    "if in into is it its let like me my need now of on or our please should so some tell than "
    "that the their them then there these this those to up us want was we what when where which "
    "who will with would you your".split()
)
WEAK_WORDS = frozenset(
    "additionally after also am another anyone anything because been before being both check day "
    "detail details different during ensure example explore family first friend friends going "
    "good had he help her his information interested just know learn looking love more most one "
    "only planning provide really recommend see she since someone suggest test they thing things "
    "today trying understand use user using very wanted way were while work working".split()
)
"""Filler words, which say less about a task than their rarity suggests."""

VERBS = {
    "read": "list show get fetch display retrieve read view see print enumerate",
    "create": "create add new make insert register",
    "update": "update change modify edit set patch rename alter",
    "delete": "delete remove drop destroy erase",
    "search": "search find query lookup",
}
"""Verbs that name one intent: a task that says "show" means the tool that says "list" too."""
READING = ("read", "search")
QUESTIONS = frozenset("what when where which who".split())
EACH = frozenset(("all", "each", "every"))
LIST = "list"

# Not by stem: a setting is not set, a listing may be of houses.
_CLASS = {verb: name for name, verbs in VERBS.items() for verb in verbs.split()}
_ENGLISH = STOP_WORDS | WEAK_WORDS | frozenset(_CLASS) | EACH | QUESTIONS
_WORD = re.compile(r"[^\W_]+")
_LATIN = re.compile(r"[a-z0-9]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGITS = re.compile(r"\d+|\D+")
_DOT = "\u0307"
"""The combining dot that `lower` leaves of a Turkish capital I with a dot, and no letter itself."""


@dataclass(frozen=True)
class SearchTerm:
    """A word of a task, and the synonyms that a tool may use.

    `intent` stands for all verbs of the word's intent; `many` is True for words such as "every",
    which names express by "list". `english` is what a word of another language may mean.
    """

    word: str
    intent: str | None = None
    many: bool = False
    english: tuple[str, ...] = ()

    @cached_property
    def is_weak(self) -> bool:
        return stem_word(self.word) in _list_weak_stems()

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The word and its synonyms, which are searched for."""
        instead = (self.intent, LIST if self.many else None)
        return (self.word, *self.english, *(word for word in instead if word))


@dataclass(frozen=True)
class SearchQuery:
    """A parsed task.

    `terms` have different stems. `forms` are the words as names use them: `zones` for "every
    zone". `access` is that of its first verb or of a question, None where there is neither.
    `words` are all of them, in their order.
    """

    terms: tuple[SearchTerm, ...]
    forms: frozenset[str]
    access: Access | None
    words: Sequence[str]


def parse_query(text: str) -> SearchQuery:
    """Parse a task. Any text is valid; words consist of letters and digits only."""
    said = split_words(text[:MAX_TASK])
    reading = read_foreign(text)
    terms: dict[str, SearchTerm] = {}
    for word in (*said, *(piece for piece in reading.meanings if piece not in said)):
        if word not in STOP_WORDS and word not in reading.silent:
            many = word in EACH and LIST not in said
            term = _build_term(word, many, reading.meanings.get(word, ()))
            terms.setdefault(stem_word(word), term)
    forms = frozenset(_inflect_words(said))
    return SearchQuery(tuple(terms.values()), forms, _detect_access(said), said)


@lru_cache(MOST_REMEMBERED)
def _build_term(word: str, many: bool, english: tuple[str, ...]) -> SearchTerm:
    # Kept with what was found out of it: tasks have most of their words in common.
    intent = next(filter(None, map(find_intent, (word, *english))), None)
    return SearchTerm(word, intent, many, english)


def read_foreign(text: str) -> TaskTranslation:
    """What is known of the words of a task in another language; nothing of an English one."""
    return read_task(_list_whole_words(text), _ENGLISH)


def write_english(text: str) -> str:
    """A task in English as far as its words are known; an English one is returned unchanged."""
    said = _list_whole_words(text)
    reading = read_task(said, _ENGLISH)
    if not reading.meanings:
        return text
    told: dict[str, None] = {}
    for word in said:
        if has_chinese(word):
            told |= dict.fromkeys(_read_pieces(word, reading))
        elif word not in reading.silent:
            told |= dict.fromkeys(reading.meanings.get(word, (word,)))
    return " ".join(told)


def _list_whole_words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_TASK].lower().replace(_DOT, ""))


def _read_pieces(run: str, reading: TaskTranslation) -> Iterable[str]:
    """What the pieces of a run with Chinese in it mean, and its Latin words."""
    for piece, words in reading.meanings.items():
        if piece in run:
            yield from words
    yield from _LATIN.findall(run)


def measure_likeness(one: str, other: str) -> float:
    """The share, from 0 to 1, of stems without stop words that two texts have in common
    (Jaccard).
    """
    said, meant = (
        {stem_word(term.word) for term in parse_query(text).terms} for text in (one, other)
    )
    return len(said & meant) / max(len(said | meant), 1)


@lru_cache(MOST_REMEMBERED)
def stem_word(word: str) -> str:
    """The stem of a lower-case English word; other and very long words are returned unchanged."""
    if len(word) > LONGEST or not (word.isascii() and word.isalpha()):
        return word
    # A stemmer holds the word that it works on, so threads must not share one.
    return str(_load_stemmer()("english", 0).stemWord(word))


@cache
def _load_stemmer() -> Any:
    # Looking at jobs need not import it.
    return importlib.import_module("Stemmer").Stemmer


@cache
def _list_weak_stems() -> frozenset[str]:
    return frozenset(map(stem_word, WEAK_WORDS))


def split_words(phrase: str) -> list[str]:
    """The words of a text or an identifier, in lower case.

    `camelCase`, `snake_case` and paths are split; a word with digits is kept whole and split.
    """
    found = []
    for word in _WORD.findall(phrase):
        if word.isascii() and word.isalpha() and word.islower():
            found.append(word)  # Most are like this, and nothing splits them.
            continue
        for part in _CASE.sub(" ", word).lower().replace(_DOT, "").split():
            pieces = _DIGITS.findall(part)
            found += [part, *pieces] if len(pieces) > 1 else [part]
    return found


def find_intent(word: str) -> str | None:
    """The index word for all verbs of this verb's intent, such as `verbread` for
    "show", or None.
    """
    name = _CLASS.get(word)
    return name and f"verb{name}"


def _inflect_words(said: list[str]) -> Iterable[str]:
    for before, word in zip(["", *said], said, strict=False):
        yield f"{word}s" if before in ("each", "every") and not word.endswith("s") else word


def _detect_access(said: list[str]) -> Access | None:
    """The access of the first word that is no stop word, or of a question; None where unknown."""
    first = next((word for word in said if word not in STOP_WORDS), "")
    name = _CLASS.get(first)
    if name:
        return "read" if name in READING else "write"
    return "read" if said and said[0] in QUESTIONS else None
