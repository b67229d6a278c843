"""What a task in words asks for, and the words of identifiers and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from registry.stems import stem
from sandbox.apispec import Access

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
"""Words that people put around what they ask for, and so say less than their rarity does."""

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
_WEAK = frozenset(map(stem, WEAK_WORDS))
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIGITS = re.compile(r"\d+|\D+")


@dataclass(frozen=True)
class Term:
    """A word of a task, and what a tool may say instead.

    `intent` stands for all verbs of the word's intent; `many` is whether the word asks for all
    there are, which names tell by "list".
    """

    word: str
    intent: str | None = None
    many: bool = False

    @property
    def is_weak(self) -> bool:
        return stem(self.word) in _WEAK

    @property
    def spellings(self) -> tuple[str, ...]:
        """What to look for: the word and what may stand for it."""
        instead = (self.intent, LIST if self.many else None)
        return (self.word, *(word for word in instead if word))


@dataclass(frozen=True)
class Task:
    """What is asked for.

    `terms` are of different stems. `forms` are the words as a name would have them: "every zone"
    asks for `zones`. `access` is what its first verb or a question needs, None where
    neither tells.
    """

    terms: tuple[Term, ...]
    forms: frozenset[str]
    access: Access | None


def read_task(text: str) -> Task:
    """What a text asks for. Any text is a task; its words are letters and digits only."""
    said = words(text[:MAX_TASK])
    terms: dict[str, Term] = {}
    for word in said:
        if word not in STOP_WORDS:
            many = word in EACH and LIST not in said
            terms.setdefault(stem(word), Term(word, intent(word), many))
    return Task(tuple(terms.values()), frozenset(_forms(said)), _access(said))


def likeness(one: str, other: str) -> float:
    """From 0 to 1: the share that two texts have in common of the words that tell anything."""
    said, meant = ({stem(term.word) for term in read_task(text).terms} for text in (one, other))
    return len(said & meant) / max(len(said | meant), 1)


def words(phrase: str) -> list[str]:
    """The words of a text or an identifier, in lower case.

    `camelCase`, `snake_case` and paths are split; a word with digits is kept whole and split.
    """
    found = []
    for word in _WORD.findall(phrase):
        for part in _CASE.sub(" ", word).lower().split():
            pieces = _DIGITS.findall(part)
            found += [part, *pieces] if len(pieces) > 1 else [part]
    return found


def intent(word: str) -> str | None:
    """The word that stands for all verbs of this one's intent, as `verbread` for "show"."""
    name = _CLASS.get(word)
    return name and f"verb{name}"


def _forms(said: list[str]) -> Iterable[str]:
    for before, word in zip(["", *said], said, strict=False):
        yield f"{word}s" if before in ("each", "every") and not word.endswith("s") else word


def _access(said: list[str]) -> Access | None:
    """By the first word that is no stop word, where that is a verb that has an intent."""
    first = next((word for word in said if word not in STOP_WORDS), "")
    name = _CLASS.get(first)
    if name:
        return "read" if name in READING else "write"
    return "read" if said and said[0] in QUESTIONS else None
