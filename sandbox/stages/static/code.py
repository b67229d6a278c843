"""Rules on the code. Each rule is one function; its docstring's first line is its finding.

They keep generated code simple, so that a person can read what it does. They are not the isolation;
the sandbox is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Set

from sandbox.bundle.modules import DYNAMIC, MODULES, is_module, list_public_names
from sandbox.bundle.source import (
    FunctionNode,
    ParsedSource,
    find_local_uses,
    get_called_name,
    is_tool_decorator,
)
from sandbox.stages.static import reach

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
Rule = Callable[[ParsedSource], Found]


def forbidden_import(source: ParsedSource) -> Found:
    """A module is imported that servers may not use."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in MODULES and not _is_packaged(source, alias.name):
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                if alias.name == "*" or alias.name.startswith("_"):
                    yield node.lineno, whole
                elif not node.level and _is_packaged(source, module):
                    continue
                elif module not in MODULES and whole not in MODULES:
                    yield node.lineno, module
                elif not is_module(whole) and alias.name not in list_public_names(module):
                    yield node.lineno, whole


def _is_packaged(source: ParsedSource, name: str) -> bool:
    """Whether a module is one of the bundle's packages', and a public one."""
    first, *rest = name.split(".")
    return first in source.packages and not any(part.startswith("_") for part in rest)


def absent(source: ParsedSource, available: Set[str]) -> Found:
    """A module is imported that servers may use, but this engine does not have."""
    for node in source.nodes:
        named: list[set[str]] = []
        if isinstance(node, ast.Import):
            named = [{alias.name} for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [{str(node.module), f"{node.module}.{alias.name}"} for alias in node.names]
        for names in named:
            known = names & MODULES
            if known and not known & available:
                yield getattr(node, "lineno", 0), min(known)


def dynamic_code(source: ParsedSource) -> Found:
    """A built-in is used that runs text as code or reaches past the sandbox's API."""
    own = find_local_uses(source, DYNAMIC)
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in DYNAMIC and id(node) not in own:
            yield node.lineno, node.id


def dynamic_attribute(source: ParsedSource) -> Found:
    """An attribute is reached by a name that is only known when the code runs."""
    called = {id(node.func) for node in source.nodes if isinstance(node, ast.Call)}
    for node in source.nodes:
        if isinstance(node, ast.Call) and get_called_name(node) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield node.lineno, ast.unparse(node)[:80]
            elif name.value.startswith("_") or name.value in reach.INTROSPECTION:
                yield node.lineno, name.value
        elif isinstance(node, ast.Name) and node.id in ("getattr", "hasattr"):
            if id(node) not in called:
                yield node.lineno, f"{node.id} as a value"


def dunder_access(source: ParsedSource) -> Found:
    """A name or attribute with double underscores is used, the way into the interpreter."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield node.lineno, node.id


def format_access(source: ParsedSource) -> Found:
    """A format string that is not a plain literal can read any attribute."""
    called = {id(node.func) for node in source.nodes if isinstance(node, ast.Call)}
    for node in source.nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in ("format", "format_map"):
            continue
        text = node.value
        literal = isinstance(text, ast.Constant) and isinstance(text.value, str)
        if not literal or "_" in _find_field_paths(text) or id(node) not in called:
            yield node.lineno, ast.unparse(node)[:80]


def _find_field_paths(text: ast.expr) -> str:
    """The replacement fields' attribute paths of a literal, where `__` would stand."""
    value = text.value if isinstance(text, ast.Constant) else ""
    pieces = str(value).split("{")[1:]
    return "".join(piece.partition("}")[0].partition(".")[2] for piece in pieces)


def printing(source: ParsedSource) -> Found:
    """Standard output belongs to the protocol; raise ToolError or return a value instead."""
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id == "print":
            yield node.lineno, "print"


def shared_state(source: ParsedSource) -> Found:
    """State is kept between calls."""
    for node in source.nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, ", ".join(node.names)


def other_decorator(source: ParsedSource) -> Found:
    """A decorator other than `tool` is used, or `tool` on what is not a top-level function."""
    for node in source.nodes:
        if isinstance(node, FunctionNode | ast.ClassDef):
            for decorator in node.decorator_list:
                if not is_tool_decorator(decorator) or node not in source.tools:
                    yield node.lineno, f"@{ast.unparse(decorator)[:60]}"


def asynchronous(source: ParsedSource) -> Found:
    """Tools run in threads; there is nothing to await."""
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node.lineno, type(node).__name__


def import_inside(source: ParsedSource) -> Found:
    """An import stands inside a function or block."""
    top = set(map(id, source.tree.body))
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in top:
            yield node.lineno, ast.unparse(node)[:80]


RULES: tuple[Rule, ...] = (
    forbidden_import,
    dynamic_code,
    dynamic_attribute,
    dunder_access,
    format_access,
    printing,
    shared_state,
    other_decorator,
    asynchronous,
    import_inside,
    reach.module_reach,
    reach.introspection,
    reach.dynamic_class,
    reach.work_on_load,
)
