"""The static stage: runs all rules and bandit on a bundle."""

from __future__ import annotations

import ast
import io
import time
import warnings
from collections.abc import Callable, Iterator, Set
from itertools import zip_longest
from typing import IO, Any

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
    from bandit.core.node_visitor import BanditNodeVisitor  # type: ignore[import-untyped]
warnings.formatwarning = _format

FILE = "./server.py"
SKIPPED = frozenset({"B101", "B105", "B106", "B107"})
"""B101 (assert) is about optimised byte code, which the sandbox does not run. B105 to B107 take any
text beside a name such as `token` for a password; `declared.plain_secret` looks at the text.
"""


def run_bandit(source: ParsedSource, code: str) -> Iterator[tuple[int, str, str]]:
    """Line, test id and message of every finding of bandit in a parsed code. `# nosec` is ignored.

    Bandit marks the nodes of the tree with their parents.
    """
    manager = _Manager(source.tree)
    manager._parse_file(FILE, io.BytesIO(code.encode()), [FILE])
    for _, reason in manager.skipped:
        yield 0, "unread", str(reason)
    for issue in manager.results:
        yield issue.lineno, issue.test_id, issue.text


class _Visitor(BanditNodeVisitor):  # type: ignore[misc]
    """Bandit's visitor, which does nothing at nodes that no test is about: they are nine in ten.

    It leaves nodes without fields alone, since all syntax trees of a process share them:
    a `_bandit_parent` of `Load` would keep a stranger's tree.
    """

    def generic_visit(self, node: Any) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            children = value if isinstance(value, list) else [value]
            for child, sibling in zip_longest(children, children[1:]):
                if isinstance(child, ast.AST) and child._fields:
                    self._visit_child(child, node, sibling)

    def _visit_child(self, child: Any, parent: ast.AST, sibling: object) -> None:
        child._bandit_parent, child._bandit_sibling = parent, sibling
        name = type(child).__name__
        if not hasattr(self, f"visit_{name}") and not self.testset.get_tests(name):
            self.generic_visit(child)
        elif self.pre_visit(child):
            self.visit(child)
            self.generic_visit(child)
            self.post_visit(child)

    def update_scores(self, scores: object) -> None:
        """Sum nothing up: only findings are read."""


class _Manager(BanditManager):  # type: ignore[misc]
    """Bandit on a tree that is parsed already."""

    def __init__(self, tree: ast.Module) -> None:
        profile = {"exclude": sorted(SKIPPED)}
        super().__init__(BanditConfig(), "file", ignore_nosec=True, profile=profile)
        self._tree = tree

    def _execute_ast_visitor(self, name: str, file: IO[bytes], code: bytes, nosec: Any) -> Any:
        visitor = _Visitor(name, file, self.b_ma, self.b_ts, self.debug, nosec, self.metrics)
        visitor.generic_visit(self._tree)
        scores = visitor.process(b"")  # The tests of whole files, which read `file`.
        self.results.extend(visitor.tester.results)
        return scores


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
    for line, test, message in run_bandit(source, bundle.source_code):
        yield finding_at("server.py", line, f"bandit-{test}", message[:MAX_DETAIL])


def _get_rule_name(rule: Callable[..., object]) -> str:
    return rule.__name__.replace("_", "-")


def _format_reason(rule: Callable[..., object], detail: str) -> str:
    finding = (rule.__doc__ or "").partition("\n")[0].rstrip(".")
    return f"{finding}: {detail}"[:MAX_DETAIL]
