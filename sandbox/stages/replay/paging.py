"""Marks by which an answer says that more follows, and whether a call went on to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MARKS = frozenset(
    "next nextpage nextcursor nextpagetoken nexttoken nexturl nextlink continuation "
    "continuationtoken hasmore hasnext hasnextpage more truncated istruncated incompleteresults "
    "odatanextlink".split()
)
"""Names of fields, in small letters alone, that say so."""
TOTALS = frozenset({"total", "totalcount", "totalresults", "totalitems"})
ONE = frozenset({"limit", "perpage", "pagesize", "first", "top", "maxresults"})
"""Parameters that ask for so many; a call that asks for one item wants no more."""
MAX_DEPTH = 6


def normalize_name(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalpha())


def find_marks(value: Any, depth: int = 0) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The marks in an answer, outside of its items: where, and what stands there."""
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return
    for key, item in value.items():
        if normalize_name(key) in MARKS and not isinstance(item, Mapping | list):
            yield (key,), item
        elif isinstance(item, Mapping):
            yield from (((key, *at), found) for at, found in find_marks(item, depth + 1))


def find_untold_total(value: Any, depth: int = 0) -> int | None:
    """How many there are, where an answer has a total that is larger than its only list."""
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return None
    lists = [item for item in value.values() if isinstance(item, list)]
    for key, item in value.items():
        if normalize_name(key) in TOTALS and isinstance(item, int) and len(lists) == 1:
            return item if item > len(lists[0]) > 0 else None
    found = (find_untold_total(item, depth + 1) for item in value.values())
    return next((total for total in found if total is not None), None)


def set_mark(value: Any, at: tuple[str, ...]) -> Any:
    """The answer, saying that more follows."""
    if not isinstance(value, Mapping):
        return value
    if len(at) > 1:
        return {**value, at[0]: set_mark(value[at[0]], at[1:])}
    return {**value, at[0]: True if isinstance(value[at[0]], bool) else "more-1"}


def asks_for_one(told: Any) -> bool:
    """Whether the arguments or the query of a request ask for a single item."""
    if isinstance(told, Mapping):
        return any(
            (normalize_name(str(key)) in ONE and str(item) == "1") or asks_for_one(item)
            for key, item in told.items()
        )
    return False
