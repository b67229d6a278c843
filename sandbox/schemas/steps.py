"""The budget of one check of a value: a schema that refers to itself twice doubles at each turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

STEPS, STEPS_PER_VALUE = 10_000, 100
"""In all, and more for each value that the instance holds."""
WORK_PER_STEP = 10_000
"""How many instructions of a pattern (`LinearPattern.work`) are a step."""


class Exhausted(Exception):
    """A check has taken all its steps."""


class StepBudget:
    """The steps that a check of a JSON value may take, and has taken."""

    def __init__(self, instance: Any) -> None:
        self._values = _count_values(instance)
        self._allowed = self._left = STEPS + STEPS_PER_VALUE * self._values

    @property
    def effort(self) -> int:
        """The steps taken, and one for each value."""
        return self._allowed - self._left + self._values

    def spend(self) -> None:
        """Take a step. Raises Exhausted where none is left."""
        self._left -= 1
        if self._left < 0:
            raise Exhausted

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


def _count_values(instance: Any) -> int:
    """How many values a JSON value holds, itself included."""
    count, pending = 0, [instance]
    while pending:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return count
