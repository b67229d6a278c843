"""Numbers that limit a field from above or below: `under 20000`, `between 5 and 9`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from itertools import pairwise
from typing import Any

from orchestrator.tasks.reading.assignment import Assignment
from orchestrator.tasks.reading.fitting import NOTHING, fit_value
from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.values import Value
from registry.search.words import split_words

_MOST = frozenset("max maximum lte lt le most upper below under ceiling".split())
_LEAST = frozenset("min minimum gte gt ge least lower above over floor".split())
_BELOW = re.compile(
    r"(?<!\bnot )(?<!\bno )\b(?:under|below|(?:less|fewer|cheaper|lower|smaller|shorter|younger|"
    r"lighter)\s+than|at\s+most|up\s+to|(?:no|not)\s+(?:more|over|above)(?:\s+than)?|"
    r"max(?:imum|imal)?(?:\s+[a-z]+)?(?:\s+of)?|(?<!\w)<=?)\s*\Z"
)
_ABOVE = re.compile(
    r"(?<!\bnot )(?<!\bno )\b(?:over|above|(?:more(?:\s+expensive)?|greater|higher|larger|bigger|"
    r"longer|older|heavier|dearer)\s+than|at\s+least|(?:no|not)\s+(?:less|under|below)(?:\s+than)?|"
    r"min(?:imum|imal)?(?:\s+[a-z]+)?(?:\s+of)?|(?<!\w)>=?)\s*\Z"
)
_RANGE = re.compile(r"\b(?:between|from)\s+\Z")
_JOINED = re.compile(r"\s+(?:and|to|until|up\s+to)\s+")
_FIELDS: Mapping[str, frozenset[str]] = {
    "cheaper": frozenset("price cost amount fee rate total".split()),
    "expensive": frozenset("price cost amount fee rate total".split()),
    "dearer": frozenset("price cost amount fee rate total".split()),
    "longer": frozenset("length duration minutes hours seconds days".split()),
    "shorter": frozenset("length duration minutes hours seconds days height".split()),
    "older": frozenset({"age"}),
    "younger": frozenset({"age"}),
    "heavier": frozenset({"weight", "mass"}),
    "lighter": frozenset({"weight", "mass"}),
}
"""What is compared by a word that says it."""


def read_bounds(state: Assignment) -> None:
    """A number behind a comparison, for the one parameter that bounds a field on that side. Where
    the task does not name the field, it may be another one's.
    """
    free = state.list_free()
    for _, value in free:
        before = state.lower[max(0, value.start - 40) : value.start]
        for side, said in ((_MOST, _BELOW.search(before)), (_LEAST, _ABOVE.search(before))):
            if value.kind == "number" and said is not None:
                _assign_bound(
                    state, value, side, state.task[value.start - len(said[0]) : value.end]
                )
    for (_, low), (_, high) in pairwise(free):
        joined = _JOINED.fullmatch(state.lower, low.end, high.start)
        before = state.lower[max(0, low.start - 12) : low.start]
        said = _RANGE.search(before)
        if low.kind == high.kind == "number" and joined and said is not None:
            evidence = state.task[low.start - len(said[0]) : high.end]
            _assign_bound(state, low, _LEAST, evidence)
            _assign_bound(state, high, _MOST, evidence)


def _assign_bound(state: Assignment, value: Value, side: Set[str], evidence: str) -> None:
    compared = next(
        (_FIELDS[word] for word in split_words(evidence) if word in _FIELDS), frozenset()
    )
    named = {*split_words(state.lower)} | compared
    fitting = list(_list_bounds(state, value, side))
    about = [each for each in fitting if _find_field(each[0], side) & named]
    if len(about or fitting) != 1 or (compared and not about):
        return
    ((parameter, fitted),) = about or fitting
    at = next(at for at, each in enumerate(state.values) if each is value)
    state.assign(parameter, fitted, evidence, [at])
    if not about:
        state.doubtful.append(parameter.name)


def _list_bounds(
    state: Assignment, value: Value, side: Set[str]
) -> Iterator[tuple[ToolParameter, Any]]:
    for parameter in state.list_open():
        if parameter.is_numeric and not parameter.is_counting and side & {*parameter.words}:
            fitted = fit_value(value, parameter, is_named=False)
            if fitted is not NOTHING:
                yield parameter, fitted


def _find_field(parameter: ToolParameter, side: Set[str]) -> Set[str]:
    """The words of a bound's name for what it bounds: `price` of `max_price`."""
    return {*parameter.words} - side
