"""Words of tasks, titles and hosts as the directory's index has them."""

from __future__ import annotations

import importlib
import re
from functools import cache, lru_cache
from typing import Any

LONGEST = 40
MOST_REMEMBERED = 8_000
STOP_WORDS = frozenset(
    "a about all an and any are as at based be been but by can could do does for from get give "
    "given has have help here how i if in into is it its let like list make me my need new no not "
    "now of off on one or our out over please per set should show so some tell than that the their "
    "them then there these this those to up us use used user users using via want was we what when "
    "where which who will with would you your "
    "add allow allows also available call change check create delete edit fetch find manage "
    "modify read remove retrieve return returns search see send service services tool "
    "update view write "
    "api apis app application client data developer documentation endpoint endpoints http https "
    "json openapi platform public reference request requests resource resources rest restful "
    "server spec specification swagger v1 v2 v3 version web www xml".split()
)
"""Words that say nothing of which service is meant: of tasks, and of descriptions of APIs."""
ALIASES = {
    "aws": "amazonaws",
    "amazon": "amazonaws",
    "gcp": "google",
    "ynab": "youneedabudget",
}
"""Usual names of providers whose hosts have others."""
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(text: str) -> list[str]:
    """The lower-case words of a text or identifier, `listZones` being two."""
    return [word.lower()[:LONGEST] for word in _WORD.findall(_CASE.sub(" ", text))]


def list_stems(text: str) -> list[str]:
    """The different stems of a text without its stop words, in its order."""
    said = (stem_word(word) for word in split_words(text) if word not in STOP_WORDS)
    return list(dict.fromkeys(said))


@lru_cache(MOST_REMEMBERED)
def stem_word(word: str) -> str:
    """The stem of a lower-case English word; other words are returned unchanged."""
    if not (word.isascii() and word.isalpha()):
        return word
    # A stemmer holds the word that it works on, so threads must not share one.
    return str(_load_stemmer()("english", 0).stemWord(word))


@cache
def _load_stemmer() -> Any:
    return importlib.import_module("Stemmer").Stemmer
