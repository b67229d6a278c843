"""What is wrong with a draft, as its author can use it: where, what went in, what came out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sandbox.report import CaseResult, Finding, Proof, StageReport

MAX_TOLD = 8
MAX_FIELD = 400
MAX_LISTED = 1_600
"""The longest reason that is a list: the changes to the code which no test noticed."""
AROUND = 1
_LINE = re.compile(r"\bline (\d{1,6})\b")


@dataclass(frozen=True)
class Diagnosis:
    """One thing wrong: the stage that found it, the tool or file and the case, the reason; what was
    given, expected and got, and the lines of `server.py` it is about, where there are such.
    """

    stage: str
    where: str
    case: str
    reason: str
    given: str = ""
    expected: str = ""
    got: str = ""
    excerpt: str = ""

    def text(self) -> str:
        """The diagnosis in a few lines."""
        at = f"{self.where}, {self.case}" if self.case else self.where
        parts = [f"[{self.stage}] {at}: {self.reason}"]
        for label, value in (
            ("given", self.given),
            ("expected", self.expected),
            ("got", self.got),
        ):
            if value:
                parts.append(f"  {label}: {value}")
        parts += [f"  | {line}" for line in self.excerpt.splitlines()]
        return "\n".join(parts)


def diagnose(proof: Proof, code: str, earlier_tests: Collection[str] = ()) -> tuple[Diagnosis, ...]:
    """What failed, the first of each tool before the second of any, at most MAX_TOLD.

    `earlier_tests` are those that the author's own text of tests did not have.
    """
    found = [_sourced(d, earlier_tests) for r in proof.reports for d in _of_stage(r, code)]
    turn: dict[str, int] = {}
    ordered = []
    for diagnosis in found:
        turn[diagnosis.where] = turn.get(diagnosis.where, 0) + 1
        ordered.append((turn[diagnosis.where], diagnosis))
    ordered.sort(key=lambda pair: pair[0])
    return tuple(diagnosis for _, diagnosis in ordered[:MAX_TOLD])


def _sourced(diagnosis: Diagnosis, earlier_tests: Collection[str]) -> Diagnosis:
    name = diagnosis.case.partition("[")[0]
    if name not in earlier_tests:
        return diagnosis
    told = f"{diagnosis.reason} (it is from an earlier draft; `drop {name}` in why removes it)"
    return replace(diagnosis, reason=told)


def _of_stage(report: StageReport, code: str) -> Iterator[Diagnosis]:
    for finding in report.findings:
        yield _of_finding(report, finding, code)
    for case in report.failures():
        yield _of_case(report, case, code)


def _of_finding(report: StageReport, finding: Finding, code: str) -> Diagnosis:
    where = f"{finding.file} {finding.where}".strip()
    said = f"{finding.where} {finding.reason}" if finding.file == "server.py" else ""
    reason = f"{finding.reason} ({finding.rule})"
    return Diagnosis(report.stage, where, "", reason[:MAX_FIELD], excerpt=_excerpt(code, said))


def _of_case(report: StageReport, case: CaseResult, code: str) -> Diagnosis:
    longest = MAX_LISTED if report.stage == "adequacy" else MAX_FIELD
    return Diagnosis(
        stage=report.stage,
        where=case.operation,
        case=case.case,
        reason=case.evidence[:longest],
        given=case.given[:MAX_FIELD],
        expected=case.expected[:MAX_FIELD],
        got=case.got[:MAX_FIELD],
        # What the task is quoted with may well speak of lines of something else.
        excerpt="" if report.stage == "acceptance" else _excerpt(code, case.evidence),
    )


def _excerpt(code: str, said: str) -> str:
    """The lines of code around the one that a text names."""
    named = _LINE.search(said)
    if not named or not int(named[1]):
        return ""
    at, lines = int(named[1]), code.splitlines()
    shown = range(max(1, at - AROUND), min(len(lines), at + AROUND) + 1)
    return "\n".join(f"{number}: {lines[number - 1][:160]}" for number in shown)
