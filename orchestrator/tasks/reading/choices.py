"""Words of a task that choose: a value of an enumeration, or yes or no."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.tasks.reading.parameters import Parameter
from orchestrator.tasks.reading.units import SYNONYMS
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, split_words, stem_word

_WORD = re.compile(r"°[cf]|[^\W_]+")
_NEGATING = frozenset("not no without except excluding exclude non isn't aren't never hide".split())
_FLAGS = frozenset(
    "include including with show only is has have with get return use enable enabled allow the "
    "including flag".split()
)


def find_choice(
    text: str, task: str, parameter: Parameter, *, many: bool = False
) -> tuple[Any, str] | None:
    """The one value of an enumeration that the task has words for, with those words; with `many`
    all of them, as a list. `text` is the task in lower case with what is used up blanked.

    The task's first verb says what is done and is none of them. A value of a parameter that decides
    what the call does counts only where it is quoted.
    """
    if parameter.is_choosing:
        return _find_quoted(task, parameter)
    said = _index_words(text)
    found: dict[str, tuple[Any, str]] = {}
    for value in parameter.enum:
        words = split_words(str(value)) if isinstance(value, str | int) else []
        evidence = _find_words(said, words) or _find_synonym(said, text, str(value).lower())
        if evidence and not isinstance(value, bool):
            found[str(value)] = (value, evidence)
    kept = _drop_shorter(found)
    if many and kept:
        return [value for value, _ in kept.values()], ", ".join(e for _, e in kept.values())
    return next(iter(kept.values())) if len(kept) == 1 else None


def _find_quoted(task: str, parameter: Parameter) -> tuple[Any, str] | None:
    found = [
        (value, f'"{value}"')
        for value in parameter.enum
        if isinstance(value, str) and value and re.search(rf"[\"'`]{re.escape(value)}[\"'`]", task)
    ]
    return found[0] if len(found) == 1 else None


def _index_words(text: str) -> list[tuple[str, str]]:
    """(word, stem) of each word, the first verb left out, negated words too."""
    words = _WORD.findall(text)
    for at, word in enumerate(words):
        if word in w.READING_VERBS | w.WRITING_VERBS | w.MAKING:
            words = [*words[:at], "", *words[at + 1 :]]
            break
        if word not in w.POLITE and word not in STOP_WORDS:
            break
    kept = []
    for at, word in enumerate(words):
        negated = at > 0 and words[at - 1] in _NEGATING
        kept.append(("", "") if negated else (word, stem_word(word)))
    return kept


def _find_words(said: list[tuple[str, str]], words: list[str]) -> str:
    """The words of the task that are those of a value, in a row, by spelling or stem."""
    words = [word for word in words if word]
    if not words or (len(words) == 1 and (words[0] in STOP_WORDS or len(words[0]) < 2)):
        return ""
    size = len(words)
    stems = [stem_word(word) for word in words]
    for at in range(len(said) - size + 1):
        row = said[at : at + size]
        if all(word in (s, t) or s == word for (s, t), word in zip(row, words, strict=True)):
            return " ".join(word for word, _ in row)
        if all(t and t == stem for (_, t), stem in zip(row, stems, strict=True)):
            return " ".join(word for word, _ in row)
    return ""


def _find_synonym(said: list[tuple[str, str]], text: str, value: str) -> str:
    known = SYNONYMS.get(value, frozenset())
    return next((word for word, _ in said if word and word in known), "")


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
    found = list(re.finditer(rf"\b{pattern}\b(?:\s*[=:]\s*(?P<said>true|false|yes|no)\b)?", text))
    if len(found) != 1:
        return None
    (match,) = found
    if match["said"]:
        return match["said"] in ("true", "yes"), task[match.start() : match.end()]
    before = _WORD.findall(text[max(0, match.start() - 30) : match.start()])[-2:]
    negated = bool(_NEGATING & {*before}) or text[: match.start()].endswith(("non-", "un"))
    start = max(0, match.start() - 12) if negated else match.start()
    return not negated, task[start : match.end()].strip()
