"""Where two JSON values part ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from registry.jsontext import canonical

MAX_SHOWN = 300
NOTHING = "nothing"
_ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """`where` is a JSON pointer (RFC 6901); `expected` and `got` are JSON texts, shortened, or
    words where it is no value that differs.
    """

    where: str
    expected: str
    got: str


def first_difference(expected: Any, got: Any, where: str = "") -> Difference | None:
    """The first place where two values differ, of an object's members in the order of their names.

    A number's kind is part of it: 1 and 1.0 differ.
    """
    if expected is not _ABSENT and got is not _ABSENT and canonical(expected) == canonical(got):
        return None
    parts: Iterator[tuple[str, Any, Any]] = iter(())
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        names = sorted({*expected, *got})
        parts = ((_escaped(n), expected.get(n, _ABSENT), got.get(n, _ABSENT)) for n in names)
    elif isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        pairs = zip_longest(expected, got, fillvalue=_ABSENT)
        parts = ((str(place), one, other) for place, (one, other) in enumerate(pairs))
    inner = (first_difference(one, other, f"{where}/{name}") for name, one, other in parts)
    found = next(filter(None, inner), None)
    return found or Difference(where, _shown(expected), _shown(got))


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return NOTHING
    text = canonical(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
