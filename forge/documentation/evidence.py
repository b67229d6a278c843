"""Whether words really stand in documentation, and beside what. Letter case counts; runs of white
space and the signs of Markdown do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from forge.prosedocs.page import METHODS
from forge.recorded.address import with_placeholders

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


def plain(text: str) -> str:
    """A text as it is compared."""
    return _SPACE.sub(" ", _MARKS.sub("", text.translate(_PLAIN)).replace("|", " ")).strip()


@dataclass(frozen=True)
class Evidence:
    """The texts of one documentation. `texts` are compared, `lines` keep its lines."""

    texts: tuple[str, ...] = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)

    @staticmethod
    def of(texts: Iterable[str]) -> Evidence:
        given = tuple(texts)
        compared = tuple(opened(plain(text)) for text in given)
        lines = (opened(plain(line)) for text in given for line in text.split("\n"))
        return Evidence(compared, tuple(filter(None, lines)))

    def quotes(self, quote: str, least: int = MIN_QUOTE) -> bool:
        """Whether the quotation stands in the text and is long enough to say something."""
        words = opened(plain(quote))
        return len(words) >= least and any(words in text for text in self.texts)

    def beside(self, quote: str, word: str) -> bool:
        """Whether a word stands in the quotation or near one of its places in the text."""
        words, wanted = opened(plain(quote)), _word(word)
        if wanted.search(words):
            return True
        for text in self.texts:
            for at in islice(_places(text, words), MAX_BESIDE):
                near = text[max(0, at - BESIDE) : at + len(words) + BESIDE]
                if wanted.search(near):
                    return True
        return False

    def says(self, word: str) -> bool:
        """Whether a name stands anywhere in the text as a word of its own."""
        return any(_word(word).search(text) for text in self.texts)

    def methods(self, path: str, prefixes: Iterable[str]) -> frozenset[str]:
        """The methods that the text gives a path: on its line, or where that has none on a line
        around it that has no path of its own, and then GET as well, as where there is none at all.
        A path begins where a word does, or after one of the `prefixes`, such as a base URL.
        """
        found: set[str] = set()
        starts = tuple(filter(None, prefixes))
        places = tuple(self._occurrences(path, starts))
        for number, at in places:
            found |= _methods_at(self.lines[number], at, path)
        if not found and places:
            found = {"GET"}.union(*(self._around(number) for number, _ in places))
        return frozenset(found)

    def _around(self, number: int) -> set[str]:
        for distance in (1, 2):
            beside = (self.lines[max(0, number - distance)], *self.lines[number + distance :][:1])
            found = [_methods_of(line) for line in beside if not _HAS_PATH.search(line)]
            if any(found):
                return set().union(*found)
        return set()

    def _occurrences(self, path: str, prefixes: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        count = 0
        for number, line in enumerate(self.lines):
            for at in _places(line, path):
                before, after = line[:at], line[at + len(path) :]
                if not _ends(after) or not (_begins(before) or before.endswith(prefixes)):
                    continue
                count += 1
                if count > MAX_OCCURRENCES:
                    return
                yield number, at


def _methods_at(line: str, at: int, path: str) -> set[str]:
    """Those right before or after the path; else those of its line."""
    before = line[:at]
    adjacent = _BEFORE.search(before[-200:]) or _AFTER.match(line[at + len(path) :][:60])
    if adjacent:
        return set(_WORDS.findall(adjacent[1]))
    whole = _methods_of(line)
    if not whole and _CURL_SENDS.search(line[:4000]):
        return {"POST"}
    return whole


def _methods_of(line: str) -> set[str]:
    spoken = (found[1] or found[2] for found in _SPOKEN.finditer(line))
    return {*_WORDS.findall(line), *(method.upper() for method in spoken)}


def opened(text: str) -> str:
    """A text with `{name}` for what varies in its paths, in whatever notation."""
    return _COLON.sub(r"{\1}", with_placeholders(text))


def _places(text: str, words: str) -> Iterator[int]:
    at = text.find(words) if words else -1
    for _ in range(MAX_OCCURRENCES):
        if at < 0:
            return
        yield at
        at = text.find(words, at + 1)


def _begins(before: str) -> bool:
    if not before or _VARIABLE_BASE.search(before[-80:]):
        return True
    return not (before[-1].isalnum() or before[-1] in "_-./}~%")


def _ends(after: str) -> bool:
    if not after:
        return True
    if after[0] in ".,;:!" and (len(after) == 1 or not after[1].isalnum()):
        return True
    if after[0] == "/":
        return len(after) == 1 or not (after[1].isalnum() or after[1] in "{_-")
    return not (after[0].isalnum() or after[0] in "_-{.~%:")


def _word(word: str) -> re.Pattern[str]:
    """Finds a name as a word of its own, and a path also behind a host."""
    wanted = opened(plain(word))
    before = "" if wanted.startswith("/") else "(?<![A-Za-z0-9_])"
    return re.compile(rf"{before}{re.escape(wanted)}(?![A-Za-z0-9_])")
