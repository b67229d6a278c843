"""Whether words really stand in documentation, and beside what. Letter case counts; runs of white
space and the signs of Markdown do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forge.prosedocs.page import METHODS
from forge.recorded.address import with_placeholders

MIN_QUOTE = 6
BESIDE = 300
"""Characters within which something stands beside something else."""
MAX_OCCURRENCES = 200
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
            for at in _places(text, words):
                near = text[max(0, at - BESIDE) : at + len(words) + BESIDE]
                if wanted.search(near):
                    return True
        return False

    def says(self, word: str) -> bool:
        """Whether a name stands anywhere in the text as a word of its own."""
        return any(_word(word).search(text) for text in self.texts)

    def methods(self, path: str, prefixes: Iterable[str]) -> frozenset[str]:
        """The methods that the text gives a path. A path begins where a word does, or after one of
        the `prefixes`, such as a base URL. GET where it stands without any.
        """
        found: set[str] = set()
        starts = tuple(filter(None, prefixes))
        stands = False
        for line, at in self._occurrences(path, starts):
            stands = True
            found |= _methods_at(line, at, path)
        return frozenset(found or ({"GET"} if stands else ()))

    def _occurrences(self, path: str, prefixes: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        count = 0
        for line in self.lines:
            for at in _places(line, path):
                before, after = line[:at], line[at + len(path) :]
                if not _ends(after) or not (_begins(before) or before.endswith(prefixes)):
                    continue
                count += 1
                if count > MAX_OCCURRENCES:
                    return
                yield line, at


def _methods_at(line: str, at: int, path: str) -> set[str]:
    """Those right before or after the path; else those of its line."""
    before = line[:at]
    adjacent = _BEFORE.search(before[-200:]) or _AFTER.match(line[at + len(path) :][:60])
    if adjacent:
        return set(_WORDS.findall(adjacent[1]))
    whole = set(_WORDS.findall(line))
    if not whole and _CURL_SENDS.search(line[:4000]):
        return {"POST"}
    return whole


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
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(opened(plain(word)))}(?![A-Za-z0-9_])")
