"""Asserts that say what they compared: code rewritten so that a failure has both sides."""

from __future__ import annotations

import ast
import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

COMPARE, TRUE = "@compare", "@true"
"""Names that no code can have."""
MAX_SHOWN = 300
MAX_SOURCE = 160


class Unequal(AssertionError):
    """An assert that failed: what it says, and both sides as they were."""

    def __init__(self, said: str, left: str = "", right: str = "", told: str = "") -> None:
        self.said, self.left, self.right, self.told = said, left, right, told
        super().__init__(said)


def compiled(source: str, name: str) -> CodeType:
    """The code with its asserts rewritten. Raises SyntaxError, ValueError or RecursionError."""
    tree = _Rewriter(source).visit(ast.parse(source, name))
    code: CodeType = compile(ast.fix_missing_locations(tree), name, "exec", dont_inherit=True)
    return code


def shown(value: object) -> str:
    """A value for a reader, bounded."""
    try:
        text = repr(value)
    except BaseException as error:  # A value's own __repr__ is a stranger's code.
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


class _Rewriter(ast.NodeTransformer):
    def __init__(self, source: str) -> None:
        self._source = source

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        written = ast.get_source_segment(self._source, node.test) or ""
        said = ast.Constant(f"assert {' '.join(written.split())}"[:MAX_SOURCE])
        told = ast.Lambda(_NO_ARGUMENTS, node.msg or ast.Constant(""))
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            symbol = ast.Constant(type(test.ops[0]).__name__)
            parts, name = [symbol, test.left, test.comparators[0]], COMPARE
        else:
            parts, name = [test], TRUE
        call = ast.Call(ast.Name(name, ast.Load()), [*parts, said, told], [])
        return ast.copy_location(ast.Expr(call), node)


_NO_ARGUMENTS = ast.arguments(
    posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
)
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda left, right: left in right,
    "NotIn": lambda left, right: left not in right,
}


def _compare(symbol: str, left: Any, right: Any, said: str, told: Callable[[], Any]) -> None:
    if not _OPERATORS[symbol](left, right):
        raise Unequal(said, shown(left), shown(right), str(told()))


def _true(value: Any, said: str, told: Callable[[], Any]) -> None:
    if not value:
        raise Unequal(said, shown(value), "", str(told()))


GLOBALS = {COMPARE: _compare, TRUE: _true}
"""What rewritten code needs among its globals."""
