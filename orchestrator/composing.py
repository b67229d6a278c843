"""A draft out of what was handed in, its parent, and the drafts before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forge.draft import Draft, read_draft
from registry.records import DraftRow
from sandbox.bundle import Bundle
from sandbox.example import Example
from sandbox.validation import Problem

CONTENT = ("code", "tools", "cases", "tests", "packages", "why")
KEPT = ("tools", "cases", "tests", "packages")
"""What a draft takes over from the job's draft before it where it says nothing of it."""


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
    if "code" not in given:
        # Tests that are there already are no sign that code is to come.
        content |= {"tests": given.get("tests", "")}
    draft = read(content, parent, earlier)
    if isinstance(draft, Draft):
        content |= {"tests": draft.tests} if draft.tests else {}
        if not draft.is_specification:
            content.setdefault("code", "")
    return content, draft
