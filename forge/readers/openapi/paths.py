"""Path templates, and the query that some documents append to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, quote

from forge.readers.openapi import parameters, servers
from forge.readers.openapi.context import OperationSkipped
from forge.readers.openapi.references import Node
from sandbox.bundle.apispec import Parameter

_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")
_WHOLE_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}\Z")


def list_placeholders(path: str) -> list[str]:
    """Return the placeholder names in a path, without duplicates."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(path.partition("#")[0])))


def rename_placeholders(path: str, nodes: list[Node]) -> str:
    """Rename `{name+}`, `{+name}` and `{name*}` (used by gateways; cf. RFC 6570) to the declared
    names.
    """
    declared = {str(node.value["name"]) for node in nodes if node.value["in"] == "path"}

    def called(match: re.Match[str]) -> str:
        name = match[1].strip("+*")
        return f"{{{name}}}" if match[1] not in declared and name in declared else match[0]

    return _PLACEHOLDER.sub(called, path)


def parse_template(path: str, node: Node) -> tuple[str, list[tuple[str, str]]]:
    """Parse a path to its template, percent-encoded, and the query appended to it. Raises
    OperationSkipped.
    """
    bare, _, query = path.partition("#")[0].partition("?")
    bare = "/" + bare.lstrip("/") if not bare.startswith("/") else bare
    literals = _PLACEHOLDER.split(bare)[::2]
    if any(mark in literal for literal in literals for mark in "{}\\"):
        raise OperationSkipped(node.to_problem("the path template is malformed"))
    if any(segment in (".", "..") for segment in bare.replace("%2e", ".").split("/")):
        raise OperationSkipped(node.to_problem("the path has a `.` or `..` segment"))
    if not bare.isprintable() or len(bare) > 2000:
        raise OperationSkipped(node.to_problem("the path is too long or not printable"))
    names = _PLACEHOLDER.split(bare)[1::2]
    encoded = [quote(literal, safe=servers.PATH_SAFE) for literal in literals]
    written = encoded[0] + "".join(
        f"{{{name}}}{literal}" for name, literal in zip(names, encoded[1:], strict=True)
    )
    return written, parse_qsl(query, keep_blank_values=True)


def list_query_values(
    read: tuple[Parameter, ...], query: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return the (name, value) pairs of the query, the value "" for parameters that callers set;
    of those that have one value only, also that.
    """
    asked = [p for p in read if p.location == "query"]
    fixed = ((p.name, _find_fixed_value(p)) for p in asked)
    return [*query, *((p.name, "") for p in asked), *(pair for pair in fixed if pair[1])]


def _find_fixed_value(parameter: Parameter) -> str:
    schema = parameter.schema if isinstance(parameter.schema, Mapping) else {}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else ""


def merge_query(
    read: tuple[Parameter, ...], query: list[tuple[str, str]], template: str
) -> tuple[Parameter, ...]:
    """Add the parameters of a query that stands in the path: constants, or those of its
    placeholders.
    """
    made = {(p.location, p.name): p for p in read}
    for name, value in query:
        whole = _WHOLE_PLACEHOLDER.match(value)
        inner = made.get(("path", whole[1])) if whole else None
        if inner is None:
            made["query", name] = Parameter(name, "query", {"const": value}, required=True)
            continue
        if f"{{{inner.name}}}" not in template:
            del made["path", inner.name]
        made["query", name] = replace(
            inner, name=name, location="query", style="form", explode=True
        )
    return tuple(sorted(made.values(), key=lambda p: parameters.LOCATIONS.index(p.location)))
