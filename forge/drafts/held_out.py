"""Held-out cases: those of a specification that the author of the code does not see.

A model that reads the tests can hard-code their answers, so the cases have to ask for something
else.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forge.drafts.draft import Draft
from sandbox.schemas.validator import SchemaViolation

UNSEEN = 2
"""Cases of each tool with a result whose arguments no test has."""


def find_repeated_cases(draft: Draft) -> tuple[SchemaViolation, ...]:
    """Return a problem for each tool with fewer than UNSEEN cases that ask for what no test asks
    for.
    """
    known = frozenset(_find_constants(draft.tests))
    found = []
    for tool in draft.tools:
        if tool.operation or _is_small(tool.input_schema):
            continue
        own = [e for e in draft.examples if e.tool == tool.name and not e.failure]
        unseen = [
            example for example in own if not known.issuperset(_iterate_leaves(example.arguments))
        ]
        if len(unseen) < UNSEEN:
            reason = (
                f"{len(unseen)} cases of {tool.name} ask for something that no test asks for. The "
                f"code is written without seeing the cases: give at least {UNSEEN} with a result"
            )
            found.append(SchemaViolation("/cases", reason))
    return tuple(found)


def _is_small(schema: Mapping[str, Any]) -> bool:
    """Whether a tool's inputs are so few that the tests may well cover all of them."""
    properties = schema.get("properties")
    told = properties.values() if isinstance(properties, Mapping) else ()
    return all(
        isinstance(one, Mapping) and ("enum" in one or one.get("type") == "boolean") for one in told
    )


def merge_cases(before: Any, given: Any) -> list[Any]:
    """Merge the cases of a draft with those of its repair: a case replaces the one with the same
    tool and arguments, all others are kept.
    """
    earlier = before if isinstance(before, list) else []
    changed = given if isinstance(given, list) else []
    asked = {_to_question_key(case) for case in changed}
    return [*(case for case in earlier if _to_question_key(case) not in asked), *changed]


def _to_question_key(case: Any) -> str:
    if not isinstance(case, Mapping):
        return ""
    return json.dumps([case.get("tool"), case.get("arguments")], sort_keys=True, default=str)


def _iterate_leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys of the texts, numbers and booleans in a value."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending += item.values()
        elif isinstance(item, Sequence) and not isinstance(item, str):
            pending += item
        elif item is not None:
            yield _to_constant_key(item)


def _find_constants(tests: str) -> Iterator[tuple[str, Any]]:
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            yield _to_constant_key(node.value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            operand = node.operand
            if isinstance(operand, ast.Constant) and isinstance(operand.value, int | float):
                yield _to_constant_key(-operand.value)


def _to_constant_key(value: Any) -> tuple[str, Any]:
    """Return a key under which 1 and 1.0 are equal and 1 and True are not."""
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return kind or type(value).__name__, value
