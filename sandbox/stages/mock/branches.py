"""Analysis of the decisions in a tool's code: which functions only pass their arguments on, and the
constants that the others compare with.

A function without a decision does the same for every argument, so a few cases prove it. One that
decides is tried with far more, and with its own constants as arguments, answers and statuses: what
hides behind `if name == "admin"` is found by reading `"admin"` in the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.bundle.source import (
    FunctionNode,
    ParsedSource,
    UnparsableSource,
    get_called_name,
    parse_source,
)

MAX_WORDS = 120
MAX_NUMBERS = 40
MAX_WORD = 300
_GIVEN = re.compile(r"\w+ is not UNSET|not isinstance\(\w+, Unset\)")
_PLAIN = (
    ast.Attribute,
    ast.Call,
    ast.Constant,
    ast.Dict,
    ast.List,
    ast.Load,
    ast.Name,
    ast.Tuple,
    ast.keyword,
)


@dataclass(frozen=True)
class CodeDecisions:
    """`plain` code passes its arguments on and returns the answer. `words` and `numbers` are the
    constants of code that is not plain, including those of its helpers.
    """

    plain: bool = True
    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()


def find_decisions(code: str) -> Mapping[str, CodeDecisions]:
    """The decisions of each tool of a `server.py`, by name; empty for code that does not parse."""
    source = parse_source(code)
    if isinstance(source, UnparsableSource):
        return {}
    styles = frozenset(_find_imported_names(source))
    shared = [node for node in source.tree.body if node not in source.tools]
    common = list(_iterate_constants(shared))
    return {tool.name: _analyze_tool(tool, styles, common) for tool in source.tools}


def _analyze_tool(
    tool: FunctionNode, styles: frozenset[str], common: Iterable[object]
) -> CodeDecisions:
    if all(_is_plain(statement, styles) for statement in tool.body):
        return CodeDecisions()
    found = dict.fromkeys(map(_to_typed_key, [*_iterate_constants(tool.body), *common]))
    words = [value for _, value in found if isinstance(value, str) and value]
    numbers = [value for _, value in found if isinstance(value, int | float)]
    return CodeDecisions(False, tuple(words[:MAX_WORDS]), tuple(numbers[:MAX_NUMBERS]))


def _to_typed_key(value: object) -> tuple[str, object]:
    """A key in which 1, 1.0 and True differ."""
    return type(value).__name__, value


def _find_imported_names(source: ParsedSource) -> Iterator[str]:
    """The names imported from the runtime's modules, which write requests."""
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("toolwright."):
            yield from (alias.asname or alias.name for alias in node.names)


def _is_plain(statement: ast.stmt, styles: frozenset[str]) -> bool:
    """Whether a statement is the docstring, wraps the fields of a given body, or returns the
    request's answer.
    """
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        wraps = all(_is_wrapping(part, styles) for part in statement.body)
        return wraps and not statement.orelse and _asks_whether_given(statement.test)
    if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return get_called_name(call) == "http.request" and all(
        _is_handed_on(part, styles) for part in given
    )


def _is_wrapping(statement: ast.stmt, styles: frozenset[str]) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and all(isinstance(target, ast.Name) for target in statement.targets)
        and _is_handed_on(statement.value, styles)
    )


def _is_handed_on(value: ast.expr, styles: frozenset[str]) -> bool:
    return all(
        isinstance(node, _PLAIN)
        and (not isinstance(node, ast.Call) or _is_style_call(node, styles))
        for node in ast.walk(value)
    )


def _is_style_call(call: ast.Call, styles: frozenset[str]) -> bool:
    """Whether a call styles a value, or reads a field with `.get`."""
    name = get_called_name(call)
    return name in styles or name.endswith(".get")


def _asks_whether_given(test: ast.expr) -> bool:
    return bool(_GIVEN.fullmatch(ast.unparse(test)))


def _iterate_constants(nodes: Iterable[ast.AST]) -> Iterator[object]:
    for part in nodes:
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
                if not isinstance(node.value, str) or len(node.value) <= MAX_WORD:
                    yield node.value
