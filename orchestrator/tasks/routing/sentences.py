"""Splitting a task into sentences and words, for rules that read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

MAX_TASK = 4_000
QUOTED = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for what is quoted: it is talked about and not said."""
_QUOTE = re.compile(
    r"\"[^\"\n]{0,2000}\"|“[^”\n]{0,2000}”|„[^“”\n]{0,2000}[“”]|«[^»\n]{0,2000}»|`[^`\n]{1,2000}`"
    r"|(?<![\w'])'[^'\n]{1,2000}'(?!\w)|\u2018[^\u2019\n]{1,2000}\u2019(?!\w)|「[^」\n]{0,2000}」"
)
_END = re.compile(r"(?<=[.!?…])[\s]+|[\n;]+|(?<=。)")
_WORD = re.compile(rf"[^\W_]+(?:['.@/:_-]+[^\W_]+)*'?|{QUOTED}|,")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Sentence:
    """One sentence: its words in lower case with commas between them, `QUOTED` for a quotation.

    `text` is the words without commas, with a space at either end, for looking phrases up.
    """

    words: tuple[str, ...]
    is_question: bool = False
    is_exclaimed: bool = False

    @property
    def text(self) -> str:
        return f" {' '.join(word for word in self.words if word != ',')} "

    def has_phrase(self, phrases: Iterable[str]) -> bool:
        """Whether one of the phrases stands in the sentence, at whole words."""
        text = self.text
        return any(f" {phrase} " in text for phrase in phrases)

    def drop(self, count: int) -> Sentence:
        """The sentence without its first words, nor a comma behind them."""
        rest = self.words[count:]
        while rest and rest[0] == ",":
            rest = rest[1:]
        return Sentence(rest, self.is_question, self.is_exclaimed)

    def drop_phrase(self, phrases: Iterable[str]) -> Sentence | None:
        """The sentence without the longest of the phrases that it begins with, or None."""
        lead = " ".join(self.words[:12])
        fitting = [p for p in phrases if lead == p or lead.startswith((f"{p} ", f"{p},"))]
        return self.drop(max(map(len, map(str.split, fitting)))) if fitting else None

    def get_word(self, at: int) -> str:
        """The word at a place; "" past the end."""
        return self.words[at] if at < len(self.words) else ""


def split_sentences(task: str) -> tuple[Sentence, ...]:
    """The sentences of a task, at most 4,000 characters of it; those without a word are left out.

    A line that begins with `>` is a quotation.
    """
    text = unicodedata.normalize("NFKC", task[:MAX_TASK]).replace("\u2019", "'")
    text = "".join(each for each in text if unicodedata.category(each) != "Cf")
    text = _QUOTE.sub(QUOTED, re.sub(r"(?m)^\s*>.*$", QUOTED, text))
    found = []
    for part in _END.split(text):
        words = tuple(word.rstrip("'") or word for word in _WORD.findall(part.lower()))
        while words and words[0] == ",":
            words = words[1:]
        if words:
            end = part.rstrip()[-1:]
            found.append(Sentence(words, end == "?", end == "!"))
    return tuple(found)


def is_chinese(text: str) -> bool:
    """Whether a text has Chinese characters."""
    return _CHINESE.search(text) is not None
