"""Likeness of names: which of what is new is most like what is gone. Pure functions.

A description's names are strangers' text: they are bounded, and a likeness permits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

MOST = 64
"""Names of each side that are compared."""
LONGEST = 200
ALIKE = 0.6
"""The least likeness (0..1) of two names of one thing."""
AHEAD = 0.05
"""How much more alike the best name has to be than the next one."""
DEPTH = 4
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_VERSION = re.compile(r"v\d+(\.\d+)*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Renaming:
    """What is gone, and what is new and most like it."""

    old: str
    new: str


def pair_paths(gone: Iterable[str], new: Iterable[str]) -> tuple[Renaming, ...]:
    """Pair paths (with their method before them, where they have one) by their segments. Versions
    (`v2`) and the names of parameters say nothing of what lies there.
    """
    return _pair(gone, new, _compare_paths)


def pair_names(gone: Iterable[str], new: Iterable[str]) -> tuple[Renaming, ...]:
    """Pair names of fields or tools by their words."""
    return _pair(gone, new, _compare_names)


def find_renamed_fields(before: Any, after: Any, at: str = "") -> tuple[Renaming, ...]:
    """Fields of one JSON Schema that another one has under another name, as JSON pointers. A field
    is paired with one of the same type only.
    """
    return tuple(_walk_fields(before, after, at, DEPTH))


def find_renamed_in_answer(schema: Any, value: Any, where: str) -> tuple[Renaming, ...]:
    """Fields that an answer wants at a JSON pointer, with undocumented ones that are like them."""
    for part in where.split("/")[1:][: 2 * DEPTH]:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            schema, value = _get(schema, "items"), value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            schema, value = _get(_get(schema, "properties"), part), value[part]
        else:
            break
    documented = _get(schema, "properties")
    if not isinstance(documented, Mapping) or not isinstance(value, Mapping):
        return ()
    gone = [name for name in documented if name not in value]
    new = [str(name) for name in value if name not in documented]
    return pair_names(gone, new)


def _walk_fields(before: Any, after: Any, at: str, depth: int) -> Iterable[Renaming]:
    if depth == 0 or not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return
    old, new = _get(before, "properties"), _get(after, "properties")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        gone, added = [n for n in old if n not in new], [n for n in new if n not in old]
        for each in pair_names(gone, added):
            if _get(old[each.old], "type") == _get(new[each.new], "type"):
                yield Renaming(f"{at}/{each.old}", f"{at}/{each.new}")
        for name in list(old)[:MOST]:
            if name in new:
                yield from _walk_fields(old[name], new[name], f"{at}/{name}", depth - 1)
    items = _get(before, "items"), _get(after, "items")
    yield from _walk_fields(*items, f"{at}/0", depth - 1)


def _pair(gone: Iterable[str], new: Iterable[str], compare: Any) -> tuple[Renaming, ...]:
    """The pairs of which each is the other's best by AHEAD; what has two likely names has none."""
    olds = [name[:LONGEST] for name in gone][:MOST]
    news = [name[:LONGEST] for name in new][:MOST]
    scores = {(old, name): compare(old, name) for old in olds for name in news}
    found = []
    for (old, name), score in scores.items():
        others = [other for pair, other in scores.items() if (pair[0] == old) != (pair[1] == name)]
        if score >= ALIKE and score >= max(others, default=0.0) + AHEAD:
            found.append(Renaming(old, name))
    return tuple(found)


def _compare_paths(old: str, new: str) -> float:
    return SequenceMatcher(None, _split_path(old), _split_path(new), autojunk=False).ratio()


def _split_path(path: str) -> Sequence[str]:
    method, _, route = path.rpartition(" ")
    parts = [part for part in route.split("/") if part and not _VERSION.match(part)]
    return [method, *("{}" if part.startswith("{") else part.lower() for part in parts)]


def _compare_names(old: str, new: str) -> float:
    olds, news = ([word.lower() for word in _WORDS.findall(name)] for name in (old, new))
    within = 0.8 if olds and news and ({*olds} < {*news} or {*news} < {*olds}) else 0.0
    return max(within, SequenceMatcher(None, "".join(olds), "".join(news), autojunk=False).ratio())


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
