"""The static stage: runs all rules and bandit on a bundle."""

from __future__ import annotations

import ast
import io
import time
import warnings
from collections.abc import Callable, Iterator, Set

from sandbox.bundle.model import Bundle
from sandbox.bundle.packages import collect_modules
from sandbox.bundle.report import Finding, StageReport, finding_at
from sandbox.bundle.source import ParsedSource, UnparsableSource, parse_source
from sandbox.stages.static import claims, code, declared, definitions

# Importing bandit makes its dependency stevedore warn, and replaces the interpreter's format of
# warnings for the whole process; both stay behind this line.
_format = warnings.formatwarning
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from bandit.core.config import BanditConfig  # type: ignore[import-untyped]
    from bandit.core.manager import BanditManager  # type: ignore[import-untyped]
warnings.formatwarning = _format

FILE = "./server.py"
SKIPPED = frozenset({"B101", "B105", "B106", "B107"})
"""B101 (assert) is about optimised byte code, which the sandbox does not run. B105 to B107 take any
text beside a name such as `token` for a password; `declared.plain_secret` looks at the text.
"""


def run_bandit(code: str) -> Iterator[tuple[int, str, str]]:
    """Line, test id and message of every finding of bandit. `# nosec` is ignored."""
    manager = BanditManager(
        BanditConfig(), "file", ignore_nosec=True, profile={"exclude": sorted(SKIPPED)}
    )
    try:
        manager._parse_file(FILE, io.BytesIO(code.encode()), [FILE])
    finally:
        _unmark_shared_nodes()
    for _, reason in manager.skipped:
        yield 0, "unread", str(reason)
    for issue in manager.results:
        yield issue.lineno, issue.test_id, issue.text


def _unmark_shared_nodes() -> None:
    """Take bandit's marks off the nodes that all syntax trees of a process share: `_bandit_parent`
    of `Load` would keep a stranger's tree, which whoever copies any other tree would copy along.
    """
    for node in _SHARED_NODES:
        vars(node).clear()


_SHARED = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
_EVERY_KIND = """
del a
a = b and c or d
a + b - c * d / e // f % g ** h @ i << j >> k | l & m ^ n
not a, -a, +a, ~a
a == b != c < d <= e > f >= g is h is not i in j not in k
"""
_SHARED_NODES = tuple(
    node for node in ast.walk(ast.parse(_EVERY_KIND)) if isinstance(node, _SHARED)
)


MAX_FINDINGS = 200
MAX_DETAIL = 300


def prove_static(bundle: Bundle, available: Set[str] | None = None) -> StageReport:
    """Check a bundle without running it; any finding fails the stage.

    `available` are the modules of the engine it is to run on, where that has not all of them.
    """
    started = time.perf_counter()
    findings = tuple(_limit_findings(_check_bundle(bundle, available)))
    return StageReport(
        stage="static",
        verdict="failed" if findings else "passed",
        elapsed_ms=(time.perf_counter() - started) * 1000,
        findings=findings,
    )


def prove_definitions(bundle: Bundle) -> StageReport:
    """Check only the tool definitions of a bundle that has no code yet."""
    started = time.perf_counter()
    findings = tuple(_limit_findings(_check_definitions(bundle)))
    elapsed = (time.perf_counter() - started) * 1000
    return StageReport("static", "failed" if findings else "passed", elapsed, findings=findings)


def _limit_findings(found: Iterator[Finding]) -> Iterator[Finding]:
    for number, finding in enumerate(found):
        if number == MAX_FINDINGS:
            yield Finding(finding.file, "", "too-many", f"more than {MAX_FINDINGS} findings")
            return
        yield finding


def _check_definitions(bundle: Bundle) -> Iterator[Finding]:
    for rule in (*definitions.RULES, *claims.RULES):
        for where, detail in rule(bundle):
            yield Finding(
                "tools.json", where[:MAX_DETAIL], _get_rule_name(rule), _format_reason(rule, detail)
            )


def _check_bundle(bundle: Bundle, available: Set[str] | None) -> Iterator[Finding]:
    yield from _check_definitions(bundle)
    source = parse_source(bundle.source_code, collect_modules(bundle.packages))
    if isinstance(source, UnparsableSource):
        yield finding_at("server.py", source.line, "syntax", source.reason[:MAX_DETAIL])
        return
    yield from _check_code(source, bundle)
    for line, module in code.absent(source, available) if available is not None else ():
        reason = _format_reason(code.absent, f"{module}; leave it out, or use --engine docker")
        yield finding_at("server.py", line, _get_rule_name(code.absent), reason)


def _check_code(source: ParsedSource, bundle: Bundle) -> Iterator[Finding]:
    for rule in code.RULES:
        for line, detail in rule(source):
            yield finding_at("server.py", line, _get_rule_name(rule), _format_reason(rule, detail))
    for judge in (definitions.mismatches, declared.undeclared_use, declared.plain_secret):
        for line, detail in judge(source, bundle):
            yield finding_at(
                "server.py", line, _get_rule_name(judge), _format_reason(judge, detail)
            )
    for line, test, message in run_bandit(bundle.source_code):
        yield finding_at("server.py", line, f"bandit-{test}", message[:MAX_DETAIL])


def _get_rule_name(rule: Callable[..., object]) -> str:
    return rule.__name__.replace("_", "-")


def _format_reason(rule: Callable[..., object], detail: str) -> str:
    finding = (rule.__doc__ or "").partition("\n")[0].rstrip(".")
    return f"{finding}: {detail}"[:MAX_DETAIL]
