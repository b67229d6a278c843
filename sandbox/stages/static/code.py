"""Rules on the code. Each rule is one function; its docstring's first line is its finding.

They keep generated code plain, so that a person can read what it does. They are no cage: the
sandbox is.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Set

from sandbox.static import reach
from sandbox.static.modules import MODULES, is_module, public_names
from sandbox.static.source import FunctionNode, Source, called_name, is_tool_decorator, local_uses

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
Rule = Callable[[Source], Found]

BUILTINS = frozenset(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter "
    "float format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map "
    "max min next object oct ord pow print range repr reversed round set slice sorted str sum "
    "tuple type zip Ellipsis False None NotImplemented True".split()
)
"""The built-ins for code, beside exceptions; `print` and `type` have rules of their own."""
_NO_ERRORS = frozenset({"BaseException", "GeneratorExit", "KeyboardInterrupt", "SystemExit"})
DYNAMIC = frozenset(
    {
        name
        for name, value in vars(builtins).items()
        if name not in BUILTINS
        and not name.startswith("_")
        and (name in _NO_ERRORS or not (isinstance(value, type) and issubclass(value, Exception)))
    }
    | {"__import__", "copyright", "credits", "exit", "help", "license", "quit", "unichr"}
)
"""All others, whichever Python this is."""


def forbidden_import(source: Source) -> Found:
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
                elif not is_module(whole) and alias.name not in public_names(module):
                    yield node.lineno, whole


def _is_packaged(source: Source, name: str) -> bool:
    """Whether a module is one of the bundle's packages', and a public one."""
    first, *rest = name.split(".")
    return first in source.packages and not any(part.startswith("_") for part in rest)


def absent(source: Source, available: Set[str]) -> Found:
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


def dynamic_code(source: Source) -> Found:
    """A built-in is used that runs text as code or reaches past the sandbox's API."""
    own = local_uses(source, DYNAMIC)
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in DYNAMIC and id(node) not in own:
            yield node.lineno, node.id


def dynamic_attribute(source: Source) -> Found:
    """An attribute is reached by a name that is only known when the code runs."""
    called = {id(node.func) for node in source.nodes if isinstance(node, ast.Call)}
    for node in source.nodes:
        if isinstance(node, ast.Call) and called_name(node) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield node.lineno, ast.unparse(node)[:80]
            elif name.value.startswith("_") or name.value in reach.INTROSPECTION:
                yield node.lineno, name.value
        elif isinstance(node, ast.Name) and node.id in ("getattr", "hasattr"):
            if id(node) not in called:
                yield node.lineno, f"{node.id} as a value"


def dunder_access(source: Source) -> Found:
    """A name or attribute with double underscores is used, the way into the interpreter."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield node.lineno, node.id


def format_access(source: Source) -> Found:
    """A format string that is not a plain literal can read any attribute."""
    called = {id(node.func) for node in source.nodes if isinstance(node, ast.Call)}
    for node in source.nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in ("format", "format_map"):
            continue
        text = node.value
        literal = isinstance(text, ast.Constant) and isinstance(text.value, str)
        if not literal or "_" in _fields(text) or id(node) not in called:
            yield node.lineno, ast.unparse(node)[:80]


def _fields(text: ast.expr) -> str:
    """The replacement fields' attribute paths of a literal, where `__` would stand."""
    value = text.value if isinstance(text, ast.Constant) else ""
    pieces = str(value).split("{")[1:]
    return "".join(piece.partition("}")[0].partition(".")[2] for piece in pieces)


def printing(source: Source) -> Found:
    """Standard output belongs to the protocol; raise ToolError or return a value instead."""
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id == "print":
            yield node.lineno, "print"


def shared_state(source: Source) -> Found:
    """State is kept between calls."""
    for node in source.nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node.lineno, ", ".join(node.names)


def other_decorator(source: Source) -> Found:
    """A decorator other than `tool` is used, or `tool` on what is not a top-level function."""
    for node in source.nodes:
        if isinstance(node, FunctionNode | ast.ClassDef):
            for decorator in node.decorator_list:
                if not is_tool_decorator(decorator) or node not in source.tools:
                    yield node.lineno, f"@{ast.unparse(decorator)[:60]}"


def asynchronous(source: Source) -> Found:
    """Tools run in threads; there is nothing to await."""
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node.lineno, type(node).__name__


def import_inside(source: Source) -> Found:
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
