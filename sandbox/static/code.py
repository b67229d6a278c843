"""Rules on the code. Each rule is one function; its docstring's first line is its finding.

They keep generated code plain, so that a person can read what it does. They are no cage: the
sandbox is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Set

from sandbox.static.source import FunctionNode, Source, called_name, is_tool_decorator

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
Rule = Callable[[Source], Found]

MODULES = frozenset(
    {
        "__future__",
        "base64",
        "binascii",
        "collections",
        "collections.abc",
        "csv",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "hashlib",
        "hmac",
        "html",
        "io",
        "itertools",
        "json",
        "math",
        "re",
        "statistics",
        "textwrap",
        "toolwright",
        "toolwright.content",
        "toolwright.environment",
        "toolwright.files",
        "toolwright.pages",
        "toolwright.styles",
        "typing",
        "unicodedata",
        "urllib.parse",
        "uuid",
        "zoneinfo",
    }
)
DYNAMIC = frozenset(
    {
        "__import__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "exit",
        "globals",
        "help",
        "input",
        "locals",
        "memoryview",
        "open",
        "quit",
        "setattr",
        "vars",
    }
)
CONSTRUCTORS = frozenset(
    {"dict", "frozenset", "list", "range", "re.compile", "set", "tuple", "TypeVar"}
)
_PLAIN_STATEMENTS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef)


def forbidden_import(source: Source) -> Found:
    """A module is imported that servers may not use."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                if alias.name == "*" or alias.name.startswith("_"):
                    yield node.lineno, whole
                elif module not in MODULES and whole not in MODULES:
                    yield node.lineno, module


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
    own = _own_names(source)
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in DYNAMIC and id(node) not in own:
            yield node.lineno, node.id


def _own_names(source: Source) -> set[int]:
    """The uses of a function's own parameters, which may have the names of built-ins."""
    own: set[int] = set()
    for function in source.nodes:
        if isinstance(function, FunctionNode):
            arguments = [*function.args.args, *function.args.kwonlyargs]
            named = {argument.arg for argument in arguments} & DYNAMIC
            inside = (node for part in function.body if named for node in ast.walk(part))
            own |= {id(node) for node in inside if isinstance(node, ast.Name) and node.id in named}
    return own


def dynamic_attribute(source: Source) -> Found:
    """An attribute is reached by a name that is only known when the code runs."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and called_name(node) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                yield node.lineno, ast.unparse(node)[:80]
            elif name.value.startswith("_"):
                yield node.lineno, name.value
        elif isinstance(node, ast.Name) and node.id == "getattr":
            if not _is_called(source, node):
                yield node.lineno, "getattr as a value"


def _is_called(source: Source, name: ast.Name) -> bool:
    return any(isinstance(node, ast.Call) and node.func is name for node in source.nodes)


def dunder_access(source: Source) -> Found:
    """A name or attribute with double underscores is used, the way into the interpreter."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield node.lineno, node.id


def format_access(source: Source) -> Found:
    """A format string that is not a plain literal can read any attribute."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in ("format", "format_map"):
            continue
        text = node.func.value
        literal = isinstance(text, ast.Constant) and isinstance(text.value, str)
        if not literal or "_" in _fields(text):
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


def work_on_load(source: Source) -> Found:
    """Code runs when the server is loaded; only imports, functions, classes and constants may."""
    yield from _statements(source.tree.body)


def _statements(body: list[ast.stmt]) -> Found:
    for node in body:
        if isinstance(node, _PLAIN_STATEMENTS) or _is_constant(node):
            continue
        if isinstance(node, ast.ClassDef) and not node.keywords:
            yield from _statements(node.body)
        else:
            yield node.lineno, ast.unparse(node)[:80]


def _is_constant(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
        return named and (node.value is None or _is_data(node.value))
    return False


def _is_data(value: ast.expr) -> bool:
    """Whether an expression only builds a value."""
    return not any(
        (isinstance(node, ast.Call) and called_name(node) not in CONSTRUCTORS)
        or isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda)
        for node in ast.walk(value)
    )


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
    work_on_load,
)
