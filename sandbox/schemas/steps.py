"""The budget of one check of a value: a schema that refers to itself twice doubles at each turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, TypeVar

STEPS, STEPS_PER_VALUE = 10_000, 100
"""In all, and more for each value that the instance holds."""
WORK_PER_STEP = 10_000
"""How many instructions of a pattern (`LinearPattern.work`) are a step."""
MAX_ERRORS = 1_000
"""A value may break its schema a million times; so many are looked for, and so many are kept of
the branches that did not take it. Each takes three kilobytes.
"""

LARGE_VALUES, LARGE_LETTERS = 500, 64 * 1024
T = TypeVar("T")


class Exhausted(Exception):
    """A check has taken all its steps."""


class StepBudget:
    """The steps that a check of a JSON value may take, and has taken."""

    def __init__(self, instance: Any) -> None:
        self._values, letters = _measure(instance)
        self.is_large = self._values > LARGE_VALUES or letters > LARGE_LETTERS
        """Whether writing the value out takes long."""
        self._allowed = self._left = STEPS + STEPS_PER_VALUE * self._values
        self._errors = MAX_ERRORS

    @property
    def effort(self) -> int:
        """The steps taken, and one for each value."""
        return self._allowed - self._left + self._values

    def spend(self) -> None:
        """Take a step. Raises Exhausted where none is left."""
        self._left -= 1
        if self._left < 0:
            raise Exhausted

    def keep(self, errors: Iterable[T]) -> list[T]:
        """As many of these errors as may still be kept, and one where there is any."""
        kept = [*islice(errors, max(1, self._errors))]
        self._errors -= len(kept)
        return kept

    def affords(self, work: int) -> bool:
        """Whether the steps left allow for a pattern's work; they are taken then."""
        steps = work // WORK_PER_STEP
        if steps > self._left:
            return False
        self._left -= steps
        return True


_CURRENT: ContextVar[StepBudget] = ContextVar("budget of the check under way")


@contextmanager
def spending(budget: StepBudget) -> Iterator[None]:
    """Let the check inside take its steps from the budget."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_budget() -> StepBudget:
    """The budget of the check under way."""
    return _CURRENT.get()


def _measure(instance: Any) -> tuple[int, int]:
    """How many values a JSON value holds, itself included, and the letters of its texts."""
    count, letters, pending = 0, 0, [instance]
    while pending:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            letters += len(value)
    return count, letters
