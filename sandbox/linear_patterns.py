"""Patterns that RE2 matches: in linear time, while other threads run
(https://github.com/google/re2/wiki/Syntax).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Protocol

import re2  # type: ignore[import-untyped]

MAX_MEMORY = 64 << 20
"""Bytes that one compiled pattern may take, the states that it remembers included."""


class Searcher(Protocol):
    """A compiled pattern. It reads bytes as UTF-8."""

    def search(self, text: bytes) -> object | None: ...


class Selector(Protocol):
    """Compiled patterns that are searched all at once."""

    def Match(self, text: bytes) -> list[int] | None:
        """The numbers of those that are found, in no order; None for none of them."""
        ...


@cache
def compile_linear(pattern: str) -> Searcher:
    """The pattern compiled."""
    compiled: Searcher = re2.compile(pattern, _build_options())
    return compiled


def compile_linear_set(patterns: Iterable[str]) -> Selector:
    """The patterns compiled to one."""
    made = re2.Set.SearchSet(_build_options())
    for pattern in patterns:
        made.Add(pattern)
    made.Compile()
    selector: Selector = made
    return selector


def join_words(words: Iterable[str]) -> str:
    """A pattern of one of the words. To Python, where case is ignored, a dotless i and a dotted I
    are an i as well (https://docs.python.org/3/library/re.html#re.IGNORECASE).
    """
    return f"(?:{'|'.join(map(re.escape, words))})".replace("i", "[i\u0130\u0131]")


def _build_options() -> re2.Options:
    options = re2.Options()
    options.max_mem, options.log_errors = MAX_MEMORY, False
    return options
