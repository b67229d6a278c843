"""Cases that whoever writes the code does not see: what the tests' own answers are not enough for.

A model that reads the tests can answer them by heart. The cases of its specification are held back,
so they have to ask for something else.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forge.draft import Draft
from sandbox.validation import Problem

UNSEEN = 2
"""Cases of each tool with a result whose arguments no test has."""


def repeats(draft: Draft) -> tuple[Problem, ...]:
    """What is wrong with a specification whose cases ask no more than its tests do."""
    known = frozenset(_constants(draft.tests))
    found = []
    for tool in draft.tools:
        if tool.operation or _is_small(tool.input_schema):
            continue
        own = [e for e in draft.examples if e.tool == tool.name and not e.failure]
        unseen = [example for example in own if not known.issuperset(_leaves(example.arguments))]
        if len(unseen) < UNSEEN:
            reason = (
                f"{len(unseen)} cases of {tool.name} ask for something that no test asks for. The "
                f"code is written without seeing the cases: give at least {UNSEEN} with a result"
            )
            found.append(Problem("/cases", reason))
    return tuple(found)


def _is_small(schema: Mapping[str, Any]) -> bool:
    """Whether a tool can be asked for so little that its tests may well ask for all of it."""
    properties = schema.get("properties")
    told = properties.values() if isinstance(properties, Mapping) else ()
    return all(
        isinstance(one, Mapping) and ("enum" in one or one.get("type") == "boolean") for one in told
    )


def merged(before: Any, given: Any) -> list[Any]:
    """The cases of a draft with those that its repair gives: in place of one with the same tool and
    arguments, else beside them. None is lost.
    """
    earlier = before if isinstance(before, list) else []
    changed = given if isinstance(given, list) else []
    asked = {_question(case) for case in changed}
    return [*(case for case in earlier if _question(case) not in asked), *changed]


def _question(case: Any) -> str:
    if not isinstance(case, Mapping):
        return ""
    return json.dumps([case.get("tool"), case.get("arguments")], sort_keys=True, default=str)


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """The texts and numbers in a value."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending += item.values()
        elif isinstance(item, Sequence) and not isinstance(item, str):
            pending += item
        elif item is not None:
            yield _constant(item)


def _constants(tests: str) -> Iterator[tuple[str, Any]]:
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            yield _constant(node.value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            operand = node.operand
            if isinstance(operand, ast.Constant) and isinstance(operand.value, int | float):
                yield _constant(-operand.value)


def _constant(value: Any) -> tuple[str, Any]:
    """1 and 1.0 are the same answer, 1 and True are not."""
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return kind or type(value).__name__, value
