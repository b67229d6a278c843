"""English translations of tasks in German, Spanish, French or Chinese, word by word.

Tools are mostly described in English. Three hundred words of APIs lie beside this module; what a
task means in English stands beside its own words, and takes none of them away. An English task is
not touched: a language is read only where its function words are at least as many as the English
words, and the lexicon has another word. Chinese is read where its characters occur, longest words
first.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from itertools import chain
from typing import Any

LEXICON = "lexicon.txt"
"""A line for each meaning: forms in English, German, Spanish, French and Chinese, with | between
the languages and a space between forms.
"""
LANGUAGES = ("german", "spanish", "french", "chinese")
MOST_REMEMBERED = 5_000
LONGEST_WORD = 30
MOST_WORDS = 40
"""How many different words of a task are read."""
LONGEST_CHINESE = 6
MOST_CHINESE = 200
"""How many characters of one run are looked up."""
SHORTEST_PART = 4
"""The least letters of a word that counts as the head of a German compound."""
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "german": frozenset(
        "aber alle alles als am an auf aus bei bis bitte das dem den der des dich die dies diese "
        "diesem diesen dieser dieses dir du durch ein eine einem einen einer eines er es für gegen "
        "gib hat habe haben ich ihr im in ist kann kannst können lass man mein meine meinem meinen "
        "meiner meines mich mir mit nach nicht noch oder ohne sein seine sich sie sind um und uns "
        "unser unsere unter vom von vor war was welche welchen welcher welches wenn wer werden wie "
        "wird wo wurde zu zum zur über".split()
    ),
    "spanish": frozenset(
        "a al algo algún con cuando cuál cuáles cuándo cuánta cuántas cuánto cuántos cómo dame de "
        "del desde donde dónde e el ella en entre eres es esta este esto está están fue ha hasta "
        "hay la las le les lo los me mi mis muy más no nos o para pero por porque puede puedes qué "
        "que quién quiero se ser si sin sobre son su sus te tiene tu tus un una unas unos y ya yo "
        "él".split()
    ),
    "french": frozenset(
        "a afin ai au aux avec c ce ces cet cette comment d dans de des donne du elle en est et "
        "eu faut il ils j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre "
        "nous on ont ou où par pas peut peux plus pour pourquoi puis qu quand que quel quelle "
        "quelles quels qui s sa sans se ses si son sont sur t ta te tes toi ton tous tout toute "
        "toutes tu un une va veux vos votre vous y à été être".split()
    ),
}

_TELLING: Mapping[str, frozenset[str]] = {
    language: frozenset(word for word in words if len(word) > 1)
    for language, words in FUNCTION_WORDS.items()
}
"""The function words by which a language is known."""


@dataclass(frozen=True)
class TaskTranslation:
    """A task in another language: what is known of its words in English, in the order of the
    text, and its function words, which say nothing.
    """

    meanings: Mapping[str, tuple[str, ...]]
    silent: frozenset[str]


NOTHING = TaskTranslation({}, frozenset())


def read_task(words: Sequence[str], english: frozenset[str]) -> TaskTranslation:
    """Read the words of a task, all in lower case; `english` are usual English words, by which
    an English task is known.
    """
    words = list(dict.fromkeys(words))[:MOST_WORDS]
    chinese = [word for word in words if has_chinese(word)]
    if len(chinese) > len(english.intersection(words)):
        pieces = chain.from_iterable(map(_cut_chinese, chinese))
        return TaskTranslation(dict(pieces), frozenset())
    language = _detect_language(words, english)
    if language is None:
        return NOTHING
    silent = FUNCTION_WORDS[language]
    pairs = ((word, _translate(word, language)) for word in words)
    return TaskTranslation({word: told for word, told in pairs if told}, silent)


def has_chinese(word: str) -> bool:
    return not word.isascii() and any("\u4e00" <= letter <= "\u9fff" for letter in word)


def _detect_language(words: Sequence[str], english: frozenset[str]) -> str | None:
    """The language of a task, whose `words` differ from each other; None for English."""
    counts = {name: len(telling.intersection(words)) for name, telling in _TELLING.items()}
    most, own = max(counts.values()), len(english.intersection(words))
    if most < own:
        return None
    known = _load_english() - english
    own += sum(word in known and not _is_shared(word) for word in words)
    likely = [name for name in counts if counts[name] == most >= own]
    others = [word for word in words if word not in known and word not in english]
    # Stems of what may be any language would find too much.
    look_up = _translate if most else _find_form
    told = {name: sum(bool(look_up(word, name)) for word in others) for name in likely}
    best = max(told, key=lambda name: told[name], default="")
    return best if best and told[best] else None


def _is_shared(word: str) -> bool:
    return any(word in _load_forms(name) for name in FUNCTION_WORDS)


def _find_form(word: str, language: str) -> tuple[str, ...]:
    return _load_forms(language).get(word, ())


def _translate(word: str, language: str) -> tuple[str, ...]:
    """The English words that a word may mean; of a German compound, what its end means."""
    if len(word) > LONGEST_WORD or word in FUNCTION_WORDS[language]:
        return ()
    stems = _load_stems(language)
    found = stems.get(_stem(word, language))
    if found or language != "german":
        return found or ()
    for start in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        head = stems.get(_stem(word[start:], language))
        if head:
            before = stems.get(_stem(word[:start], language), ())
            return (*before, *head)
    return ()


def _cut_chinese(run: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    forms = _load_forms("chinese")
    place, end = 0, min(len(run), MOST_CHINESE)
    while place < end:
        for length in range(min(LONGEST_CHINESE, end - place), 0, -1):
            piece = run[place : place + length]
            if piece in forms:
                yield piece, forms[piece]
                break
        place += length


@lru_cache(MOST_REMEMBERED)
def _stem(word: str, language: str) -> str:
    return strip_accents(str(_load_stemmer()(language, 0).stemWord(word)))


def strip_accents(text: str) -> str:
    """A text without its accents, in compatible letters (NFKD)."""
    return "".join(
        letter
        for letter in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(letter)
    )


@cache
def _load_stemmer() -> Any:
    return import_module("Stemmer").Stemmer


@cache
def _load_lines() -> tuple[tuple[str, ...], ...]:
    lines = files("registry.search").joinpath(LEXICON).read_text("utf-8").splitlines()
    return tuple(tuple(line.split("|")) for line in lines if line and not line.startswith("#"))


@cache
def _load_english() -> frozenset[str]:
    return frozenset(line[0] for line in _load_lines())


@cache
def _load_forms(language: str) -> Mapping[str, tuple[str, ...]]:
    """The English words of each form, as it stands in the lexicon."""
    column = LANGUAGES.index(language) + 1
    pairs = ((form, line[0]) for line in _load_lines() for form in line[column].split())
    return _gather(pairs)


@cache
def _load_stems(language: str) -> Mapping[str, tuple[str, ...]]:
    forms = _load_forms(language).items()
    return _gather((_stem(form, language), word) for form, words in forms for word in words)


def _gather(pairs: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for form, word in pairs:
        found[form][word] = None
    return {form: tuple(words) for form, words in found.items()}
