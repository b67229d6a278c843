"""Path templates, and the query that some documents append to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlsplit

from forge.readers.openapi import parameters, servers
from forge.readers.openapi.context import OperationSkipped
from forge.readers.openapi.references import Node
from forge.text import sanitize_prose
from sandbox.bundle.apispec import Parameter

_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")
_FOREIGN = re.compile(
    r"(?<=/):([A-Za-z_]\w*)(?=[/?#]|\Z)|<(?:\w+:)?(\w+)>|%7B([^{}/%]+)%7D|\{\{(\w+)\}\}"
    r"|(?<=/)\*(\w*)(?=[/?#]|\Z)",
    re.ASCII | re.IGNORECASE,
)
"""Placeholders as they are in routes of frameworks, or escaped."""
_ODD_SIGNS = frozenset("+*:<%? ")
_OWN_ORIGIN = re.compile(r"\Ahttps?://[^/?#{}]+", re.IGNORECASE)
_QUERY_EXPRESSION = re.compile(r"\{[?&]([\w,*]+)\}", re.ASCII)
"""Of RFC 6570 section 3.2.8."""
_EXPRESSION = re.compile(r"\{([./;])(\w+)\*?\}", re.ASCII)
"""Of RFC 6570 sections 3.2.5 to 3.2.7."""
_ROUTE_END = re.compile(r"(?<=/):([A-Za-z_]\w*)\.:([A-Za-z_]\w*)(?=[?#]|\Z)", re.ASCII)
_WITH_PATTERN = re.compile(r"\{([^{}/]{1,300}(?:\{[0-9,]{1,9}\}[^{}/]{0,300})?)\}")
_DECORATED = re.compile(r"\{ *[+*]?([\w.$@-]+)[+*?]? *(?:(:)[^/]*)?\}")
"""A placeholder with what a framework says of its value, which may be a pattern."""
MAX_EXPRESSED = 50
_PLAIN = re.compile(r"[A-Za-z0-9_.~/-]*")
"""A path of which nothing has to be escaped."""
_MALFORMED = frozenset("{}\\")
_DOTS = frozenset({".", ".."})
_WHOLE_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}\Z")


def list_placeholders(path: str) -> list[str]:
    """Return the placeholder names in a path, without duplicates."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(path.partition("#")[0])))


def rename_placeholders(path: str, nodes: list[Node]) -> str:
    """Write placeholders as the standard does, and call them as their declarations do.

    `{name+}`, `{+name}`, `{name*}`, `{name:int}` and `{name:[0-9]+}` are used by gateways and
    frameworks (cf. RFC 6570). A segment `:name` is a placeholder in most frameworks' routes;
    `<name>`, `{{name}}`, `%7Bname%7D`, the end `.:name`, and a segment `*` or `*name` are only if
    that is declared. `{?name}`
    goes, as `list_expressed` tells of it, `{/name}`, `{.name}` and `{;name}` where that is not
    declared, and so does the origin of a whole URL.
    """
    if _ODD_SIGNS.isdisjoint(path) and "{{" not in path and not _EXPRESSION.search(path):
        return path
    declared = {str(node.value["name"]) for node in nodes if node.value["in"] == "path"}

    def rename(match: re.Match[str]) -> str:
        found = _DECORATED.fullmatch(match[0])
        if match[1] in declared or found is None:
            return match[0]
        return f"{{{found[1]}}}" if found[1] in declared or found[2] else match[0]

    def expand(match: re.Match[str]) -> str:
        sign, name = match.groups()
        if match[0][1:-1] in declared:
            return match[0]
        if name not in declared:
            return ""
        return f";{name}={{{name}}}" if sign == ";" else f"{sign}{{{name}}}"

    def rewrite(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3] or match[4] or match[5] or "*"
        return f"{{{name}}}" if match[1] or name in declared else match[0]

    def end(match: re.Match[str]) -> str:
        name, other = match.groups()
        return f"{{{name}}}.{{{other}}}" if {name, other} <= declared else match[0]

    path = _QUERY_EXPRESSION.sub("", _OWN_ORIGIN.sub("", path))
    path = _EXPRESSION.sub(expand, _ROUTE_END.sub(end, path))
    return _WITH_PATTERN.sub(rename, _FOREIGN.sub(rewrite, path))


def list_expressed(path: str, nodes: list[Node], at: Node) -> list[Node]:
    """Return a query parameter for each name of `{?name,…}` in a path that is not declared."""
    expressions = _QUERY_EXPRESSION.findall(path)
    if not expressions:
        return []
    asked = {str(node.value["name"]) for node in nodes if node.value["in"] == "query"}
    names = (
        name.rstrip("*") for listed in expressions for name in listed.split(",")[:MAX_EXPRESSED]
    )
    return [
        Node({"name": name, "in": "query", "type": "string"}, at.file, at.place)
        for name in dict.fromkeys(names)
        if name and name not in asked
    ]


def find_origin(path: str) -> str:
    """The origin of a path that is a whole URL; "" for any other."""
    found = _OWN_ORIGIN.match(path)
    return servers.normalize_url(found[0]) if found else ""


def split_server(url: str) -> tuple[str, str]:
    """Split a server's URL before the last segment of its path: "/" where it has none."""
    parts = urlsplit(url)
    directory, _, last = parts.path.rpartition("/")
    return f"{parts.scheme}://{parts.netloc}{directory}", f"/{last}"


def parse_template(path: str, node: Node) -> tuple[str, list[tuple[str, str]]]:
    """Parse a path to its template, percent-encoded, and the query appended to it. Raises
    OperationSkipped.
    """
    bare, _, query = path.partition("#")[0].partition("?")
    bare = "/" + bare.lstrip("/") if not bare.startswith("/") else bare
    split = _PLACEHOLDER.split(bare)
    literals, names = split[::2], split[1::2]
    fixed = "".join(literals)
    if not _MALFORMED.isdisjoint(fixed):
        raise OperationSkipped(node.to_problem("the path template is malformed"))
    if not _DOTS.isdisjoint(bare.replace("%2e", ".").split("/")):
        raise OperationSkipped(node.to_problem("the path has a `.` or `..` segment"))
    if not bare.isprintable() or len(bare) > 2000:
        raise OperationSkipped(node.to_problem("the path is too long or not printable"))
    written = bare if _PLAIN.fullmatch(fixed) else _encode_template(literals, names)
    return written, parse_qsl(query, keep_blank_values=True) if query else []


def _encode_template(literals: list[str], names: list[str]) -> str:
    first, *others = (quote(literal, safe=servers.PATH_SAFE) for literal in literals)
    pairs = zip(names, others, strict=True)
    return first + "".join(f"{{{name}}}{literal}" for name, literal in pairs)


def list_query_values(
    read: tuple[Parameter, ...], query: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the (name, value) pairs of the query, the value "" for parameters that callers set;
    of those that have one value only, also that.
    """
    yield from query
    asked = [p for p in read if p.location == "query"]
    yield from ((p.name, "") for p in asked)
    fixed = ((p.name, _find_fixed_value(p)) for p in asked)
    yield from (pair for pair in fixed if pair[1])


def _find_fixed_value(parameter: Parameter) -> str:
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else ""


def merge_query(
    read: tuple[Parameter, ...], query: list[tuple[str, str]], template: str
) -> tuple[Parameter, ...]:
    """Add the parameters of a query that stands in the path: constants, or those of its
    placeholders.
    """
    if not query:
        return read
    made = {(p.location, p.name): p for p in read}
    for name, value in query:
        # `?{name}=1` has an example where others have the placeholder.
        whole = _WHOLE_PLACEHOLDER.match(name) or _WHOLE_PLACEHOLDER.match(value)
        inner = made.get(("path", whole[1])) if whole else None
        if inner is not None:
            name = inner.name if inner.name == name.strip("{}") else name
            made["query", name] = replace(
                inner, name=name, location="query", style="form", explode=True
            )
        elif _PLACEHOLDER.search(value):
            text = sanitize_prose(f"Is written {value}.", 500)
            made["query", name] = Parameter(
                name, "query", {"type": "string"}, required=True, description=text
            )
        else:
            made["query", name] = Parameter(name, "query", {"const": value}, required=True)
    asked = {name for pair in query for text in pair for name in _PLACEHOLDER.findall(text)}
    for name in asked.difference(_PLACEHOLDER.findall(template)):
        made.pop(("path", name), None)
    return tuple(sorted(made.values(), key=lambda p: parameters.LOCATIONS.index(p.location)))
