"""A draft as an author in a hurry might make it pass: without the tests and cases that it fails."""

from __future__ import annotations

import ast
from typing import Any

from bench.author.operators import Given
from sandbox.bundle.report import Proof


def weakened(draft: Given, proof: Proof) -> dict[str, Any] | None:
    """The draft without what its suite or cases stage says has failed; None where neither did."""
    failed = next((report for report in proof.reports if not report.passed), None)
    if failed is None:
        return None
    names = [cell.case for cell in failed.list_failures()]
    if failed.stage == "suite" and names:
        left = _without(draft.get("tests", ""), {name.partition("[")[0] for name in names})
        return {**draft, "tests": left}
    if failed.stage == "cases":
        lost = {
            (cell.operation, int(cell.case.removeprefix("case ")))
            for cell in failed.list_failures()
            if cell.case.removeprefix("case ").isdigit()
        }
        kept, counts = [], dict[str, int]()
        for case in draft["cases"]:
            counts[case["tool"]] = counts.get(case["tool"], 0) + 1
            if (case["tool"], counts[case["tool"]]) not in lost:
                kept.append(case)
        return {**draft, "cases": kept} if lost else None
    return None


def _without(tests: str, names: set[str]) -> str:
    tree = ast.parse(tests)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.FunctionDef) and n.name in names)]
    has_tests = any(isinstance(node, ast.FunctionDef) for node in tree.body)
    return ast.unparse(tree) + "\n" if has_tests else ""
