"""The static stage of a bundle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set

from sandbox.bundle import Bundle
from sandbox.dependency import modules_of
from sandbox.report import Finding, StageReport
from sandbox.static import claims, code, declared, definitions
from sandbox.static.security import bandit_findings
from sandbox.static.source import Source, Unparsable, parse

MAX_FINDINGS = 200
MAX_DETAIL = 300


def prove_static(bundle: Bundle, available: Set[str] | None = None) -> StageReport:
    """Judge a bundle without running it: any finding fails the stage.

    `available` are the modules of the engine it is to run on, where that has not all of them.
    """
    started = time.perf_counter()
    findings = tuple(_bounded(_findings(bundle, available)))
    return StageReport(
        stage="static",
        verdict="failed" if findings else "passed",
        elapsed_ms=(time.perf_counter() - started) * 1000,
        findings=findings,
    )


def prove_definitions(bundle: Bundle) -> StageReport:
    """Judge the tools alone of a bundle whose code is yet to come."""
    started = time.perf_counter()
    findings = tuple(_bounded(_definition_findings(bundle)))
    elapsed = (time.perf_counter() - started) * 1000
    return StageReport("static", "failed" if findings else "passed", elapsed, findings=findings)


def _bounded(found: Iterator[Finding]) -> Iterator[Finding]:
    for number, finding in enumerate(found):
        if number == MAX_FINDINGS:
            yield Finding(finding.file, "", "too-many", f"more than {MAX_FINDINGS} findings")
            return
        yield finding


def _definition_findings(bundle: Bundle) -> Iterator[Finding]:
    for rule in (*definitions.RULES, *claims.RULES):
        for where, detail in rule(bundle):
            yield Finding("tools.json", where[:MAX_DETAIL], _name(rule), _reason(rule, detail))


def _findings(bundle: Bundle, available: Set[str] | None) -> Iterator[Finding]:
    yield from _definition_findings(bundle)
    source = parse(bundle.source_code, modules_of(bundle.packages))
    if isinstance(source, Unparsable):
        yield Finding("server.py", f"line {source.line}", "syntax", source.reason[:MAX_DETAIL])
        return
    yield from _code_findings(source, bundle)
    for line, module in code.absent(source, available) if available is not None else ():
        reason = _reason(code.absent, f"{module}; leave it out, or use --engine docker")
        yield Finding("server.py", f"line {line}", _name(code.absent), reason)


def _code_findings(source: Source, bundle: Bundle) -> Iterator[Finding]:
    for rule in code.RULES:
        for line, detail in rule(source):
            yield Finding("server.py", f"line {line}", _name(rule), _reason(rule, detail))
    for judge in (definitions.mismatches, declared.undeclared_use):
        for line, detail in judge(source, bundle):
            yield Finding("server.py", f"line {line}", _name(judge), _reason(judge, detail))
    for line, test, message in bandit_findings(bundle.source_code):
        yield Finding("server.py", f"line {line}", f"bandit-{test}", message[:MAX_DETAIL])


def _name(rule: Callable[..., object]) -> str:
    return rule.__name__.replace("_", "-")


def _reason(rule: Callable[..., object], detail: str) -> str:
    finding = (rule.__doc__ or "").partition("\n")[0].rstrip(".")
    return f"{finding}: {detail}"[:MAX_DETAIL]
