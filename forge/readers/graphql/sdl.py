"""A GraphQL schema in its own language (October 2021, section 3) as an introspection tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphql import GraphQLSyntaxError, parse, print_ast
from graphql.language import ast

from forge.readers.graphql.schema import WRITTEN

MAX_TOKENS = 500_000
_KINDS = {
    "object_type": "OBJECT",
    "interface_type": "INTERFACE",
    "union_type": "UNION",
    "enum_type": "ENUM",
    "input_object_type": "INPUT_OBJECT",
    "scalar_type": "SCALAR",
}
_SCALARS = ("Boolean", "Float", "ID", "Int", "String")
_ROOTS = {"query": "Query", "mutation": "Mutation"}


class SchemaUnreadable(ValueError):
    """The text is no schema; the message says where."""


def read_sdl(text: str) -> dict[str, Any]:
    """Return what an introspection of the schema would tell, as far as it is read. Definitions and
    extensions of a type are one; directives are not looked up, since servers have their own.

    Raises SchemaUnreadable, or RecursionError for what is nested too deep.
    """
    try:
        document = parse(text, no_location=True, max_tokens=MAX_TOKENS)
    except GraphQLSyntaxError as error:
        line = f" (line {error.locations[0].line})" if error.locations else ""
        raise SchemaUnreadable(f"{error.message[:200]}{line}") from error
    types = {name: _start_type(name, "SCALAR") for name in _SCALARS}
    roots: dict[str, str] = {}
    for node in document.definitions:
        word, _, suffix = node.kind.rpartition("_")
        if isinstance(node, ast.SchemaDefinitionNode | ast.SchemaExtensionNode):
            roots |= {each.operation.value: each.type.name.value for each in node.operation_types}
        elif word in _KINDS and suffix in ("definition", "extension"):
            _add_type(types, node, _KINDS[word])
    has_schema = any(isinstance(node, ast.SchemaDefinitionNode) for node in document.definitions)
    if not has_schema:
        roots = {key: name for key, name in _ROOTS.items() if name in types} | roots
    told: dict[str, Any] = {"types": list(types.values())}
    told |= {f"{key}Type": {"name": name} for key, name in roots.items()}
    return {"__schema": told, WRITTEN: True}


def _start_type(name: str, kind: str) -> dict[str, Any]:
    lists = ("fields", "inputFields", "enumValues", "possibleTypes")
    return {"kind": kind, "name": name, "description": None, **{key: [] for key in lists}}


def _add_type(types: dict[str, dict[str, Any]], node: Any, kind: str) -> None:
    """Add a definition or an extension to what is known of its type."""
    name = node.name.value
    made = types.setdefault(name, _start_type(name, kind))
    made["description"] = made["description"] or _read_description(node)
    if kind in ("OBJECT", "INTERFACE"):
        made["fields"] += [_read_field(field) for field in node.fields or ()]
        for interface in node.interfaces or ():
            named = interface.name.value
            target = types.setdefault(named, _start_type(named, "INTERFACE"))
            if kind == "OBJECT":
                target["possibleTypes"].append({"name": name})
    elif kind == "INPUT_OBJECT":
        made["inputFields"] += [_read_input(field) for field in node.fields or ()]
    elif kind == "ENUM":
        made["enumValues"] += [{"name": value.name.value} for value in node.values or ()]
    elif kind == "UNION":
        made["possibleTypes"] += [{"name": member.name.value} for member in node.types or ()]


def _read_field(node: Any) -> dict[str, Any]:
    return {
        "name": node.name.value,
        "description": _read_description(node),
        "args": [_read_input(argument) for argument in node.arguments or ()],
        "type": _read_type(node.type),
        "isDeprecated": _is_deprecated(node.directives or ()),
    }


def _read_input(node: Any) -> dict[str, Any]:
    return {
        "name": node.name.value,
        "description": _read_description(node),
        "type": _read_type(node.type),
        "defaultValue": print_ast(node.default_value) if node.default_value else None,
    }


def _read_type(node: Any) -> Mapping[str, Any]:
    if isinstance(node, ast.NonNullTypeNode):
        return {"kind": "NON_NULL", "ofType": _read_type(node.type)}
    if isinstance(node, ast.ListTypeNode):
        return {"kind": "LIST", "ofType": _read_type(node.type)}
    return {"kind": None, "name": node.name.value}


def _read_description(node: Any) -> str | None:
    told = getattr(node, "description", None)  # Extensions have none.
    return told.value if told else None


def _is_deprecated(directives: Sequence[Any]) -> bool:
    return any(directive.name.value == "deprecated" for directive in directives)
