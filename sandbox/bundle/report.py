"""Reports of the stages: a matrix of operations and cases, with evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sandbox.bundle.widening import Widening

Stage = Literal[
    "static", "suite", "cases", "adequacy", "mock", "recorded", "live", "redteam", "acceptance"
]
Verdict = Literal["passed", "failed", "inconclusive", "skipped"]
CaseCode = Literal["", "proves_nothing"]
"""Reasons of a cell that decide something: `proves_nothing` is said of a test or an example that a
server without sense would pass too.
"""
ReportCode = Literal["", "read_independently"]
"""Reasons of a stage that decide something: `read_independently` is said where the claims of the
acceptance stage are of a reader other than the draft's author.
"""


@dataclass(frozen=True)
class Finding:
    """A located problem: a file, a pointer or line in it, the rule broken, and the reason. `line`
    is 0 where it is about none.
    """

    file: str
    where: str
    rule: str
    reason: str
    line: int = 0


@dataclass(frozen=True)
class CaseResult:
    """One cell of the matrix. `evidence` is short: request line, status, difference.

    Where code was called with arguments of somebody's choice, `given`, `expected` and `got` are
    what went in, what had to come out and what did, as bounded JSON. `example` counts the examples
    of the operation from 1, and is 0 where the cell is about none; `line` is one of `server.py`, 0
    where none is known.
    """

    operation: str
    case: str
    verdict: Verdict
    evidence: str = ""
    given: str = ""
    expected: str = ""
    got: str = ""
    code: CaseCode = ""
    example: int = 0
    line: int = 0


@dataclass(frozen=True)
class StageReport:
    """The verdict of one stage. `note` says why a stage was skipped or inconclusive.

    `coverage` is the share (0..1) of cells of the matrix that were run. `learned` is what the
    answers of the real API teach of their types.
    """

    stage: Stage
    verdict: Verdict
    elapsed_ms: float
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    coverage: float = 1.0
    note: str = ""
    code: ReportCode = ""
    learned: tuple[Widening, ...] = ()

    @property
    def passed(self) -> bool:
        """True unless the stage failed: skipped and inconclusive do not stand in the way."""
        return self.verdict != "failed"

    def list_failures(self) -> tuple[CaseResult, ...]:
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


def finding_at(file: str, line: int | None, rule: str, reason: str) -> Finding:
    """A problem in a line of a file, where the line is known."""
    return Finding(file, f"line {line}" if line else "", rule, reason, line or 0)


def to_json(report: StageReport) -> dict[str, Any]:
    return asdict(report)


def from_json(data: Mapping[str, Any]) -> StageReport:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    return StageReport(
        **{
            **data,
            "cases": tuple(CaseResult(**case) for case in data["cases"]),
            "findings": tuple(Finding(**finding) for finding in data["findings"]),
            "learned": tuple(
                Widening(one["tool"], one["where"], tuple(one["types"]), tuple(one["values"]))
                for one in data.get("learned", ())
            ),
        }
    )
