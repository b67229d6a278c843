"""Words of a text by how often they come."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

from bench.author.task import Task, checks

_TEXT = """\
A tool `count_words(text, limit, ignore)` that gives {"total": number of words, "distinct":
number, "top": [{"word", "count"}]}. A word is a run of letters (of any script), which may have
single apostrophes (') inside between letters: don't is one word, 'tis is the word tis. Before
counting, the text is put into Unicode normal form NFC and small letters (Python's casefold).
`ignore` is a list of words, treated the same way, that do not count at all, also not in
`total`. `top` has the `limit` most frequent words (10 where it is left out, 0 to 1000), most
frequent first, words of one count in the order of their code points."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def count_words(text: str, limit: int = 10, ignore: tuple[str, ...] = ()) -> dict[str, Any]:
    left = set(map(_plain, ignore))
    counts = Counter(word for word in _WORD.findall(_plain(text)) if word not in left)
    top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    return {
        "total": sum(counts.values()),
        "distinct": len(counts),
        "top": [{"word": word, "count": count} for word, count in top],
    }


def _call(text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "count_words", {"text": text, **more}


TASK = Task(
    "words",
    _TEXT,
    checks(
        {"count_words": count_words},
        [
            _call("the cat and the dog"),
            _call("The THE the"),
            _call("don't 'tis rock'n'roll it''s 'quoted'"),
            _call("", limit=5),
            _call("123 4a5 _x_ a1b"),
            _call("Straße STRASSE strasse"),
            _call("e\u0301t\u00e9 \u00e9te\u0301"),
            _call("b a c b a b", limit=2),
            _call("b a c", limit=0),
            _call("b a c", limit=1),
            _call("the cat the dog", ignore=["THE"]),
            _call("the cat", ignore=["cat", "the"]),
            _call("caf\u00e9 cafe\u0301", ignore=["CAF\u00c9"]),
            _call("привет Привет мир"),
            _call("日本 日本 語"),
            _call("a-b a\u2013b a.b"),
            _call("z y x w v u t s r q p o n m"),
            _call("x " * 500),
            _call("it's its it's"),
            _call("'"),
            _call("a\nb\tc\r\nd"),
            _call("I \u0130 \u0131 i"),
            _call("ΣΑΣ σας"),
            _call("o'", limit=3),
        ],
    ),
)
