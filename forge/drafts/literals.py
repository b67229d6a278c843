"""Literal values in a task, such as `IIII` or `2026-02-30`, which the tests or cases have to use.

An author who misreads a rule writes tests that agree with the mistake; values of the task's own
text are independent of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from forge.drafts.draft import Draft
from sandbox.bundle.example import to_json
from sandbox.schemas.validator import SchemaViolation

MAX_LITERALS = 20
MAX_TASK = 20_000
_LISTED = re.compile(
    r"\(([^()]{1,200})\)|`([^`]{1,60})`|\b(?:such as|like|e\.g\.)\s([^.;(]{1,120})"
)
_WORD = re.compile(r"[^\s,;()\[\]{}\"'`]{2,40}")
_MIXED = re.compile(r"(?=.*\d)(?=.*[A-Za-z_])[A-Za-z0-9_.:/+-]+\Z")
_DATE = re.compile(r"\d{1,4}-\d{1,2}-\d{1,4}\Z")
_CAPITALS = re.compile(r"[A-Z]{2,12}\Z")
_FIGURES = re.compile(r"(?=.*\d)[\w.:+-]+\Z")
_NUMBER = re.compile(r"[+-]?\d+(?:[.-]\d+)?\Z")
"""Also a range, or a name such as `97-10`."""
_NAMES = re.compile(
    r"(?:RFC|ISO|UTF|SHA|MD|BASE|HTTP|V|MP|H|WIN|ASCII|NF|E)-?\d+[a-z]?\Z|https?:.*\Z",
    re.IGNORECASE,
)
"""Words with digits that name a standard or a place, and are no data."""
_TERMS = frozenset(
    "AND API ASCII BOM CLI CSV DNS GET GMT HEAD HTML HTTP HTTPS IBAN ID IDS IF IP ISO JSON MAC MOD "
    "NAN NFC NFD NFKC NOT NULL OK OR PATCH PDF POST PUT RFC SQL TCP TLS TSV UDP URI URL UTC UTF "
    "UUID XML YAML".split()
)


def find_literals(task: str) -> tuple[str, ...]:
    """Return the values in a task's text, in its order: mixed words such as `P1DT2H` and dates
    anywhere, and capitals such as `IIII` in a list of examples.
    """
    text = task[:MAX_TASK]
    listed = {word for found in _LISTED.finditer(text) for word in _split_words(found[0])}
    words = dict.fromkeys(
        word
        for word in _split_words(text)
        if _is_mixed(word) or (word in listed and _is_example(word))
    )
    return tuple(words)[:MAX_LITERALS]


def find_unasked_literals(task: str, draft: Draft) -> tuple[SchemaViolation, ...]:
    """Return a problem where tests and cases do not use the task's literals; a literal that `why`
    mentions is excused.
    """
    cases = json.dumps([to_json(example) for example in draft.examples], ensure_ascii=False)
    said = f"{draft.tests}\n{cases}\n{draft.why}"
    missing = [word for word in find_literals(task) if word not in said]
    if not missing:
        return ()
    named = ", ".join(missing)
    reason = (
        f"the task names {named}, and no test or case asks for them: say what comes of each, as "
        "the task has it. Name in `why` what of them is no example"
    )
    return (SchemaViolation("/tests", reason),)


def _split_words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        yield found[0].rstrip(".:!?")


def _is_example(word: str) -> bool:
    """Whether a listed word is an example: capitals, or figures that are no plain number."""
    capitals = _CAPITALS.match(word) and word not in _TERMS
    return bool(capitals or (_FIGURES.match(word) and not _NUMBER.match(word)))


def _is_mixed(word: str) -> bool:
    return bool(_DATE.match(word) or _MIXED.match(word)) and not _NAMES.match(word)
