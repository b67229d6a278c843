"""Static check whether a server's code could keep state from one call to the next."""

from __future__ import annotations

import ast
from functools import lru_cache

from sandbox.bundle.modules import DYNAMIC
from sandbox.bundle.source import (
    FunctionNode,
    UnparsableSource,
    find_local_uses,
    get_called_name,
    parse_source,
)

IMMUTABLE_CALLS = frozenset({"frozenset", "range", "re.compile", "tuple", "TypeVar"})
SETTERS = frozenset(
    {
        "field_size_limit",
        "getcontext",
        "register_dialect",
        "reset_tzpath",
        "setcontext",
        "unregister_dialect",
    }
)
"""Functions that change the state of a module that servers may import."""
COUNTING = frozenset({"asyncio", "sqlite3"})
"""Modules that number what they make, tasks for one, over calls."""
ADDRESSES = frozenset({"hash", "id", "object"})
"""Builtins whose results depend on memory addresses, and so on earlier calls."""
_PLAIN = (ast.Import, ast.ImportFrom, ast.Pass)
_IMMUTABLE = (
    ast.BinOp,
    ast.Constant,
    ast.FormattedValue,
    ast.JoinedStr,
    ast.Tuple,
    ast.UnaryOp,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.Name,
    ast.Attribute,
)


@lru_cache(maxsize=256)
def keeps_state(source: str) -> bool:
    """False only if every call plainly starts from the same state: the module consists of imports,
    functions with immutable defaults, and immutable constants.
    """
    found = parse_source(source)
    if isinstance(found, UnparsableSource):
        return True
    own = find_local_uses(found, DYNAMIC)
    others = (node for node in found.nodes if id(node) not in own)
    return not all(map(_is_fixed, found.tree.body)) or any(map(_changes_state, others))


def _is_fixed(node: ast.stmt) -> bool:
    """Whether a statement of the module defines nothing mutable."""
    if isinstance(node, _PLAIN):
        return True
    if isinstance(node, FunctionNode):
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        return all(map(_is_immutable, defaults))
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or _is_immutable(node.value)
    return False


def _is_immutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return get_called_name(value) in IMMUTABLE_CALLS
    return all(isinstance(node, _IMMUTABLE) for node in ast.walk(value))


def _changes_state(node: ast.AST) -> bool:
    """Whether a node can change, or observe, state that outlives its call."""
    if isinstance(node, ast.Call) and get_called_name(node) in ADDRESSES:
        return True
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Import):
        return any(alias.name in COUNTING for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in COUNTING
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load) or _is_setter(node.attr)
    return isinstance(node, ast.Name) and (node.id in DYNAMIC or _is_setter(node.id))


def _is_setter(name: str) -> bool:
    return name in SETTERS or name.startswith("__")
