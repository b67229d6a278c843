"""Words of a task that choose: a value of an enumeration, or yes or no."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.units import SYNONYMS
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, split_words, stem_word

MAX_PLACES = 30
MAX_SPELLING = 80
_WORD = re.compile(r"°[cf]|[^\W_]+")
_NEGATING = frozenset("not no without except excluding exclude non isn't aren't never hide".split())
_QUESTIONS = frozenset("is are was were which what who how".split())
"""Words of a question whose first verb orders nothing: `are there open tickets`."""
_STATES: Mapping[str, frozenset[str]] = {
    "free": frozenset("vacant empty available unoccupied unbooked unreserved".split()),
    "available": frozenset("vacant free unoccupied".split()),
    "open": frozenset("unresolved unsolved unfinished unpaid".split()),
    "overdue": frozenset("late unpaid".split()),
    "unpaid": frozenset("open outstanding".split()),
    "paid": frozenset("settled".split()),
    "closed": frozenset("resolved solved finished".split()),
    "done": frozenset("finished completed closed".split()),
    "high": frozenset("urgent important".split()),
    "low": frozenset("minor unimportant".split()),
    "active": frozenset("enabled".split()),
    "inactive": frozenset("disabled".split()),
    "cancelled": frozenset("canceled".split()),
}
"""Other words for a state, which an API may mean otherwise."""
_OPPOSITES: Mapping[str, frozenset[str]] = {
    "free": frozenset("taken occupied booked reserved".split()),
    "available": frozenset("taken occupied booked reserved unavailable".split()),
    "open": frozenset("closed resolved".split()),
    "paid": frozenset("outstanding overdue".split()),
    "active": frozenset("disabled".split()),
}
_FLAGS = frozenset(
    "include including with show only is has have with get return use enable enabled allow the "
    "including flag".split()
)


class TaskWords:
    """The words of a task, with where each stands by spelling and by stem. `text` is the task in
    lower case with what is used up blanked.

    The task's first verb says what is done and chooses nothing; nor does a word that is negated.
    """

    def __init__(self, text: str, task: str) -> None:
        self.text, self.task = text, task
        self.words = _list_choosing(_WORD.findall(text))
        self.places: dict[str, list[int]] = {}
        for at, word in enumerate(self.words):
            for spelling in {word, stem_word(word)} - {""}:
                self.places.setdefault(spelling, []).append(at)

    def find_row(self, words: list[str]) -> str:
        """The words of the task that are these in a row, by spelling or stem; "" for none."""
        if not words or (len(words) == 1 and len(words[0]) < 2):
            return ""
        if len(words) == 1 and words[0] in STOP_WORDS:
            return self._find_predicate(words[0])
        stems = [stem_word(word) for word in words]
        first = self.places.get(words[0]) or self.places.get(stems[0]) or []
        for at in first[:MAX_PLACES]:
            row = self.words[at : at + len(words)]
            if len(row) == len(words) and all(map(_is_alike, row, words, stems)):
                return " ".join(row)
        return ""

    def _find_predicate(self, word: str) -> str:
        """A word that mostly only joins others (`on`), where a clause says it of something: `which
        lamps are on`, `that is switched on in the kitchen`, or where a task ends with it; "" where
        it does not.
        """
        found = re.search(
            rf"\b(?:is|are|was|were|be|being|switched|turned|currently|still)\s+{word}"
            rf"(?=\s*(?:\Z|[.,;?!])|\s+(?:at|for|in|now|and|right|today)\b)"
            rf"|(?<!not )(?<!n't )(?<!longer )\b{word}(?=\s*(?:please\s*)?[.?!]?\s*\Z)",
            self.text,
        )
        return found[0] if found is not None else ""


def _is_alike(said: str, word: str, stem: str) -> bool:
    return said == word or (said != "" and stem_word(said) == stem)


def _list_choosing(words: list[str]) -> list[str]:
    """The words, with "" in the place of the first verb and of negated ones."""
    for at, word in enumerate(words):
        if word in w.READING_VERBS | w.WRITING_VERBS | w.MAKING:
            words = [*words[:at], "", *words[at + 1 :]]
            break
        if word in _QUESTIONS or (word not in w.POLITE and word not in STOP_WORDS):
            break
    return ["" if at and words[at - 1] in _NEGATING else word for at, word in enumerate(words)]


def find_choice(
    said: TaskWords, parameter: ToolParameter, *, many: bool = False
) -> tuple[Any, str] | None:
    """The one value of an enumeration that the task has words for, with those words; with `many`
    all of them, as a list.

    A value of a parameter that decides what the call does counts only where it is quoted.
    """
    if parameter.is_choosing:
        return _find_quoted(said.task, parameter)
    kept = list_choices(said, parameter)
    if many and kept:
        return [value for value, _ in kept], ", ".join(evidence for _, evidence in kept)
    return kept[0] if len(kept) == 1 else None


def list_choices(said: TaskWords, parameter: ToolParameter) -> list[tuple[Any, str]]:
    """The values of an enumeration that the task has words for, with those words. A word that is a
    value itself stands for no other one.
    """
    own: dict[str, tuple[Any, str]] = {}
    others: dict[str, tuple[Any, str]] = {}
    for value in parameter.enum:
        if isinstance(value, bool) or not isinstance(value, str | int):
            continue
        name = str(value).lower()
        if evidence := said.find_row(split_words(str(value)[:MAX_SPELLING])) or _find_letter(
            said.task, str(value), parameter
        ):
            own[str(value)] = (value, evidence)
        elif evidence := _find_synonym(said, name) or _find_word(said, _STATES.get(name)):
            others[str(value)] = (value, evidence)
    taken = {evidence for _, evidence in own.values()}
    found = own | {name: each for name, each in others.items() if each[1] not in taken}
    return [
        (value, evidence)
        for value, evidence in _drop_shorter(found).values()
        if not parameter.is_sorting or _sorts(said.task, str(value), evidence)
    ]


def _find_letter(task: str, value: str, parameter: ToolParameter) -> str:
    """A value of one letter, which stands behind the parameter's name: `zone A`, `size M`."""
    if len(value) != 1 or not value.isalpha() or not parameter.words:
        return ""
    name = r"[\s_-]?".join(map(re.escape, parameter.words))
    found = re.search(rf"\b(?i:{name})\s+(?:=\s*)?{value}\b(?![\w'.-])", task)
    return found[0] if found is not None else ""


def _sorts(task: str, value: str, evidence: str) -> bool:
    """Whether a task says an order by a word: `due` is a field, and orders nothing in `tickets due
    before …`, but `newest` and `sorted by due` do.
    """
    words = {*split_words(value)}
    directs = bool(words & _DIRECTIONS) or any(word.endswith("est") for word in words)
    by = rf"\b(?:{_SORTED}|by\s+(?:the\s+)?{re.escape(evidence)}\b)"
    return directs or re.search(by, task, re.IGNORECASE) is not None


_DIRECTIONS = frozenset(
    "asc desc ascending descending best hot latest new popular random recent recently relevance "
    "top trending".split()
)
_SORTED = r"(?:sort|sorted|sorting|ordered|ordering|ranked|in\s+order\s+of|order\s+by)\b"


def _find_quoted(task: str, parameter: ToolParameter) -> tuple[Any, str] | None:
    found = [
        (value, f'"{value}"')
        for value in parameter.enum
        if isinstance(value, str) and value and any(f"{q}{value}{q}" in task for q in "\"'`")
    ]
    return found[0] if len(found) == 1 else None


def _find_synonym(said: TaskWords, value: str) -> str:
    return _find_word(said, SYNONYMS.get(value))


def _find_word(said: TaskWords, known: frozenset[str] | None) -> str:
    return next((word for word in sorted(known or ()) if word in said.words), "")


def is_likely(value: Any, evidence: str) -> bool:
    """Whether words stand for a value of an enumeration that an API may mean otherwise."""
    return evidence in _STATES.get(str(value).lower(), frozenset())


def find_state(said: TaskWords, parameter: ToolParameter) -> tuple[bool, str] | None:
    """Yes or no for a flag that is a state, by another word for it or for its opposite: `empty` and
    `taken` for `free`; None where the task has neither, or both.
    """
    name = parameter.words[-1] if parameter.words else ""
    same = _find_word(said, _STATES.get(name))
    other = _find_word(said, _OPPOSITES.get(name))
    return (bool(same), same or other) if bool(same) != bool(other) else None


def _drop_shorter(found: Mapping[str, tuple[Any, str]]) -> dict[str, tuple[Any, str]]:
    """Without values whose words are part of another's: `open` beside `half open`."""
    return {
        name: (value, evidence)
        for name, (value, evidence) in found.items()
        if not any(
            evidence != other and f" {evidence} " in f" {other} " for _, other in found.values()
        )
    }


def find_truth(text: str, task: str, words: tuple[str, ...]) -> tuple[bool, str] | None:
    """Yes or no for a flag that the task names: `including archived`, `without archived`."""
    name = [word for word in words if word not in _FLAGS] or list(words)
    if not name or all(len(word) < 3 for word in name):
        return None
    pattern = r"[\s_-]?".join(map(re.escape, name))
    found = list(
        re.finditer(
            rf"\b(?P<un>in|un|non-?)?{pattern}\b(?:\s*[=:]\s*(?P<said>true|false|yes|no)\b)?", text
        )
    )
    if len(found) != 1:
        return None
    (match,) = found
    if match["said"]:
        return match["said"] in ("true", "yes"), task[match.start() : match.end()]
    before = _WORD.findall(text[max(0, match.start() - 30) : match.start()])[-2:]
    negated = bool(_NEGATING & {*before}) != bool(match["un"])
    start = max(0, match.start() - 12) if negated else match.start()
    return not negated, task[start : match.end()].strip()
