"""Arguments that lie close to given ones: one value in them a little different."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_PER_VALUE = 8
MAX_DEPTH = 4
MAX_ITEMS = 3
_RUNS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")


def neighbours(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments with one value changed, in the order of the values."""
    for name, value in arguments.items():
        for changed in list(_changed(value, 0))[:MAX_PER_VALUE]:
            yield {**arguments, name: changed}


def _changed(value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, bool) or value is None or depth > MAX_DEPTH:
        return
    if isinstance(value, int):
        yield from (value + 1, value - 1, value + 10, value * 2)
    elif isinstance(value, float):
        yield from (value + 1, value - 1, value * 2, value / 2)
    elif isinstance(value, str):
        yield from _texts(value)
    elif isinstance(value, list):
        yield from _lists(value, depth)
    elif isinstance(value, dict):
        for name in list(value)[:MAX_ITEMS]:
            for changed in list(_changed(value[name], depth + 1))[:MAX_ITEMS]:
                yield {**value, name: changed}


def _texts(text: str) -> Iterator[str]:
    if not text:
        return
    places = sorted({len(text) // 2, 0, len(text) - 1, len(text) // 3}, reverse=True)
    for at in places:
        follower = _follower(text[at])
        if follower != text[at]:
            yield text[:at] + follower + text[at + 1 :]
    yield text[:-1]
    yield text + text[-1]
    yield text + text
    middle = len(text) // 2
    yield text[middle:] + text[:middle]


def _follower(letter: str) -> str:
    """The next letter or digit of its kind; any other character stays."""
    for run in _RUNS:
        if letter in run:
            return run[(run.index(letter) + 1) % len(run)]
    return letter


def _lists(items: list[Any], depth: int) -> Iterator[list[Any]]:
    if not items:
        return
    yield items[:-1]
    yield items[::-1]
    yield [*items, items[0]]
    for at, item in enumerate(items[:MAX_ITEMS]):
        for changed in list(_changed(item, depth + 1))[:MAX_ITEMS]:
            yield [*items[:at], changed, *items[at + 1 :]]
