"""Rules on the code. Each rule is one function; its docstring's first line is its finding.

They keep generated code simple, so that a person can read what it does. They are not the isolation;
the sandbox is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Set

from sandbox.bundle.attributes import RESERVED
from sandbox.bundle.modules import DYNAMIC, MODULES, is_module, list_public_names
from sandbox.bundle.source import (
    FunctionNode,
    ParsedSource,
    find_local_uses,
    get_called_name,
)
from sandbox.stages.static import attributes, loading, reach
from sandbox.stages.static.loading import METHOD_DECORATORS, TOOL, build_scope, is_class_decorator

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
Rule = Callable[[ParsedSource], Found]


def forbidden_import(source: ParsedSource) -> Found:
    """A module is imported that servers may not use."""
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
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
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
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
    own = find_local_uses(source, DYNAMIC) | set(_iterate_plain_uses(source))
    for node in source.find_nodes(ast.Name):
        if node.id in DYNAMIC and id(node) not in own:
            yield node.lineno, node.id


def _iterate_plain_uses(source: ParsedSource) -> Iterator[int]:
    """The ids of the names in `super().method` and of the decorators of methods."""
    for node in source.find_nodes(ast.Attribute):
        if isinstance(node.value, ast.Call):
            call = node.value
            if get_called_name(call) == "super" and not call.args and not call.keywords:
                yield id(call.func)
    for defined in source.find_nodes(ast.ClassDef):
        yield from map(id, iterate_method_decorators(defined))


def iterate_method_decorators(node: ast.ClassDef) -> Iterator[ast.expr]:
    """The plain decorators of a class's methods: `property` and its like."""
    for method in node.body:
        if isinstance(method, FunctionNode):
            for decorator in method.decorator_list:
                if isinstance(decorator, ast.Name) and decorator.id in METHOD_DECORATORS:
                    yield decorator


def dynamic_attribute(source: ParsedSource) -> Found:
    """An attribute is reached by a name that is only known when the code runs."""
    called = {id(node.func) for node in source.find_nodes(ast.Call)}
    for node in source.find_nodes(ast.Call, ast.Name):
        if isinstance(node, ast.Call) and get_called_name(node) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield node.lineno, ast.unparse(node)[:80]
            elif name.value.startswith("_") or name.value in RESERVED | attributes.FORMATTERS:
                yield node.lineno, name.value
        elif isinstance(node, ast.Name) and node.id in ("getattr", "hasattr"):
            if id(node) not in called:
                yield node.lineno, f"{node.id} as a value"


def format_access(source: ParsedSource) -> Found:
    """A format string that is not a plain literal can read any attribute."""
    called = {id(node.func) for node in source.find_nodes(ast.Call)}
    for node in source.find_nodes(ast.Attribute):
        if node.attr not in attributes.FORMATTERS:
            continue
        text = node.value.value if isinstance(node.value, ast.Constant) else None
        names = attributes.iterate_format_attributes(text)
        plain = isinstance(text, str) and id(node) in called
        if not plain or any("_" in name for name in names):
            yield node.lineno, ast.unparse(node)[:80]


def printing(source: ParsedSource) -> Found:
    """Standard output belongs to the protocol; raise ToolError or return a value instead."""
    for node in source.find_nodes(ast.Name):
        if node.id == "print":
            yield node.lineno, "print"


def shared_state(source: ParsedSource) -> Found:
    """State is kept between calls."""
    for node in source.find_nodes(ast.Global, ast.Nonlocal):
        yield node.lineno, ", ".join(node.names)


def other_decorator(source: ParsedSource) -> Found:
    """A decorator is used that is not `tool` on a top-level function, `dataclass` or `unique` on a
    class, or `property`, `staticmethod` or `classmethod` on a method.
    """
    scope = build_scope(source)
    plain: set[int] = set()
    for node in source.find_nodes(ast.ClassDef):
        plain.update(map(id, iterate_method_decorators(node)))
        plain.update(id(each) for each in node.decorator_list if is_class_decorator(each, scope))
    tools = set(map(id, source.tools))
    for held in source.find_nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        assert isinstance(held, FunctionNode | ast.ClassDef)
        for decorator in held.decorator_list:
            is_tool = id(held) in tools and scope.resolve(decorator) == TOOL
            if not is_tool and id(decorator) not in plain:
                yield held.lineno, f"@{ast.unparse(decorator)[:60]}"


def asynchronous(source: ParsedSource) -> Found:
    """A tool is asynchronous; write a plain function that calls asyncio.run."""
    for node in source.tools:
        if isinstance(node, ast.AsyncFunctionDef):
            yield node.lineno, node.name


def import_inside(source: ParsedSource) -> Found:
    """An import stands inside a function or block."""
    top = set(map(id, source.tree.body))
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
        if id(node) not in top:
            yield node.lineno, ast.unparse(node)[:80]


RULES: tuple[Rule, ...] = (
    forbidden_import,
    dynamic_code,
    dynamic_attribute,
    attributes.dunder_access,
    attributes.introspection,
    attributes.private_attribute,
    attributes.unknown_attribute,
    format_access,
    printing,
    shared_state,
    other_decorator,
    asynchronous,
    import_inside,
    reach.module_reach,
    reach.dynamic_class,
    reach.outside_database,
    loading.work_on_load,
)
