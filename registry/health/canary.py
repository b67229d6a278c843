"""Whether a new version does worse than the one before it. A pure rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CALLS = 20
"""How many counted reads a new version is watched for."""
FEWEST = 2
"""One failure says little; of so many the rate is compared."""
WORSE = 0.15
"""How much more of its calls may fail, of 1."""

Judgement = Literal["going on", "kept", "worse"]


@dataclass(frozen=True)
class Tally:
    """Counted outcomes."""

    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.failed

    @property
    def failing(self) -> float:
        return self.failed / self.total if self.total else 0.0


@dataclass(frozen=True)
class Trial:
    """A new version of a server on trial: reads go to it, and where it fails them by its own fault
    to `previous`, until `calls` of them are counted.
    """

    entry: str
    version: int
    previous: int
    began: float
    calls: int = CALLS
    new: Tally = Tally()
    old: Tally = Tally()
    ended: float | None = None
    outcome: str = ""


def judged(trial: Trial) -> Judgement:
    """What becomes of a trial. `worse` where it fails two calls more often than its predecessor in
    its last window, or all of its first two.
    """
    new, old = trial.new, trial.old
    if new.failed >= FEWEST and new.failing > old.failing + WORSE:
        return "worse"
    return "kept" if new.total >= trial.calls else "going on"
