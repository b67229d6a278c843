"""Fitting lists of lines into an answer of limited size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.results.shape import measure_json


def fit_lists(
    head: Mapping[str, Any],
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
    most_bytes: int,
    shares: Mapping[str, float],
    counts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The head with the first lines of each list that have room, and under `more` how many each has
    that are not shown, where `counts` says how many a list has of which not all were loaded. Its
    JSON has at most `most_bytes` bytes; the head has to leave room. A list takes at most its share
    (0 to 1, all by default) of what those before it left.
    """
    told: dict[str, Any] = {**head, **{name: [] for name in lists}, "more": {}}
    room = most_bytes - measure_json(told) - sum(len(name) + 12 for name in lists)
    for name, lines in lists.items():
        share = int(room * shares.get(name, 1.0))
        for line in lines:
            size = measure_json(line) + 1
            if size > share:
                break
            told[name].append(line)
            share -= size
            room -= size
        left = (counts or {}).get(name, len(lines)) - len(told[name])
        if left > 0:
            told["more"][name] = left
    return told
