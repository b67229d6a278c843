"""Rules on access to modules, frames and classes, and on code that runs when it is loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from sandbox.bundle.modules import is_module, list_public_names
from sandbox.bundle.source import FunctionNode, ParsedSource, find_local_uses, get_called_name

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""

INTROSPECTION = frozenset(
    "ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code "
    "f_globals f_lasti f_lineno f_locals f_trace gi_code gi_frame gi_yieldfrom mro tb_frame "
    "tb_lasti tb_lineno tb_next with_traceback".split()
)
METHODS = frozenset(
    f"__{name}__"
    for name in "abs add and bool call contains enter eq exit float floordiv ge getitem gt hash "
    "init int invert iter le len lt mod mul ne neg next or post_init pow radd repr reversed rmul "
    "round rsub setitem str sub truediv xor".split()
)
"""Special methods that a class may define."""
CONSTRUCTORS = frozenset(
    {"dict", "frozenset", "list", "range", "re.compile", "set", "tuple", "TypeVar"}
)
_PLAIN_STATEMENTS = (ast.Import, ast.ImportFrom)


def module_reach(source: ParsedSource) -> Found:
    """Of a module is used what servers may not use, or a module is handed on or changed."""
    known = _find_bindings(source)
    shadows = find_local_uses(source, known)
    bases = {id(node.value): node for node in source.nodes if isinstance(node, ast.Attribute)}
    for node in source.nodes:
        if not isinstance(node, ast.Name) or node.id not in known or id(node) in shadows:
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
    for node in source.nodes:
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


def introspection(source: ParsedSource) -> Found:
    """The interpreter's frames, code and classes are reached, which lead to all that it holds."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in INTROSPECTION:
            yield node.lineno, node.attr
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                if name.startswith("_") or name in INTROSPECTION:
                    yield node.lineno, name


def dynamic_class(source: ParsedSource) -> Found:
    """A class is made otherwise than by its name, its bases and its body."""
    called = {id(node.func): node for node in source.nodes if isinstance(node, ast.Call)}
    own = find_local_uses(source, {"type"})
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and node.keywords:
            yield node.lineno, f"class {node.name}({ast.unparse(node.keywords[0])[:60]})"
        elif isinstance(node, FunctionNode) and node.name.startswith("__"):
            if node.name not in METHODS:
                yield node.lineno, node.name
        elif isinstance(node, ast.Name) and node.id == "type" and isinstance(node.ctx, ast.Load):
            call = called.get(id(node))
            is_asked = call is not None and len(call.args) == 1 and not call.keywords
            if not is_asked and id(node) not in own:
                yield node.lineno, "type as more than a question"


def work_on_load(source: ParsedSource) -> Found:
    """Code runs when the server is loaded; only imports, functions, classes and constants may."""
    later = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in source.tree.body
    )
    yield from _check_statements(source.tree.body, later)


def _check_statements(body: list[ast.stmt], later: bool) -> Found:
    for node in body:
        if isinstance(node, _PLAIN_STATEMENTS) or _is_constant(node, later):
            continue
        if isinstance(node, FunctionNode):
            yield from _check_signature(node, later)
        elif isinstance(node, ast.ClassDef) and not node.keywords:
            yield from (
                (base.lineno, ast.unparse(base)[:80]) for base in _select_working(node.bases)
            )
            yield from _check_statements(node.body, later)
        else:
            yield node.lineno, ast.unparse(node)[:80]


def _check_signature(node: ast.FunctionDef | ast.AsyncFunctionDef, later: bool) -> Found:
    """Defaults of a definition that do work, and annotations unless their evaluation is
    postponed.
    """
    found: list[ast.expr | None] = [*node.args.defaults, *node.args.kw_defaults]
    if not later:
        everyone = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found += [argument.annotation for argument in everyone]
        found += [each.annotation for each in (node.args.vararg, node.args.kwarg) if each]
        found.append(node.returns)
    for value in _select_working([each for each in found if each is not None]):
        yield value.lineno, ast.unparse(value)[:80]


def _select_working(values: list[ast.expr]) -> list[ast.expr]:
    return [value for value in values if not _is_data(value)]


def _is_constant(node: ast.stmt, later: bool) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node, ast.AnnAssign) and not later and not _is_data(node.annotation):
            return False
        named = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
        return named and (node.value is None or _is_data(node.value))
    return False


def _is_data(value: ast.expr) -> bool:
    """Whether an expression only builds a value."""
    return not any(
        (isinstance(node, ast.Call) and get_called_name(node) not in CONSTRUCTORS)
        or isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda)
        for node in ast.walk(value)
    )
