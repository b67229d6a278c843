"""Parsing of a `server.py` for the static rules, and questions about its syntax tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, overload

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 60
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Nodes that open a scope."""
A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)


@dataclass(frozen=True)
class ParsedSource:
    """`nodes` is every node of `tree` once; `tools` are the functions under `@tool`;
    `packages` are modules that the bundle has packages for, by the first part of their names.
    """

    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    tools: tuple[FunctionNode, ...]
    packages: frozenset[str] = frozenset()

    @overload
    def find_nodes(self, first: type[A], /) -> Iterator[A]: ...
    @overload
    def find_nodes(self, first: type[A], second: type[B], /) -> Iterator[A | B]: ...
    @overload
    def find_nodes(self, *types: type[ast.AST]) -> Iterator[ast.AST]: ...
    def find_nodes(self, *types: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of just these types, in the order of `nodes`."""
        # A large server has a million nodes, of which each rule looks at a few.
        places = [place for each in types for place in self._places.get(each, ())]
        for place in places if len(types) == 1 else sorted(places):
            yield self.nodes[place]

    @cached_property
    def _places(self) -> Mapping[type[ast.AST], Sequence[int]]:
        found: defaultdict[type[ast.AST], list[int]] = defaultdict(list)
        for place, node in enumerate(self.nodes):
            found[type(node)].append(place)
        return found


@dataclass(frozen=True)
class UnparsableSource:
    line: int
    reason: str


def parse_source(
    code: str, packages: frozenset[str] = frozenset()
) -> ParsedSource | UnparsableSource:
    """Parse the code of a server, or say why it cannot be parsed. Bounds its size and nesting."""
    if len(code) > MAX_BYTES:
        return UnparsableSource(0, f"longer than {MAX_BYTES} characters")
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return UnparsableSource(error.lineno or 0, error.msg or "syntax error")
    except (ValueError, RecursionError, MemoryError) as error:
        return UnparsableSource(0, f"{type(error).__name__}: {error}")
    nodes, deepest = _walk_tree(tree)
    if deepest is not None:
        return UnparsableSource(deepest, f"nested deeper than {MAX_DEPTH} levels")
    tools = tuple(
        node
        for node in tree.body
        if isinstance(node, FunctionNode) and any(map(is_tool_decorator, node.decorator_list))
    )
    return ParsedSource(tree, nodes, tools, packages)


def is_tool_decorator(node: ast.expr) -> bool:
    """Whether a decorator is `tool` or `toolwright.tool`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "tool" and isinstance(node.value, ast.Name)
    return isinstance(node, ast.Name) and node.id == "tool"


def find_local_uses(source: ParsedSource, names: Collection[str]) -> set[int]:
    """The ids (`id()`) of the nodes that use one of these names for a local variable of a function:
    a parameter, or a name that the function assigns. The bodies of classes are left out: a name
    that is assigned there is looked up among the globals until then, past the function.
    """
    own: set[int] = set()
    # Hardly any code gives a local variable such a name.
    if not _binds_any(source, names):
        return own
    for function in source.find_nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        bound = {name for name in _find_bound_names(function) if name in names}
        inside = (node for part in function.body if bound for node in ast.walk(part))
        own |= {id(node) for node in inside if isinstance(node, ast.Name) and node.id in bound}
    if own:
        own -= {id(node) for node in _iterate_class_names(source)}
    return own


def _binds_any(source: ParsedSource, names: Collection[str]) -> bool:
    """Whether a parameter or an assigned name of any scope is one of these."""
    return any(argument.arg in names for argument in source.find_nodes(ast.arg)) or any(
        node.id in names and isinstance(node.ctx, ast.Store) for node in source.find_nodes(ast.Name)
    )


def _iterate_class_names(source: ParsedSource) -> Iterator[ast.AST]:
    """The names that stand in the bodies of classes and not in their methods' bodies."""
    pending: list[ast.AST] = [
        part for node in source.find_nodes(ast.ClassDef) for part in node.body
    ]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            yield node
        elif isinstance(node, FunctionNode):
            pending += [*node.decorator_list, node.args]
            pending += [node.returns] if node.returns else []
        elif not isinstance(node, ast.ClassDef):
            pending += ast.iter_child_nodes(node)
        else:
            pending += [*node.decorator_list, *node.bases, *node.keywords]


def _find_bound_names(function: FunctionNode) -> Iterator[str]:
    """The names that are local to a function, which Python decides by its text alone."""
    arguments = function.args
    yield from (argument.arg for argument in (*arguments.args, *arguments.kwonlyargs))
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, _SCOPES):
            continue
        pending += ast.iter_child_nodes(node)


def get_called_name(node: ast.Call) -> str:
    """The dotted name of what is called; "" where it is not a plain name."""
    parts: list[str] = []
    target: ast.expr = node.func
    while isinstance(target, ast.Attribute):
        parts.append(target.attr)
        target = target.value
    if not isinstance(target, ast.Name):
        return ""
    return ".".join([target.id, *reversed(parts)])


def _walk_tree(tree: ast.Module) -> tuple[tuple[ast.AST, ...], int | None]:
    """All nodes, and the line of the first that is nested too deep."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        found += level
        level = list(_iterate_children(level))
        if not level:
            return tuple(found), None
    return tuple(found), getattr(level[0], "lineno", 0)


def _iterate_children(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.iter_child_nodes(node)
