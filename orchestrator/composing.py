"""A draft out of what was handed in, its parent, and the drafts before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.draft import Draft, read_draft
from forge.inheritance import definitions
from forge.suite import test_names
from registry.records import DraftRow
from sandbox.bundle import Bundle
from sandbox.example import Example
from sandbox.validation import Problem

CONTENT = ("code", "tools", "cases", "tests", "packages", "why")
KEPT = ("tools", "cases", "tests", "packages")
"""What a draft takes over from the job's draft before it where it says nothing of it."""
EARLIER = "earlier_tests"
"""The key of a kept draft's content that names the tests which its own text of tests did not have.
"""


@dataclass(frozen=True)
class Parent:
    """The bundle that a draft changes, with its examples and tests."""

    bundle: Bundle
    examples: tuple[Example, ...]
    suite: str = ""


def read(
    content: Mapping[str, Any], parent: Parent | None, earlier: str
) -> Draft | tuple[Problem, ...]:
    """`earlier` are the tests that must not be lost."""
    if parent is None:
        return read_draft(content, earlier=earlier)
    return read_draft(content, parent.bundle, parent.examples, earlier)


def composed(
    given: Mapping[str, Any], parent: Parent | None, drafts: Sequence[DraftRow]
) -> tuple[dict[str, Any], Draft | tuple[Problem, ...]]:
    """A draft's content, with what it takes over from the one before, and the draft in it, or what
    is wrong with it.
    """
    content = {key: given[key] for key in CONTENT if key in given}
    readable = [row for row in drafts if row.reports or not row.verdict]
    before = readable[-1].content if readable else {}
    content = {key: before[key] for key in KEPT if key in before} | content
    earlier = before.get("tests", "") or (parent.suite if parent else "")
    if "code" not in given and (code := _code(content, parent, readable)):
        content["code"] = code
    elif "code" not in given:
        # Tests that are there already are no sign that code is to come.
        content |= {"tests": given.get("tests", "")}
    draft = read(content, parent, earlier)
    if isinstance(draft, Draft):
        content |= {"tests": draft.tests} if draft.tests else {}
        if not draft.is_specification:
            content.setdefault("code", "")
        if given.get("tests"):
            own = {*test_names(given["tests"])}
            content[EARLIER] = [name for name in test_names(draft.tests) if name not in own]
    return content, draft


def _code(content: Mapping[str, Any], parent: Parent | None, drafts: Sequence[DraftRow]) -> str:
    """The newest code of the drafts, where it or the parent has every tool; else ""."""
    code = next((row.content["code"] for row in reversed(drafts) if row.content.get("code")), "")
    known = {*(definitions(code) or ())}
    known |= {tool.name for tool in parent.bundle.tools} if parent else set()
    tools = content.get("tools")
    named = [t.get("name") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return code if all(isinstance(name, str) and name in known for name in named) else ""
