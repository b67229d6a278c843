"""Rules on what modules and classes are used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from sandbox.bundle.modules import is_module, list_public_names
from sandbox.bundle.source import FunctionNode, ParsedSource, find_local_uses, get_called_name

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""

METHODS = frozenset(
    f"__{name}__"
    for name in "abs add and bool call contains enter eq exit float floordiv ge getitem gt hash "
    "init int invert iter le len lt mod mul ne neg next or post_init pow radd repr reversed rmul "
    "round rsub setitem str sub truediv xor".split()
)
"""Special methods that a class may define."""
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def module_reach(source: ParsedSource) -> Found:
    """Of a module is used what servers may not use, or a module is handed on or changed."""
    known = _find_bindings(source)
    shadows = find_local_uses(source, known)
    bases = {id(node.value): node for node in source.find_nodes(ast.Attribute)}
    for node in source.find_nodes(ast.Name):
        if node.id not in known or id(node) in shadows:
            continue
        outer = bases.get(id(node))
        if not isinstance(node.ctx, ast.Load):
            yield node.lineno, f"{node.id} is given another meaning"
        elif known[node.id] and outer is None:
            yield node.lineno, f"{node.id} as a value"
        elif known[node.id]:
            yield from _check_reach(known[node.id], node, bases)
        if outer is not None and _is_changed(outer, bases):
            yield node.lineno, f"{ast.unparse(outer)[:80]} is changed"


def _check_reach(module: str, node: ast.expr, bases: Mapping[int, ast.Attribute]) -> Found:
    """A chain of attributes of a module that ends at a name that is not allowed."""
    outer = bases.get(id(node))
    if outer is None:
        yield node.lineno, f"{module} as a value"
        return
    whole = f"{module}.{outer.attr}"
    if is_module(whole):
        yield from _check_reach(whole, outer, bases)
    elif outer.attr not in list_public_names(module):
        yield outer.lineno, whole


def _is_changed(node: ast.expr, bases: Mapping[int, ast.Attribute]) -> bool:
    while isinstance(node, ast.Attribute):
        if not isinstance(node.ctx, ast.Load):
            return True
        outer = bases.get(id(node))
        if outer is None:
            return False
        node = outer
    return False


def _find_bindings(source: ParsedSource) -> dict[str, str]:
    """The names that imports bind: to a module, by its dotted name, or to something else, by ""."""
    known: dict[str, str] = {}
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                named = alias.name if alias.asname else first
                known[alias.asname or first] = "" if first in source.packages else named
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                known[alias.asname or alias.name] = whole if is_module(whole) else ""
    return known


def dynamic_class(source: ParsedSource) -> Found:
    """A class is made otherwise than by its name, its bases and its body."""
    called = {id(node.func): node for node in source.find_nodes(ast.Call)}
    own = find_local_uses(source, {"type"})
    for node in source.find_nodes(*_NAMED, ast.Call, ast.Name):
        if isinstance(node, ast.ClassDef) and node.keywords:
            yield node.lineno, f"class {node.name}({ast.unparse(node.keywords[0])[:60]})"
        elif isinstance(node, FunctionNode) and node.name.startswith("__"):
            if node.name not in METHODS:
                yield node.lineno, node.name
        elif isinstance(node, ast.Call) and _is_metaclass_call(node):
            yield node.lineno, ast.unparse(node)[:80]
        elif isinstance(node, ast.Name) and node.id == "type" and isinstance(node.ctx, ast.Load):
            call = called.get(id(node))
            is_asked = call is not None and len(call.args) == 1 and not call.keywords
            if not is_asked and id(node) not in own:
                yield node.lineno, "type as more than a question"


def _is_metaclass_call(node: ast.Call) -> bool:
    """Whether it is `type(x)(name, bases, {…})`."""
    asked = isinstance(node.func, ast.Call) and get_called_name(node.func) == "type"
    return asked and len(node.args) > 2 and isinstance(node.args[2], ast.Dict | ast.DictComp)


def outside_database(source: ParsedSource) -> Found:
    """A database is opened that is not in memory alone; write sqlite3.connect(":memory:")."""
    opened = {id(node.func): node for node in source.find_nodes(ast.Call)}
    modules = {name for name, module in _find_bindings(source).items() if module == "sqlite3"}
    for node in source.find_nodes(ast.ImportFrom, ast.Attribute):
        if isinstance(node, ast.ImportFrom) and node.module == "sqlite3":
            if any(alias.name == "connect" for alias in node.names):
                yield node.lineno, "from sqlite3 import connect"
        elif isinstance(node, ast.Attribute) and node.attr == "connect":
            call, module = opened.get(id(node)), node.value
            if isinstance(module, ast.Name) and module.id in modules:
                if call is None or not _is_in_memory(call):
                    yield node.lineno, ast.unparse(call or node)[:80]


def _is_in_memory(call: ast.Call) -> bool:
    first = call.args[0] if len(call.args) == 1 and not call.keywords else None
    return isinstance(first, ast.Constant) and first.value == ":memory:"
