"""Evidence: whether words stand in documentation, and near which others. Letter case counts; white
space and the marks of Markdown do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from forge.readers.page import METHODS
from forge.readers.recorded.address import normalize_variables

MIN_QUOTE = 6
BESIDE = 300
"""Characters within which something stands beside something else."""
MAX_OCCURRENCES = 200
MAX_BESIDE = 20
"""Places of a quotation that are looked at for what stands beside it."""
_MARKS = re.compile(r"[`*]+")
_SPACE = re.compile(r"\s+")
_PLAIN = str.maketrans(
    {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2013: "-", 0x2014: "-", 0x2026: "..."}
)
_METHOD = rf"(?:{'|'.join(METHODS)})"
_BEFORE = re.compile(
    rf"\b({_METHOD}(?:\W{{1,6}}(?:and |or )?{_METHOD})*)\W{{1,20}}(?:https?://[^\s/]+[^\s{{}}]*)?\Z"
)
_AFTER = re.compile(rf"\W{{1,20}}({_METHOD}(?:\W{{1,6}}(?:and |or )?{_METHOD})*)\b")
_WORDS = re.compile(rf"\b{_METHOD}\b")
_COLON = re.compile(r"(?<=/):([A-Za-z_]\w{0,59})(?!\w)")
_VARIABLE_BASE = re.compile(r"(?:^|[^\w/}])\{[\w.]+\}\Z")
_SPOKEN = re.compile(
    r"\b(get|post|put|patch|delete)\s+request|\bhttp:(get|post|put|patch|delete)::", re.IGNORECASE
)
"""As sentences and Sphinx's HTTP domain have them."""
_HAS_PATH = re.compile(r"(?:^|[\s\"'(])/[A-Za-z{]")
_CURL_SENDS = re.compile(r"\bcurl\b.*\s(?:-d|--data\S*|--json|-F|--form)\s", re.DOTALL)


def normalize_text(text: str) -> str:
    """Normalize a text for comparison."""
    return _SPACE.sub(" ", _MARKS.sub("", text.translate(_PLAIN)).replace("|", " ")).strip()


@dataclass(frozen=True)
class Evidence:
    """The texts of one documentation: `texts` normalized as a whole, `lines` line by line."""

    texts: tuple[str, ...] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)

    @staticmethod
    def from_texts(texts: Iterable[str]) -> Evidence:
        """Build the evidence of several texts."""
        given = tuple(texts)
        compared = tuple(normalize_placeholders(normalize_text(text)) for text in given)
        lines = (
            normalize_placeholders(normalize_text(line))
            for text in given
            for line in text.split("\n")
        )
        return Evidence(compared, tuple(filter(None, lines)))

    def has_quote(self, quote: str, least: int = MIN_QUOTE) -> bool:
        """Whether the quotation stands in the text and has at least `least` characters."""
        words = normalize_placeholders(normalize_text(quote))
        return len(words) >= least and any(words in text for text in self.texts)

    def has_word_beside(self, quote: str, word: str) -> bool:
        """Whether a word stands in the quotation, or within BESIDE characters of one of its places.

        Only the first MAX_BESIDE places in each text are searched.
        """
        words, wanted = normalize_placeholders(normalize_text(quote)), _build_word_pattern(word)
        if wanted.search(words):
            return True
        for text in self.texts:
            for at in islice(_find_places(text, words), MAX_BESIDE):
                near = text[max(0, at - BESIDE) : at + len(words) + BESIDE]
                if wanted.search(near):
                    return True
        return False

    def has_word(self, word: str) -> bool:
        """Whether a name stands anywhere in the text as a word of its own."""
        return any(_build_word_pattern(word).search(text) for text in self.texts)

    def find_methods(self, path: str, prefixes: Iterable[str]) -> frozenset[str]:
        """Return the methods that the text gives a path, from the path's own lines.

        Where those have none: GET, and the methods of the nearest lines that have no path of their
        own. A path counts only at the beginning of a word, or after one of the `prefixes`, such as
        a base URL.
        """
        found: set[str] = set()
        starts = tuple(filter(None, prefixes))
        places = tuple(self._find_occurrences(path, starts))
        for number, at in places:
            found |= _find_methods_at(self.lines[number], at, path)
        if not found and places:
            found = {"GET"}.union(*(self._find_methods_around(number) for number, _ in places))
        return frozenset(found)

    def _find_methods_around(self, number: int) -> set[str]:
        for distance in (1, 2):
            beside = (self.lines[max(0, number - distance)], *self.lines[number + distance :][:1])
            found = [_find_methods_in(line) for line in beside if not _HAS_PATH.search(line)]
            if any(found):
                return set().union(*found)
        return set()

    def _find_occurrences(self, path: str, prefixes: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        count = 0
        for number, line in enumerate(self.lines):
            for at in _find_places(line, path):
                before, after = line[:at], line[at + len(path) :]
                if not _is_path_end(after) or not (
                    _is_path_start(before) or before.endswith(prefixes)
                ):
                    continue
                count += 1
                if count > MAX_OCCURRENCES:
                    return
                yield number, at


def _find_methods_at(line: str, at: int, path: str) -> set[str]:
    """Return the methods right before or after the path, else those of its line."""
    before = line[:at]
    adjacent = _BEFORE.search(before[-200:]) or _AFTER.match(line[at + len(path) :][:60])
    if adjacent:
        return set(_WORDS.findall(adjacent[1]))
    whole = _find_methods_in(line)
    if not whole and _CURL_SENDS.search(line[:4000]):
        return {"POST"}
    return whole


def _find_methods_in(line: str) -> set[str]:
    spoken = (found[1] or found[2] for found in _SPOKEN.finditer(line))
    return {*_WORDS.findall(line), *(method.upper() for method in spoken)}


def normalize_placeholders(text: str) -> str:
    """Write the variables of paths as `{name}`, whatever the notation."""
    return _COLON.sub(r"{\1}", normalize_variables(text))


def _find_places(text: str, words: str) -> Iterator[int]:
    at = text.find(words) if words else -1
    for _ in range(MAX_OCCURRENCES):
        if at < 0:
            return
        yield at
        at = text.find(words, at + 1)


def _is_path_start(before: str) -> bool:
    if not before or _VARIABLE_BASE.search(before[-80:]):
        return True
    return not (before[-1].isalnum() or before[-1] in "_-./}~%")


def _is_path_end(after: str) -> bool:
    if not after:
        return True
    if after[0] in ".,;:!" and (len(after) == 1 or not after[1].isalnum()):
        return True
    if after[0] == "/":
        return len(after) == 1 or not (after[1].isalnum() or after[1] in "{_-")
    return not (after[0].isalnum() or after[0] in "_-{.~%:")


def _build_word_pattern(word: str) -> re.Pattern[str]:
    """Build a pattern for a name as a word of its own; a path may also follow a host."""
    wanted = normalize_placeholders(normalize_text(word))
    before = "" if wanted.startswith("/") else "(?<![A-Za-z0-9_])"
    return re.compile(rf"{before}{re.escape(wanted)}(?![A-Za-z0-9_])")
