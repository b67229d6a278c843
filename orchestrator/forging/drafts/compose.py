"""Composes the next draft of a job from what was submitted, the parent and earlier drafts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.drafts.draft import Draft, parse_draft
from forge.drafts.held_out import merge_cases
from forge.drafts.inherit import find_definitions
from forge.drafts.suite import (
    find_tests_about,
    find_tests_at,
    is_test_named,
    list_tests,
    remove_dropped_tests,
    remove_imports,
)
from registry.models import DraftRow
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.schemas.validator import SchemaViolation

CONTENT = ("code", "tools", "cases", "tests", "packages", "acceptance", "api", "why")
KEPT = ("tools", "cases", "tests", "packages", "acceptance", "api")
"""What a draft takes over from the job's draft before it where it says nothing of it."""
DECLINE = "decline"
"""The key that stands in place of all content: why the server is not to be written."""
MAX_REASON = 1_000
EARLIER = "earlier_tests"
"""The key of a kept draft's content that names the tests which its own text of tests did not have.
"""


@dataclass(frozen=True)
class ParentServer:
    """The bundle that a draft changes, with its examples and tests."""

    bundle: Bundle
    examples: tuple[Example, ...]
    suite: str = ""


def read_kept_draft(
    content: Mapping[str, Any],
    parent: ParentServer | None,
    earlier: str,
    free: Collection[str] = (),
) -> Draft | tuple[SchemaViolation, ...]:
    """`earlier` are the tests that must not be lost, `free` those of them that may change."""
    if parent is None:
        return parse_draft(content, earlier=earlier, free=free)
    return parse_draft(content, parent.bundle, parent.examples, earlier, free)


def compose_draft(
    given: Mapping[str, Any], parent: ParentServer | None, drafts: Sequence[DraftRow]
) -> tuple[dict[str, Any], Draft | tuple[SchemaViolation, ...]]:
    """A draft's content, with what it takes over from the one before, and the draft in it, or what
    is wrong with it.
    """
    content = {key: given[key] for key in CONTENT if key in given}
    readable = [row for row in drafts if row.reports or not row.verdict]
    before = readable[-1].content if readable else {}
    respecifies = _is_respecified(given, drafts)
    # What is shown of a specification that was sent back is the newest, read or not.
    content = _select_kept(drafts[-1].content if respecifies else before) | content
    gone = find_removed_tools(given, before)
    for key in ("cases", "acceptance"):
        if key in content and key not in given:
            content[key] = drop_tool_cases(content[key], gone)
    if "tests" not in given and isinstance(content.get("tests"), str):
        content["tests"] = remove_dropped_tests(content["tests"], str(given.get("why", "")))
    earlier = before.get("tests", "") or (parent.suite if parent else "")
    if "code" not in given and (code := _find_code(content, parent, readable)):
        content["code"] = code
    elif "code" not in given and not respecifies:
        # Tests that are there already are no sign that code is to come.
        content |= {"tests": given.get("tests", "")}
    draft = read_kept_draft(content, parent, earlier, _find_rejected_tests(readable))
    if isinstance(draft, Draft):
        if left := _find_orphan_tests(draft, gone):
            return content, left
        if gone:
            draft = replace(draft, tests=remove_imports(draft.tests, gone))
        content |= {"tests": draft.tests} if draft.tests else {}
        if not draft.is_specification:
            content.setdefault("code", "")
        if given.get("tests"):
            own = {*list_tests(given["tests"])}
            content[EARLIER] = [name for name in list_tests(draft.tests) if name not in own]
    return content, draft


def find_removed_tools(given: Mapping[str, Any], before: Mapping[str, Any]) -> frozenset[str]:
    """The tools of an earlier draft's content that a draft leaves out and says so of."""
    if "tools" not in given:
        return frozenset()
    why = str(given.get("why", ""))
    lost = _list_tool_names(before.get("tools")) - _list_tool_names(given["tools"])
    return frozenset(name for name in lost if is_test_named(name, why))


def drop_tool_cases(cases: Any, gone: Collection[str]) -> Any:
    """The cases but for those of tools that are gone."""
    if not isinstance(cases, list):
        return cases
    return [case for case in cases if not (isinstance(case, dict) and case.get("tool") in gone)]


def add_earlier_cases(given: Mapping[str, Any], before: DraftRow) -> Mapping[str, Any]:
    """What is given for code's next draft, its cases added to those of the draft before; of these,
    none stays that was sent back because no code is proved by it, or whose tool is taken out.
    """
    if "code" not in given or "cases" not in given:
        return given
    gone = find_removed_tools(given, before.content)
    kept = drop_tool_cases(_drop_unfit_cases(before), gone)
    return {**given, "cases": merge_cases(kept, given["cases"])}


def _drop_unfit_cases(row: DraftRow) -> Any:
    """A draft's cases but for those of which the stages said that they prove nothing."""
    cases = row.content.get("cases")
    cells = [cell for report in row.reports for cell in report.cases if cell.example]
    unfit = {(c.operation, c.example) for c in cells if c.code == "proves_nothing"}
    if not unfit or not isinstance(cases, list):
        return cases
    turn: Counter[str] = Counter()
    fit = []
    for case in cases:
        tool = str(case.get("tool")) if isinstance(case, dict) else ""
        turn[tool] += 1
        if (tool, turn[tool]) not in unfit:
            fit.append(case)
    return fit


def _select_kept(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: content[key] for key in KEPT if key in content}


def _is_respecified(given: Mapping[str, Any], drafts: Sequence[DraftRow]) -> bool:
    """Whether what is mended is a specification that did not hold."""
    last = drafts[-1] if drafts else None
    return (
        last is not None
        and "code" not in given
        and "code" not in last.content
        and last.verdict != "passed"
    )


def _find_rejected_tests(readable: Sequence[DraftRow]) -> frozenset[str]:
    """The tests of the newest draft that have to change: they prove nothing, or are no tests that
    can be run.
    """
    if not readable:
        return frozenset()
    suites = [report for report in readable[-1].reports if report.stage == "suite"]
    cells = [cell for report in suites for cell in report.cases]
    lines = [found.line for report in suites for found in report.findings if found.line]
    unfit = find_tests_at(str(readable[-1].content.get("tests", "")), lines)
    return frozenset(unfit) | {c.case for c in cells if c.code == "proves_nothing"}


def _find_orphan_tests(draft: Draft, gone: Collection[str]) -> tuple[SchemaViolation, ...]:
    """The tests that would stay without their tool."""
    return tuple(
        SchemaViolation(
            "/tests", f"{name} is about a tool that is taken out: say `drop {name}` in `why`"
        )
        for name in find_tests_about(draft.tests, gone)
    )


def _list_tool_names(tools: Any) -> frozenset[str]:
    listed = tools if isinstance(tools, list) else []
    found = (tool.get("name") for tool in listed if isinstance(tool, dict))
    return frozenset(name for name in found if isinstance(name, str))


def _find_code(
    content: Mapping[str, Any], parent: ParentServer | None, drafts: Sequence[DraftRow]
) -> str:
    """The newest code of the drafts, where it or the parent has every tool; else ""."""
    code = next((row.content["code"] for row in reversed(drafts) if row.content.get("code")), "")
    known = {*(find_definitions(code) or ())}
    known |= {tool.name for tool in parent.bundle.tools} if parent else set()
    tools = content.get("tools")
    named = [t.get("name") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return code if all(isinstance(name, str) and name in known for name in named) else ""
