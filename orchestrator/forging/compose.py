"""A draft out of what was handed in, its parent, and the drafts before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.draft import Draft, read_draft
from forge.heldback import merged
from forge.inheritance import definitions
from forge.suite import (
    about,
    is_named,
    test_names,
    tests_at,
    without_dropped,
    without_imports,
)
from registry.records import DraftRow
from sandbox.bundle import Bundle
from sandbox.example import Example
from sandbox.validation import Problem

CONTENT = ("code", "tools", "cases", "tests", "packages", "acceptance", "why")
KEPT = ("tools", "cases", "tests", "packages", "acceptance")
"""What a draft takes over from the job's draft before it where it says nothing of it."""
DECLINE = "decline"
"""The key that stands in place of all content: why the server is not to be written."""
MAX_REASON = 1_000
EARLIER = "earlier_tests"
"""The key of a kept draft's content that names the tests which its own text of tests did not have.
"""
_LINE = re.compile(r"line (\d{1,6})\b")


@dataclass(frozen=True)
class Parent:
    """The bundle that a draft changes, with its examples and tests."""

    bundle: Bundle
    examples: tuple[Example, ...]
    suite: str = ""


def read(
    content: Mapping[str, Any],
    parent: Parent | None,
    earlier: str,
    free: Collection[str] = (),
) -> Draft | tuple[Problem, ...]:
    """`earlier` are the tests that must not be lost, `free` those of them that may change."""
    if parent is None:
        return read_draft(content, earlier=earlier, free=free)
    return read_draft(content, parent.bundle, parent.examples, earlier, free)


def composed(
    given: Mapping[str, Any], parent: Parent | None, drafts: Sequence[DraftRow]
) -> tuple[dict[str, Any], Draft | tuple[Problem, ...]]:
    """A draft's content, with what it takes over from the one before, and the draft in it, or what
    is wrong with it.
    """
    content = {key: given[key] for key in CONTENT if key in given}
    readable = [row for row in drafts if row.reports or not row.verdict]
    before = readable[-1].content if readable else {}
    respecifies = _respecifies(given, drafts)
    # What is shown of a specification that was sent back is the newest, read or not.
    content = _kept(drafts[-1].content if respecifies else before) | content
    gone = taken_out(given, before)
    for key in ("cases", "acceptance"):
        if key in content and key not in given:
            content[key] = without_tools(content[key], gone)
    if "tests" not in given and isinstance(content.get("tests"), str):
        content["tests"] = without_dropped(content["tests"], str(given.get("why", "")))
    earlier = before.get("tests", "") or (parent.suite if parent else "")
    if "code" not in given and (code := _code(content, parent, readable)):
        content["code"] = code
    elif "code" not in given and not respecifies:
        # Tests that are there already are no sign that code is to come.
        content |= {"tests": given.get("tests", "")}
    draft = read(content, parent, earlier, _sent_back(readable))
    if isinstance(draft, Draft):
        if left := _still_about(draft, gone):
            return content, left
        if gone:
            draft = replace(draft, tests=without_imports(draft.tests, gone))
        content |= {"tests": draft.tests} if draft.tests else {}
        if not draft.is_specification:
            content.setdefault("code", "")
        if given.get("tests"):
            own = {*test_names(given["tests"])}
            content[EARLIER] = [name for name in test_names(draft.tests) if name not in own]
    return content, draft


def taken_out(given: Mapping[str, Any], before: Mapping[str, Any]) -> frozenset[str]:
    """The tools of an earlier draft's content that a draft leaves out and says so of."""
    if "tools" not in given:
        return frozenset()
    why = str(given.get("why", ""))
    lost = _names(before.get("tools")) - _names(given["tools"])
    return frozenset(name for name in lost if is_named(name, why))


def without_tools(cases: Any, gone: Collection[str]) -> Any:
    """The cases but for those of tools that are gone."""
    if not isinstance(cases, list):
        return cases
    return [case for case in cases if not (isinstance(case, dict) and case.get("tool") in gone)]


def with_cases(given: Mapping[str, Any], before: DraftRow) -> Mapping[str, Any]:
    """What is given for code's next draft, its cases added to those of the draft before; of these,
    none stays that was sent back because no code is proved by it, or whose tool is taken out.
    """
    if "code" not in given or "cases" not in given:
        return given
    gone = taken_out(given, before.content)
    kept = without_tools(_fit(before), gone)
    return {**given, "cases": merged(kept, given["cases"])}


def _fit(row: DraftRow) -> Any:
    """A draft's cases but for those of which the stages said that they prove nothing."""
    cases = row.content.get("cases")
    cells = [cell for report in row.reports for cell in report.get("cases", ())]
    unfit = {(c.get("operation"), c.get("case")) for c in cells if is_told_of_nothing(c)}
    if not unfit or not isinstance(cases, list):
        return cases
    turn: Counter[str] = Counter()
    fit = []
    for case in cases:
        tool = str(case.get("tool")) if isinstance(case, dict) else ""
        turn[tool] += 1
        if (tool, f"case {turn[tool]}") not in unfit:
            fit.append(case)
    return fit


def _kept(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: content[key] for key in KEPT if key in content}


def _respecifies(given: Mapping[str, Any], drafts: Sequence[DraftRow]) -> bool:
    """Whether what is mended is a specification that did not hold."""
    last = drafts[-1] if drafts else None
    return (
        last is not None
        and "code" not in given
        and "code" not in last.content
        and last.verdict != "passed"
    )


def _sent_back(readable: Sequence[DraftRow]) -> frozenset[str]:
    """The tests of the newest draft that have to change: they prove nothing, or are no tests that
    can be run.
    """
    if not readable:
        return frozenset()
    suites = [report for report in readable[-1].reports if report.get("stage") == "suite"]
    cells = [cell for report in suites for cell in report.get("cases", ())]
    places = [str(f.get("where")) for report in suites for f in report.get("findings", ())]
    lines = [int(found[1]) for place in places if (found := _LINE.match(place))]
    unfit = tests_at(str(readable[-1].content.get("tests", "")), lines)
    return frozenset(unfit) | {str(c.get("case")) for c in cells if is_told_of_nothing(c)}


def is_told_of_nothing(cell: Mapping[str, Any]) -> bool:
    """Whether a stage's cell says that a test proves nothing."""
    return "proves nothing" in str(cell.get("evidence", ""))


def _still_about(draft: Draft, gone: Collection[str]) -> tuple[Problem, ...]:
    """The tests that would stay without their tool."""
    return tuple(
        Problem("/tests", f"{name} is about a tool that is taken out: say `drop {name}` in `why`")
        for name in about(draft.tests, gone)
    )


def _names(tools: Any) -> frozenset[str]:
    listed = tools if isinstance(tools, list) else []
    found = (tool.get("name") for tool in listed if isinstance(tool, dict))
    return frozenset(name for name in found if isinstance(name, str))


def _code(content: Mapping[str, Any], parent: Parent | None, drafts: Sequence[DraftRow]) -> str:
    """The newest code of the drafts, where it or the parent has every tool; else ""."""
    code = next((row.content["code"] for row in reversed(drafts) if row.content.get("code")), "")
    known = {*(definitions(code) or ())}
    known |= {tool.name for tool in parent.bundle.tools} if parent else set()
    tools = content.get("tools")
    named = [t.get("name") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return code if all(isinstance(name, str) and name in known for name in named) else ""
