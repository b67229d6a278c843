"""Inheritance of a parent's code by a draft that leaves it unchanged, so that a small change is a
small draft.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from copy import copy

Importing = ast.Import | ast.ImportFrom
Defining = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | Importing


def inherit_code(code: str, parent: str, tools: Collection[str]) -> str:
    """Append to the code what it lacks of its parent's for these tools: their functions, and the
    imports, constants and functions that those use. Code that does not parse is returned unchanged.
    """
    own, earlier = find_definitions(code), find_definitions(parent)
    if own is None or earlier is None:
        return code
    wanted: dict[int, Defining] = {}
    pending = [name for name in tools if name not in own]
    seen = set(own)
    while pending:
        name = pending.pop()
        if name in earlier and name not in seen:
            seen.add(name)
            wanted[earlier[name].lineno] = earlier[name]
            pending += find_used_names(earlier[name])
    if not wanted:
        return code
    lines = parent.splitlines()
    taken = [wanted[line] for line in sorted(wanted)]
    imports = [_render_import(node, own) for node in taken if isinstance(node, Importing)]
    others = [_extract_source(lines, node) for node in taken if not isinstance(node, Importing)]
    parts = [code.rstrip(), "\n".join(imports), *others]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _render_import(node: Importing, own: Collection[str]) -> str:
    """An import without the names that the code has already: bound twice, a name such as `tool` is
    what no rule takes it for.
    """
    kept = [a for a in node.names if (a.asname or a.name.partition(".")[0]) not in own]
    node = copy(node)
    node.names = kept
    return ast.unparse(node)


def extract_tools(code: str, tools: Collection[str]) -> str:
    """Return the code of these tools and of what they use."""
    return inherit_code("", code, tools)


def find_definitions(code: str) -> Mapping[str, Defining] | None:
    """Return the top-level definitions of a module by name; None where it does not parse."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: dict[str, Defining] = {}
    for node in tree.body:
        if isinstance(node, Defining):
            found |= dict.fromkeys(_list_names(node), node)
    return found


def _list_names(node: Defining) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    else:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def find_used_names(node: Defining) -> list[str]:
    """Return the names that a definition refers to."""
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


def _extract_source(lines: list[str], node: Defining) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])
