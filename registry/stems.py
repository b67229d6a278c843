"""Word stems: Porter's algorithm, as SQLite's FTS5 applies it to the same words.

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980,
https://tartarus.org/martin/PorterStemmer/def.txt, whose steps are named here.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST_REMEMBERED = 20_000
LONGEST = 64

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "logi": "log", "bli": "ble", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous",
    "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive",
    "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic ou".split()
_MEASURE = re.compile(r"v+c+")


@lru_cache(MOST_REMEMBERED)
def stem(word: str) -> str:
    """The stem of an English word in lower case. Other words and long ones are their own."""
    if not 3 <= len(word) <= LONGEST or not (word.isascii() and word.isalpha()):
        return word
    word = _participle(_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    return _tidied(_residue(word))


def _plural(word: str) -> str:
    """Step 1a."""
    if _ends(word, "sses", "ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _participle(word: str) -> str:
    """Step 1b."""
    if _ends(word, "eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        left = word.removesuffix(ending)
        if left != word and _has_vowel(left):
            return _restored(left)
    return word


def _restored(left: str) -> str:
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if len(left) > 1 and left[-1] == left[-2] and left[-1] not in "aeioulsz":
        return left[:-1]
    return left + "e" if _measure(left) == 1 and _is_short(left) else left


def _replaced(word: str, endings: dict[str, str]) -> str:
    """Steps 2 and 3: only the first ending that fits is tried."""
    for ending, other in endings.items():
        if _ends(word, ending):
            left = word[: -len(ending)]
            return left + other if _measure(left) else word
    return word


def _residue(word: str) -> str:
    """Step 4."""
    for ending in _STEP_4:
        if _ends(word, ending):
            left = word[: -len(ending)]
            fits = _measure(left) > 1 and (ending != "ion" or left.endswith(("s", "t")))
            return left if fits else word
    return word


def _tidied(word: str) -> str:
    """Step 5."""
    if word.endswith("e"):
        left = word[:-1]
        measure = _measure(left)
        if measure > 1 or (measure == 1 and not _is_short(left)):
            word = left
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _ends(word: str, *endings: str) -> bool:
    """Whether an ending is there with something before it."""
    return any(len(word) > len(ending) and word.endswith(ending) for ending in endings)


def _form(word: str) -> str:
    """The word as `c` and `v`: y is a vowel after a consonant."""
    form = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and form[-1:] == "c")
        form += "v" if vowel else "c"
    return form


def _measure(word: str) -> int:
    return len(_MEASURE.findall(_form(word)))


def _has_vowel(word: str) -> bool:
    return "v" in _form(word)


def _is_short(word: str) -> bool:
    """Whether it ends as `-wil` and `-hop` do: *o of the paper."""
    return _form(word)[-3:] == "cvc" and word[-1] not in "wxy"
