"""Mutants of a server's code: copies with one small mistake, which good tests notice.

Mutation analysis (DeMillo, Lipton and Sayward, 1978; operators after Offutt et al., 1996).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.bundle.source import ParsedSource, UnparsableSource, parse_source

MAX_MUTANTS = 40
MAX_SITES = 2_000

_COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
_ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Add(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.FloorDiv(),
    ast.Pow: ast.Mult(),
}
_TELLING = frozenset({"Refused", "ToolError", "Upstream"})
"""Calls whose arguments are messages for people: a change there changes no result."""


@dataclass(frozen=True)
class CodeMutant:
    """The code with one change. `line` is the line in the original; `change` describes
    the change.
    """

    line: int
    change: str
    code: str


@dataclass(frozen=True)
class _MutationSite:
    """A node that can be changed, by its place among the tree's nodes."""

    at: int
    line: int
    change: str
    mutate: Callable[[ast.AST], ast.AST]


def generate_mutants(code: str, limit: int = MAX_MUTANTS) -> tuple[CodeMutant, ...]:
    """At most `limit` mutants of a `server.py`, spread over its functions, the same ones each time;
    none of code that does not parse.
    """
    source = parse_source(code)
    if isinstance(source, UnparsableSource):
        return ()
    sites = list(_find_sites(source))[:MAX_SITES]
    step = max(1.0, len(sites) / limit)
    chosen = [sites[int(at * step)] for at in range(min(limit, len(sites)))]
    return tuple(CodeMutant(site.line, site.change, _apply_change(code, site)) for site in chosen)


STEPS_ENDED = "_StepsEnded"
"""The name of what is raised where code takes more steps than it may."""
_COUNTER = """
class _StepsEnded(BaseException):
    pass

def _count_step(left=[{limit}]):
    left[0] -= 1
    if left[0] < 0:
        raise _StepsEnded("it takes too many steps")
"""


def add_step_limit(code: str, limit: int) -> str:
    """The code, which ends itself after so many calls and turns of loops, the same number on every
    machine; unchanged where it does not parse.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code
    step = ast.parse("_count_step()").body[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While):
            node.body.insert(_count_leading(node), ast.copy_location(step, node.body[0]))
    at = _count_leading(tree)
    while at < len(tree.body) and _is_future(tree.body[at]):
        at += 1
    tree.body[at:at] = ast.parse(_COUNTER.format(limit=limit)).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _count_leading(node: ast.AST) -> int:
    """1 where a docstring stands first, else 0."""
    body = getattr(node, "body", [])
    first = body[0] if body and not isinstance(node, ast.For | ast.While) else None
    text = first.value if isinstance(first, ast.Expr) else None
    return int(isinstance(text, ast.Constant) and isinstance(text.value, str))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _apply_change(code: str, site: _MutationSite) -> str:
    """The code with the node at the site replaced. Trees of one code have their nodes in one order,
    so the place finds it in a fresh tree, which may be changed.
    """
    tree = ast.parse(code)
    target = next(node for at, node in enumerate(ast.walk(tree)) if at == site.at)

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return site.mutate(node) if node is target else super().generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Replacing().visit(tree)))


def _find_sites(source: ParsedSource) -> Iterator[_MutationSite]:
    silent = {id(node) for call in _find_message_nodes(source.tree) for node in ast.walk(call)}
    inside = {
        id(node)
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in function.body
        for node in ast.walk(statement)
    }
    for at, node in enumerate(ast.walk(source.tree)):
        if id(node) in inside and id(node) not in silent:
            for change, mutate in _iterate_changes(node):
                yield _MutationSite(at, getattr(node, "lineno", 0), change, mutate)


def _find_message_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that are only messages: arguments of errors, and docstrings."""
    for node in ast.walk(tree):
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if named and node.func.id in _TELLING:  # type: ignore[attr-defined]
            yield from node.args  # type: ignore[attr-defined]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node


def _iterate_changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        other = _COMPARISONS[type(node.ops[0])]
        changed = ast.Compare(node.left, [other, *node.ops[1:]], node.comparators)
        yield _describe_change(node, changed)
    elif isinstance(node, ast.BoolOp):
        opposite = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _describe_change(node, ast.BoolOp(opposite, node.values))
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield _describe_change(node, ast.BinOp(node.left, _ARITHMETIC[type(node.op)], node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _describe_change(node, node.operand)
    elif isinstance(node, ast.Constant):
        yield from _change_constant(node)
    elif isinstance(node, ast.Raise):
        yield _describe_change(node, ast.Pass())
    elif isinstance(node, ast.IfExp):
        yield _describe_change(node, node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not node.args and not node.keywords:
            yield _describe_change(node, node.func.value)


def _change_constant(node: ast.Constant) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    value = node.value
    if isinstance(value, bool):
        yield _describe_change(node, ast.Constant(not value))
    elif isinstance(value, int | float):
        yield _describe_change(node, ast.Constant(value + 1))


def _describe_change(node: ast.AST, changed: ast.AST) -> tuple[str, Callable[[ast.AST], ast.AST]]:
    """The description of a change, and the function that makes it in another tree of the code."""
    before, after = _shorten_source(node), _shorten_source(changed)
    return f"{before} became {after}", _build_replacement(changed)


def _build_replacement(changed: ast.AST) -> Callable[[ast.AST], ast.AST]:
    text = ast.unparse(changed)

    def made(node: ast.AST) -> ast.AST:
        statement = ast.parse(text).body[0]
        if isinstance(node, ast.stmt):
            return statement
        assert isinstance(statement, ast.Expr)
        return statement.value

    return made


def _shorten_source(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:60]}…"
