"""What a stage found: an operation x case matrix with evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Stage = Literal[
    "static", "suite", "cases", "adequacy", "mock", "recorded", "live", "redteam", "acceptance"
]
Verdict = Literal["passed", "failed", "inconclusive", "skipped"]


@dataclass(frozen=True)
class Finding:
    """A located problem: a file, a pointer or line in it, the rule broken, and the reason."""

    file: str
    where: str
    rule: str
    reason: str


@dataclass(frozen=True)
class CaseResult:
    """One cell of the matrix. `evidence` is short: request line, status, difference.

    Where code was called with arguments of somebody's choice, `given`, `expected` and `got` are
    what went in, what had to come out and what did, as bounded JSON.
    """

    operation: str
    case: str
    verdict: Verdict
    evidence: str = ""
    given: str = ""
    expected: str = ""
    got: str = ""


@dataclass(frozen=True)
class StageReport:
    """The verdict of one stage. `note` says why a stage was skipped or inconclusive.

    `coverage` is the share (0..1) of cells of the matrix that were run.
    """

    stage: Stage
    verdict: Verdict
    elapsed_ms: float
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    coverage: float = 1.0
    note: str = ""

    @property
    def passed(self) -> bool:
        """True unless the stage failed: skipped and inconclusive do not stand in the way."""
        return self.verdict != "failed"

    def failures(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.verdict == "failed")


@dataclass(frozen=True)
class Proof:
    """All stage reports of one bundle version, in the order they ran."""

    bundle_digest: str
    reports: tuple[StageReport, ...] = field(default_factory=tuple)

    @property
    def passed(self) -> bool:
        return bool(self.reports) and all(report.passed for report in self.reports)

    @property
    def admissible(self) -> bool:
        """Whether it may be registered as experimental though a stage failed: never what the static
        stage refuses, which is not fit to run.
        """
        return bool(self.reports) and all(r.passed for r in self.reports if r.stage == "static")


def to_json(report: StageReport) -> dict[str, Any]:
    return asdict(report)


def from_json(data: Mapping[str, Any]) -> StageReport:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    return StageReport(
        **{
            **data,
            "cases": tuple(CaseResult(**case) for case in data["cases"]),
            "findings": tuple(Finding(**finding) for finding in data["findings"]),
        }
    )
