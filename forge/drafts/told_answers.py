"""The calls of other servers' tools in a test suite, and their answers, read from its literals."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.bundle.example import AnswersInvalid, ExampleAnswer, parse_answers

MAX_TOLD = 200
_KEYS = frozenset({"tool", "arguments"})


@dataclass(frozen=True)
class ToldAnswer:
    """An answer at a line of the tests. `is_fault` says that its test expects a failure, so that
    the answer may be one that the tool never gives.
    """

    line: int
    answer: ExampleAnswer
    is_fault: bool


def find_told_answers(tests: str) -> tuple[ToldAnswer, ...]:
    """The answers that stand as literals in a suite, at most MAX_TOLD; none where it does not
    parse. What is computed is not seen.
    """
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    told = [each for node in tree.body for each in _iterate_told(node)]
    return tuple(told[:MAX_TOLD])


def _iterate_told(node: ast.stmt) -> Iterator[ToldAnswer]:
    nodes = [*ast.walk(node)]
    is_fault = any(_name_node(each) == "raises" for each in nodes)
    for each in (n for n in nodes if isinstance(n, ast.Dict)):
        answer = _read_answer(each)
        if answer is not None:
            yield ToldAnswer(each.lineno, answer, is_fault)


def _name_node(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _read_answer(node: ast.Dict) -> ExampleAnswer | None:
    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
    if not keys >= _KEYS:
        return None
    try:
        (answer,) = parse_answers([ast.literal_eval(node)])
    except (AnswersInvalid, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return answer
