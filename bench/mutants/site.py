"""A tool of a bundle as an operator sees it, and how its function is written anew."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.bundle.apispec import Operation
from sandbox.bundle.model import Bundle, ToolDefinition

REQUEST = "REQUEST"
"""Stands for the tool's `http.request(…)` in the statements of `Site.woven`."""

Pairs = Sequence[tuple[str, ast.expr]]
"""Names and what is sent under them."""

_FROM_RUNTIME = ("HttpError", "MalformedAnswer", "ToolError", "UNSET")
_STYLES = ("csv", "deep", "exploded", "json_text", "label", "matrix", "pipes", "raw", "ssv")
_IMPORTS: Mapping[str, str] = {
    **{name: f"from toolwright import {name}" for name in _FROM_RUNTIME},
    **{name: f"from toolwright.styles import {name}" for name in _STYLES},
    "json": "import json",
    "quote": "from urllib.parse import quote",
}
_AT = """
def _at(value, path, change):
    if not path:
        return change(value)
    if isinstance(value, list) and path[0] == "[]":
        return [_at(item, path[1:], change) for item in value]
    if isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: _at(value[path[0]], path[1:], change)}
    return value
"""
"""Put into a mutant's code where an edit reaches into a value: `change` at each place of a path."""


@dataclass(frozen=True)
class Argument:
    """An argument of a tool: where it goes, under which name, and its schema."""

    name: str
    location: str
    target: str
    schema: Any
    required: bool


@dataclass(frozen=True)
class Site:
    """One tool of a bundle, its operation and its function in `server.py`."""

    bundle: Bundle
    tool: ToolDefinition
    operation: Operation
    function: ast.FunctionDef

    def arguments(self, *locations: str) -> tuple[Argument, ...]:
        """The arguments that go to these places, all of them where none is named."""
        required = set(self.tool.input_schema.get("required", ()))
        made = []
        for name, schema in self.tool.input_schema.get("properties", {}).items():
            location, _, target = str(schema.get("x-in", "")).partition(":")
            if location and (not locations or location in locations):
                made.append(Argument(name, location, target, schema, name in required))
        return tuple(made)

    def request(self) -> ast.Call:
        """The `http.request(…)` of the function."""
        return _request(self.function)

    def part(self, name: str) -> ast.expr | None:
        """The expression that `http.request` is given under a keyword."""
        return next((k.value for k in self.request().keywords if k.arg == name), None)

    def pairs(self, location: str) -> tuple[tuple[str, ast.expr], ...]:
        """The literal names and the expressions of `path=`, `query=`, `header=` or `cookie=`."""
        written = self.part(location)
        if not isinstance(written, ast.Dict):
            return ()
        return tuple(
            (key.value, value)
            for key, value in zip(written.keys, written.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        )

    def prefixed(self, statements: str) -> Bundle:
        """The bundle whose function runs these statements first."""
        made = copy.deepcopy(self.function)
        at = 1 if ast.get_docstring(made) is not None else 0
        made.body[at:at] = ast.parse(statements).body
        return self.rewritten(made)

    def woven(self, statements: str) -> Bundle:
        """The bundle whose function has these statements in place of `return http.request(…)`."""
        made = copy.deepcopy(self.function)
        call = _request(made)
        body = ast.parse(f"def f():\n{_indented(statements)}").body[0]
        assert isinstance(body, ast.FunctionDef)
        made.body[-1:] = [_Substitution(call).visit(statement) for statement in body.body]
        return self.rewritten(made)

    def asked(self, edit: Callable[[ast.Call], None]) -> Bundle:
        """The bundle with an edited `http.request(…)`."""
        made = copy.deepcopy(self.function)
        edit(_request(made))
        return self.rewritten(made)

    def repaired(self, location: str, pairs: Pairs) -> Bundle:
        """The bundle with other pairs in `path=`, `query=`, `header=` or `cookie=`."""
        return self.repaired_all({location: pairs})

    def repaired_all(self, changed: Mapping[str, Pairs]) -> Bundle:
        """The bundle with other pairs in several of them."""

        def edit(call: ast.Call) -> None:
            call.keywords = [k for k in call.keywords if k.arg not in changed]
            for location, pairs in changed.items():
                keys: list[ast.expr | None] = [ast.Constant(name) for name, _ in pairs]
                written = ast.Dict(keys, [copy.deepcopy(value) for _, value in pairs])
                call.keywords += [ast.keyword(location, written)] * bool(pairs)

        return self.asked(edit)

    def rewritten(self, function: ast.FunctionDef) -> Bundle:
        """The bundle with another function for this tool, and the imports that it needs."""
        text = ast.unparse(ast.fix_missing_locations(function))
        lines = self.bundle.source_code.split("\n")
        start = min(node.lineno for node in self.function.decorator_list) - 1
        lines[start : self.function.end_lineno] = text.split("\n")
        return replace(self.bundle, source_code=_complete("\n".join(lines), function))

    def redefined(self, **changes: Any) -> Bundle:
        """The bundle with another definition of this tool."""
        made = replace(self.tool, **changes)
        tools = tuple(made if tool is self.tool else tool for tool in self.bundle.tools)
        return replace(self.bundle, tools=tools)


class _Substitution(ast.NodeTransformer):
    def __init__(self, call: ast.Call) -> None:
        self._call = call

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self._call) if node.id == REQUEST else node


def sites(bundle: Bundle) -> tuple[Site, ...]:
    """Every tool of a compiled bundle, in the order of its definitions."""
    assert bundle.spec is not None
    operations = {operation.id: operation for operation in bundle.spec.operations}
    functions = {
        node.name: node
        for node in ast.parse(bundle.source_code).body
        if isinstance(node, ast.FunctionDef)
    }
    return tuple(
        Site(bundle, tool, operations[tool.operation], functions[tool.name])
        for tool in bundle.tools
        if tool.operation in operations and tool.name in functions
    )


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _request(function: ast.FunctionDef) -> ast.Call:
    """The `http.request(…)` of a compiled function: its last statement returns it."""
    last = function.body[-1]
    assert isinstance(last, ast.Return)
    return next(_calls(last))


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "http.request":
            yield node


def _indented(statements: str) -> str:
    return "\n".join(f"    {line}" for line in statements.strip().split("\n"))


def _complete(code: str, function: ast.FunctionDef) -> str:
    """The code with the imports and the function of ours that a changed function stands on."""
    tree = ast.parse(code)
    known = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    bound = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    wanted = [_IMPORTS[name] for name in sorted(used - known - bound) if name in _IMPORTS]
    first = next(n for n in tree.body if isinstance(n, ast.ImportFrom | ast.Import))
    lines = code.split("\n")
    lines[first.lineno - 1 : first.lineno - 1] = wanted
    return "\n".join(lines) + (_AT if "_at" in used else "")
