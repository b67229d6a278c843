"""Judging the result of a tool that hands on an API's answer: what arrived is the result.

A difference from the description is told and recorded, and is no failure: an API answers what it
answers, whatever is said of it. A tool without an operation has a schema of its own to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.validator import SchemaViolation
from sandbox.session.interface import Difference, DifferenceKind, Failure

DIFFERENCE_META = "toolwright/difference"
MAX_TEXT = 2000


@dataclass(frozen=True)
class JudgedResult:
    """A result, and its failure or its difference, if any."""

    result: Mapping[str, Any]
    failure: Failure | None = None
    difference: Difference | None = None


def judge_result(
    tool: ToolDefinition, result: Mapping[str, Any], problem: SchemaViolation | None
) -> JudgedResult:
    """Judge a result that is no error; `problem` is what breaks the output schema."""
    failure = Failure("schema", problem.reason, where=problem.where) if problem else None
    if not tool.operation or (failure and "structuredContent" not in result):
        return JudgedResult(result, failure)
    told = _read_difference(result)
    if failure is None:
        return JudgedResult(result, difference=told)
    difference = Difference("schema", failure.where, failure.message)
    return JudgedResult(result if told else _add_note(result, difference), difference=difference)


def _add_note(result: Mapping[str, Any], difference: Difference) -> Mapping[str, Any]:
    """The result with what differs in a block of its own, after the answer's."""
    at = f" at {difference.where}" if difference.where else ""
    note = f"(Note: this differs from the API's description{at}: {difference.reason})"
    meta = {**(result.get("_meta") or {}), DIFFERENCE_META: vars(difference)}
    return {
        **result,
        "content": [*result["content"], {"type": "text", "text": note}],
        "_meta": meta,
    }


def _read_difference(result: Mapping[str, Any]) -> Difference | None:
    """The difference that an untrusted result tells of; every field is checked."""
    meta = result.get("_meta")
    said = meta.get(DIFFERENCE_META) if isinstance(meta, dict) else None
    if not isinstance(said, dict) or said.get("kind") not in get_args(DifferenceKind):
        return None
    where, reason = said.get("where"), said.get("reason")
    return Difference(
        said["kind"],
        where[:MAX_TEXT] if isinstance(where, str) else "",
        reason[:MAX_TEXT] if isinstance(reason, str) else "",
    )
