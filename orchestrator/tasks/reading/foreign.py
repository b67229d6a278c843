"""A task in German, Spanish or French, written in English as far as its words are known.

The rules that read arguments and compare words with a tool's identifiers know English. What the
lexicon of the search has is written by a tool's own word, prepositions and words that say nothing
by English ones. All else stays as it is: values, names, quotations, and words that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from registry.search.languages import FUNCTION_WORDS, TaskTranslation
from registry.search.words import read_foreign, stem_word

_WORD = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|`[^`\n]*`|(?:[dl]['\u2019])?[^\s\"“„«`,;:!?()]+"
)
_EDGES = re.compile(r"\A(?P<elided>[dl]['\u2019])?(?P<word>.*?)(?P<end>[.]*)\Z", re.DOTALL)
PLAIN_WORDS: Mapping[str, Mapping[str, str]] = {
    "german": {"in": "in", "im": "in", "von": "of", "vom": "of", "für": "for", "zu": "of",
               "bei": "at", "aus": "from", "nach": "to", "ab": "from", "mit": "with",
               "wer": "who", "wann": "when"},
    "spanish": {"en": "in", "de": "of", "del": "of", "para": "for", "a": "to", "desde": "from",
                "con": "with", "quién": "who", "cuándo": "when"},
    "french": {"en": "in", "à": "in", "dans": "in", "de": "of", "du": "of", "des": "of",
               "d": "of", "pour": "for", "au": "at", "depuis": "from", "avec": "with",
               "qui": "who", "quand": "when"},
}  # fmt: skip
SILENT: Mapping[str, frozenset[str]] = {
    "german": frozenset(
        "bitte das dem den der des die ein eine einen einem einer eines es ist sind gib gibt hat "
        "haben ich mir uns unser unsere mein meine meinen wir was welche welchen welcher welches "
        "alle alles wo wie zeig zeige".split()
    ),
    "spanish": frozenset(
        "el la las los un una unos unas me mi mis nos su sus qué cuál cuáles dónde dame es está "
        "están hay son favor por tiene todos todas".split()
    ),
    "french": frozenset(
        "le la les l un une ce cette ces me moi mes mon ma nos notre quel quelle quels quelles où "
        "est sont donne a il y on nous vous avez fait tous toutes t plaît s".split()
    ),
}
"""Words that ask, point or say nothing: never those that negate, doubt or choose."""
_BEFORE_PLACES = frozenset({"in", "nach", "ab", "aus", "von", "bei", "für"})
_STATES = frozenset(
    "arbeit aussicht betrieb bewegung eile form gefahr kürze ordnung panik ruhe sicht stimmung "
    "urlaub zukunft".split()
)
"""What one can be in that is no place: `in Ordnung`."""
_ENDINGS = ("n", "en", "e", "s", "es")


def write_plainly(task: str, known: Set[str]) -> str:
    """The task with the English of its words; `known` are the stems of the words by which one tool
    is named: of several meanings those are taken. A task in English is returned unchanged.
    """
    reading = read_foreign(task)
    language = next((name for name, said in FUNCTION_WORDS.items() if said is reading.silent), "")
    if not language:
        return task
    before = ""

    def write(found: re.Match[str]) -> str:
        nonlocal before
        told = _write_word(found, reading, language, known)
        if language == "german" and found[0] == "auf" and not task[found.end() :].strip(" .!?"):
            # The end of a verb: `liste … auf`.
            told = "the"
        lower = found[0].lower()
        placed = before in _BEFORE_PLACES and lower not in _STATES
        if language == "german" and told == found[0] and not placed:
            # All nouns have a capital, so none of them says that it is a name.
            told = told[0].lower() + told[1:] if told[1:].islower() else told
        before = lower
        return told

    return _WORD.sub(write, task)


def _write_word(
    found: re.Match[str], reading: TaskTranslation, language: str, known: Set[str]
) -> str:
    edges = _EDGES.match(found[0])
    assert edges is not None
    word = edges["word"]
    # A capital in the middle of a Spanish or French sentence makes a name.
    is_name = language != "german" and found.start() > 0 and word[:1].isupper()
    if is_name or not word.replace("-", "").isalpha():
        return found[0]
    parts = [_write_part(part.lower(), part, reading, language, known) for part in word.split("-")]
    joint = "-" if parts == word.split("-") else " "
    elided = edges["elided"] or ""
    before = {"d": "of ", "l": "the "}.get(elided[:1].lower(), "")
    return before + joint.join(parts) + edges["end"]


def _write_part(
    lower: str, word: str, reading: TaskTranslation, language: str, known: Set[str]
) -> str:
    if lower in PLAIN_WORDS[language]:
        return PLAIN_WORDS[language][lower]
    if lower in SILENT[language]:
        return "the"
    meanings = reading.meanings.get(lower, ())
    own = [each for each in meanings if stem_word(each) in known]
    if own or meanings:
        return " ".join(own or meanings[:1])
    # `Zonen` is the tool's own `zone` but for its ending.
    stems = (lower.removesuffix(ending) for ending in _ENDINGS)
    return next((stem for stem in stems if stem != lower and stem_word(stem) in known), word)
