"""Rules on attributes: which names of which values forged code reaches.

Attributes are reached by `x.name`, by `getattr` and `hasattr`, by class patterns and by the fields
of format strings. All of them are decided here, by one list of what is allowed.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.bundle.attributes import (
    PUBLIC_PRIVATE,
    READABLE_DUNDERS,
    RESERVED,
    list_attributes,
    list_private_names,
)
from sandbox.bundle.modules import is_module
from sandbox.bundle.source import FunctionNode, ParsedSource, get_called_name

Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
FORMATTERS = frozenset({"format", "format_map"})
_NAMING = frozenset(
    {"Enum", "Flag", "IntEnum", "IntFlag", "NamedTuple", "StrEnum", "TypedDict", "namedtuple"}
)
"""What makes classes whose attributes are named by texts."""
_INITIALIZERS = frozenset({"__init__", "__post_init__"})
_INDEX = re.compile(r"\[[^\]]*\]?")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class ReachedAttribute:
    """One attribute that code reaches. `node` is its `ast.Attribute`, None where it is reached by
    a text or a pattern.
    """

    line: int
    name: str
    node: ast.Attribute | None = None


def iterate_reached(source: ParsedSource) -> Iterator[ReachedAttribute]:
    """All attributes that code reaches, in whatever way."""
    for node in source.find_nodes(ast.Attribute, ast.MatchClass, ast.Call):
        if isinstance(node, ast.Attribute):
            yield ReachedAttribute(node.lineno, node.attr, node)
            if node.attr in FORMATTERS and isinstance(node.value, ast.Constant):
                for name in iterate_format_attributes(node.value.value):
                    yield ReachedAttribute(node.lineno, name)
        elif isinstance(node, ast.MatchClass):
            yield from (ReachedAttribute(node.lineno, name) for name in node.kwd_attrs)
        elif isinstance(node, ast.Call) and get_called_name(node) in ("getattr", "hasattr"):
            for argument in node.args[1:2]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield ReachedAttribute(node.lineno, argument.value)


def iterate_format_attributes(text: object, depth: int = 3) -> Iterator[str]:
    """The attributes that the fields of a format string read, also those of nested fields."""
    if not isinstance(text, str):
        return
    try:
        fields = tuple(string.Formatter().parse(text))
    except ValueError:
        return  # Formatting with it raises the same.
    for _, field, specification, _ in fields:
        yield from _INDEX.sub("", field or "").split(".")[1:]
        if specification and depth:
            yield from iterate_format_attributes(specification, depth - 1)


def dunder_access(source: ParsedSource) -> Found:
    """A name or attribute with double underscores is used, the way into the interpreter."""
    plain = _find_plain_dunders(source)
    for node in source.find_nodes(ast.Attribute, ast.Name):
        if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            if id(node) not in plain:
                yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield node.lineno, node.id


def _find_plain_dunders(source: ParsedSource) -> set[int]:
    """The ids of `x.__name__` and its like, which are text, of the `__class__` in
    `x.__class__.__name__`, and of `super().__init__`.
    """
    plain: set[int] = set()
    for node in source.find_nodes(ast.Attribute):
        if node.attr in _INITIALIZERS:
            if isinstance(node.value, ast.Call) and get_called_name(node.value) == "super":
                plain.add(id(node))
        elif node.attr in READABLE_DUNDERS:
            if isinstance(node.ctx, ast.Load):
                plain.add(id(node))
                if isinstance(node.value, ast.Attribute) and node.value.attr == "__class__":
                    plain.add(id(node.value))
    return plain


def introspection(source: ParsedSource) -> Found:
    """The interpreter's frames, code and classes are reached, which lead to all that it holds."""
    for reached in iterate_reached(source):
        if reached.name in RESERVED or (reached.node is None and reached.name.startswith("_")):
            yield reached.line, reached.name


def private_attribute(source: ParsedSource) -> Found:
    """A private attribute is reached of something else than the code's own class."""
    private = [
        reached.node
        for reached in iterate_reached(source)
        if reached.node is not None and _is_private(reached.name)
    ]
    if not private:
        return
    own = _find_own_privates(source) - list_private_names(_list_imported_modules(source))
    inside = _find_parameters_in_methods(source)
    for node in private:
        named = isinstance(node.value, ast.Name) and id(node.value) in inside
        if not (named and node.attr in own):
            yield node.lineno, ast.unparse(node)[-80:]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_PRIVATE


def _find_own_privates(source: ParsedSource) -> set[str]:
    """The private names that classes of the code define, in their bodies or by `self.NAME = …`."""
    own: set[str] = set()
    for node in source.find_nodes(ast.ClassDef):
        for part in ast.walk(node):
            if isinstance(part, FunctionNode):
                own.add(part.name)
            elif isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Store):
                own.add(part.id if isinstance(part, ast.Name) else part.attr)
    return own


def _find_parameters_in_methods(source: ParsedSource) -> set[int]:
    """The ids of the names in methods that are parameters of these (`self`, `cls`, `other`)."""
    found: set[int] = set()
    for node in source.find_nodes(ast.ClassDef):
        for method in (part for part in node.body if isinstance(part, FunctionNode)):
            arguments = method.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            names = {argument.arg for argument in every} | {node.name}
            found |= {
                id(part)
                for part in ast.walk(method)
                if isinstance(part, ast.Name) and part.id in names
            }
    return found


def unknown_attribute(source: ParsedSource) -> Found:
    """An attribute is reached that neither the code defines nor what it may use has."""
    if source.packages:
        return  # What packages' values have is not known here.
    known = list_attributes(_list_imported_modules(source)) | _find_own_names(source)
    known |= RESERVED
    for reached in iterate_reached(source):
        if not reached.name.startswith("_") and reached.name not in known:
            yield reached.line, reached.name


def _list_imported_modules(source: ParsedSource) -> tuple[str, ...]:
    """The modules that the code imports, or imports from, by their dotted names."""
    named: set[str] = set()
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            wholes = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= {str(node.module), *filter(is_module, wholes)}
    return tuple(sorted(named))


def _find_own_names(source: ParsedSource) -> set[str]:
    """The names that the code gives to attributes: of its classes, by assignment, by keyword, and
    by the texts that named tuples and enumerations are made of.
    """
    own = {node.name for node in source.find_nodes(ast.FunctionDef)}
    own |= {node.name for node in source.find_nodes(ast.AsyncFunctionDef)}
    own |= {node.name for node in source.find_nodes(ast.ClassDef)}
    own |= {node.arg for node in source.find_nodes(ast.arg)}
    own |= {node.arg or "" for node in source.find_nodes(ast.keyword)}
    own |= {node.id for node in source.find_nodes(ast.Name) if isinstance(node.ctx, ast.Store)}
    attributes = source.find_nodes(ast.Attribute)
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    for call in source.find_nodes(ast.Call):
        if get_called_name(call).rpartition(".")[2] in _NAMING:
            texts = (part.value for part in ast.walk(call) if isinstance(part, ast.Constant))
            own.update(word for text in texts for word in _WORD.findall(str(text)))
    return own
