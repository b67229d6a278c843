"""Judging a new version on trial against the one before it. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CALLS = 20
"""Counted reads after which a trial ends."""
FEWEST = 2
"""Failures from which on the rates are compared; a single one says little."""
WORSE = 0.15
"""By how much the share of failed calls may be higher (0..1)."""

Judgement = Literal["going on", "kept", "worse"]


@dataclass(frozen=True)
class OutcomeCounts:
    """Numbers of succeeded and failed calls that count."""

    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.failed

    @property
    def failure_rate(self) -> float:
        return self.failed / self.total if self.total else 0.0


@dataclass(frozen=True)
class CanaryTrial:
    """A new version of a server on trial: reads go to it, and where it fails them by its own fault
    to `previous`, until `calls` of them are counted.
    """

    entry: str
    version: int
    previous: int
    began: float
    calls: int = CALLS
    new: OutcomeCounts = OutcomeCounts()
    old: OutcomeCounts = OutcomeCounts()
    ended: float | None = None
    outcome: str = ""


def judge_trial(trial: CanaryTrial) -> Judgement:
    """`worse` where at least FEWEST calls failed and the failure rate is higher than the previous
    version's by more than WORSE; `kept` after `trial.calls` calls; else `going on`.
    """
    new, old = trial.new, trial.old
    if new.failed >= FEWEST and new.failure_rate > old.failure_rate + WORSE:
        return "worse"
    return "kept" if new.total >= trial.calls else "going on"
