"""Diagnoses of a draft's failures for its author: the place, the input, the expected and the actual
result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sandbox.bundle.report import CaseResult, Finding, Proof, StageReport

MAX_TOLD = 8
MAX_FIELD = 400
MAX_LISTED = 1_600
"""The longest reason that is a list: the changes to the code which no test noticed."""
AROUND = 1
_LINE = re.compile(r"\bline (\d{1,6})\b")


@dataclass(frozen=True)
class Diagnosis:
    """One failure: the stage that found it, the tool or file, the case and the reason; the input,
    the expected and the actual result, and the lines of `server.py` that it concerns, where there
    are such. `example` counts the examples of the tool from 1, and is 0 where it concerns none.
    """

    stage: str
    where: str
    case: str
    reason: str
    given: str = ""
    expected: str = ""
    got: str = ""
    excerpt: str = ""
    example: int = 0

    def render_text(self) -> str:
        """Render the diagnosis as a few lines of text."""
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


def diagnose_proof(
    proof: Proof, code: str, earlier_tests: Collection[str] = ()
) -> tuple[Diagnosis, ...]:
    """Return the failures of a proof, the first of each tool before the second of any, at most
    MAX_TOLD.

    `earlier_tests` are the names of tests that were carried over from earlier drafts.
    """
    found = [
        _mark_earlier_test(d, earlier_tests)
        for r in proof.reports
        for d in _diagnose_stage(r, code)
    ]
    turn: dict[str, int] = {}
    ordered = []
    for diagnosis in found:
        turn[diagnosis.where] = turn.get(diagnosis.where, 0) + 1
        ordered.append((turn[diagnosis.where], diagnosis))
    ordered.sort(key=lambda pair: pair[0])
    return tuple(diagnosis for _, diagnosis in ordered[:MAX_TOLD])


def _mark_earlier_test(diagnosis: Diagnosis, earlier_tests: Collection[str]) -> Diagnosis:
    name = diagnosis.case.partition("[")[0]
    if name not in earlier_tests:
        return diagnosis
    told = f"{diagnosis.reason} (it is from an earlier draft; `drop {name}` in why removes it)"
    return replace(diagnosis, reason=told)


def _diagnose_stage(report: StageReport, code: str) -> Iterator[Diagnosis]:
    for finding in report.findings:
        yield _diagnose_finding(report, finding, code)
    for case in report.list_failures():
        yield _diagnose_case(report, case, code)


def _diagnose_finding(report: StageReport, finding: Finding, code: str) -> Diagnosis:
    where = f"{finding.file} {finding.where}".strip()
    reason = f"{finding.reason} ({finding.rule})"
    at = finding.line or _line_named(finding.reason)
    excerpt = _extract_excerpt(code, at) if finding.file == "server.py" else ""
    return Diagnosis(report.stage, where, "", reason[:MAX_FIELD], excerpt=excerpt)


def _diagnose_case(report: StageReport, case: CaseResult, code: str) -> Diagnosis:
    longest = MAX_LISTED if report.stage == "adequacy" else MAX_FIELD
    acceptance = report.stage == "acceptance"
    return Diagnosis(
        stage=report.stage,
        where=case.operation,
        case=case.case,
        reason=case.evidence[:longest],
        given=case.given[:MAX_FIELD],
        expected=case.expected[:MAX_FIELD],
        got=case.got[:MAX_FIELD],
        # What the task is quoted with may well speak of lines of something else.
        excerpt=""
        if acceptance
        else _extract_excerpt(code, case.line or _line_named(case.evidence)),
        example=case.example,
    )


def _line_named(said: str) -> int:
    """The line that a text names, 0 for none. What runs in the sandbox says where it failed in its
    message alone (docs/runtime-protocol.md, section 2); it decides which lines are shown, no more.
    """
    named = _LINE.search(said)
    return int(named[1]) if named else 0


def _extract_excerpt(code: str, at: int) -> str:
    """The lines of code around one."""
    if not at:
        return ""
    lines = code.splitlines()
    shown = range(max(1, at - AROUND), min(len(lines), at + AROUND) + 1)
    return "\n".join(f"{number}: {lines[number - 1][:160]}" for number in shown)
