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
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, split_words

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
_MONEY = frozenset("price cost amount fee rate total".split())
_LENGTH = frozenset("length duration minutes hours seconds days".split())
_FIELDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys("cheaper expensive dearer cost costs costing priced".split(), _MONEY),
    **dict.fromkeys("longer shorter".split(), _LENGTH),
    **dict.fromkeys("older younger".split(), frozenset({"age"})),
    **dict.fromkeys("heavier lighter".split(), frozenset({"weight", "mass"})),
}
"""What is compared by a word that says it."""


def read_named_bounds(state: Assignment) -> None:
    """A number behind a comparison, for the one parameter that bounds on that side the field that
    the task compares: `boats that cost at most 90`.
    """
    _read_bounds(state, is_named=True)


def read_bounds(state: Assignment) -> None:
    """A number behind a comparison, for the one parameter that bounds a field on that side; it may
    be meant for another field.
    """
    _read_bounds(state, is_named=False)


def _read_bounds(state: Assignment, *, is_named: bool) -> None:
    free = state.list_free()
    for _, value in free:
        before = state.lower[max(0, value.start - 40) : value.start]
        for side, said in ((_MOST, _BELOW.search(before)), (_LEAST, _ABOVE.search(before))):
            if value.kind == "number" and said is not None:
                evidence = state.task[value.start - len(said[0]) : value.end]
                _assign_bound(state, value, side, evidence, is_named)
    for (_, low), (_, high) in pairwise(free):
        joined = _JOINED.fullmatch(state.lower, low.end, high.start)
        before = state.lower[max(0, low.start - 12) : low.start]
        said = _RANGE.search(before)
        if low.kind == high.kind == "number" and joined and said is not None:
            evidence = state.task[low.start - len(said[0]) : high.end]
            _assign_bound(state, low, _LEAST, evidence, is_named)
            _assign_bound(state, high, _MOST, evidence, is_named)


def _assign_bound(
    state: Assignment, value: Value, side: Set[str], evidence: str, is_named: bool
) -> None:
    said = _find_said_field(state, state.lower.rfind(evidence.lower(), 0, value.end))
    words = [*split_words(evidence), *said]
    compared = next((_FIELDS[word] for word in words if word in _FIELDS), frozenset(said))
    named = {*split_words(state.lower)} | compared
    fitting = list(_list_bounds(state, value, side))
    about = [each for each in fitting if _find_field(each[0], side) & (compared or named)]
    if len(about or fitting) != 1 or ((compared or is_named) and not about):
        return
    ((parameter, fitted),) = about or fitting
    at = next(at for at, each in enumerate(state.values) if each is value)
    state.assign(parameter, fitted, evidence, [at])
    if not about:
        state.doubtful.append(parameter.name)


def _find_said_field(state: Assignment, start: int) -> tuple[str, ...]:
    """The word for a field right before a comparison: `length` of `boats with length over 8`, none
    of `boats over 8`.
    """
    found = _WORD_BEFORE.search(state.lower[max(0, start - 40) : max(0, start)])
    word = found[1] if found is not None else ""
    known = STOP_WORDS | w.READING_VERBS | {"and", "or", "but", "with"}
    things = {*state.things, *(f"{each}s" for each in state.things)}
    plural = word.endswith("s") and word not in _FIELDS
    return () if not word or plural or word in known | things else (word,)


_WORD_BEFORE = re.compile(r"\b([^\W\d_]+)\s+(?:(?:of|is|are|being)\s+){0,2}\Z")


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
