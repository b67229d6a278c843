"""What a tool's code decides by: which of its functions only hand their arguments on, and the
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

from sandbox.static.source import FunctionNode, Source, Unparsable, called_name, parse

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
class Decisions:
    """`plain` code hands its arguments on and the answer back. `words` and `numbers` are the
    constants of code that is not plain, its helpers' included.
    """

    plain: bool = True
    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()


def decisions(code: str) -> Mapping[str, Decisions]:
    """What each tool of a `server.py` decides by; nothing for code that does not parse."""
    source = parse(code)
    if isinstance(source, Unparsable):
        return {}
    styles = frozenset(_imported(source))
    shared = [node for node in source.tree.body if node not in source.tools]
    common = list(_constants(shared))
    return {tool.name: _of(tool, styles, common) for tool in source.tools}


def _of(tool: FunctionNode, styles: frozenset[str], common: Iterable[object]) -> Decisions:
    if all(_is_plain(statement, styles) for statement in tool.body):
        return Decisions()
    found = dict.fromkeys(map(_key, [*_constants(tool.body), *common]))
    words = [value for _, value in found if isinstance(value, str) and value]
    numbers = [value for _, value in found if isinstance(value, int | float)]
    return Decisions(False, tuple(words[:MAX_WORDS]), tuple(numbers[:MAX_NUMBERS]))


def _key(value: object) -> tuple[str, object]:
    """So that 1, 1.0 and True are told apart."""
    return type(value).__name__, value


def _imported(source: Source) -> Iterator[str]:
    """The names that the runtime gives to write requests with."""
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("toolwright."):
            yield from (alias.asname or alias.name for alias in node.names)


def _is_plain(statement: ast.stmt, styles: frozenset[str]) -> bool:
    """Whether a statement is the docstring, wraps the fields of a body that was given, or returns
    the request's answer.
    """
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        wraps = all(_wraps(part, styles) for part in statement.body)
        return wraps and not statement.orelse and _asks_whether_given(statement.test)
    if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return called_name(call) == "http.request" and all(_hands_on(part, styles) for part in given)


def _wraps(statement: ast.stmt, styles: frozenset[str]) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and all(isinstance(target, ast.Name) for target in statement.targets)
        and _hands_on(statement.value, styles)
    )


def _hands_on(value: ast.expr, styles: frozenset[str]) -> bool:
    return all(
        isinstance(node, _PLAIN) and (not isinstance(node, ast.Call) or _is_ours(node, styles))
        for node in ast.walk(value)
    )


def _is_ours(call: ast.Call, styles: frozenset[str]) -> bool:
    """Whether a call says how a value is written, or takes a field."""
    name = called_name(call)
    return name in styles or name.endswith(".get")


def _asks_whether_given(test: ast.expr) -> bool:
    return bool(_GIVEN.fullmatch(ast.unparse(test)))


def _constants(nodes: Iterable[ast.AST]) -> Iterator[object]:
    for part in nodes:
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
                if not isinstance(node.value, str) or len(node.value) <= MAX_WORD:
                    yield node.value
