"""Parameters of OpenAPI 3.x (section 4.8.12) and Swagger 2.0, without body parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from forge.readers.openapi.context import ReaderContext
from forge.readers.openapi.references import Node, UnresolvedReference
from forge.schemas.media import is_json
from forge.schemas.projection import merge_properties
from forge.text import sanitize_prose
from sandbox.bundle.apispec import Location, Parameter, Schema, Style
from sandbox.wire.overrides import is_override, is_refused_header

MAX_PARAMETERS = 300
LOCATIONS = ("path", "query", "header", "cookie")
FORM = "application/x-www-form-urlencoded"
_NAME = (str, int, float)
_NAMING = frozenset({"$ref", "allOf", "properties"})
WHOLE_QUERY = "querystring"
"""3.2: one parameter that is all of the query."""
BODY_LOCATIONS = ("body", "formData")
"""2.0: parameters that are the body, or its fields."""
_CALLED = {name.lower(): name for name in (*LOCATIONS, *BODY_LOCATIONS, WHOLE_QUERY)}
_STYLES: dict[str, frozenset[str]] = {
    "path": frozenset({"simple", "label", "matrix"}),
    "query": frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
    "header": frozenset({"simple"}),
    "cookie": frozenset({"form", "cookie"}),
}
_COLLECTIONS: dict[str, Style] = {
    "ssv": "spaceDelimited",
    "tsv": "tabDelimited",
    "pipes": "pipeDelimited",
}
# 4.8.12.1 leaves the first three to other parts of a description; the rest frame the message.
_NOT_PARAMETERS = frozenset(
    "accept content-type authorization host content-length transfer-encoding connection".split()
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_SCHEMA_KEYS = frozenset(
    "type format items enum default minimum maximum exclusiveMinimum exclusiveMaximum minLength "
    "maxLength pattern minItems maxItems uniqueItems multipleOf x-nullable".split()
)


def collect_parameters(context: ReaderContext, path_item: Node, operation: Node) -> list[Node]:
    """Return the parameter objects of an operation, with those of its path that it does not
    override.

    Parameters that cannot be read are reported and left out.
    """
    merged: dict[tuple[str, str], Node] = {}
    for listed in (path_item.get("parameters"), operation.get("parameters")):
        if listed.value is not None and not isinstance(listed.value, list):
            context.problems.add(listed.to_problem("parameters must be a list; they are left out"))
        for node in listed.list_elements()[:MAX_PARAMETERS]:
            found = _find_parameter(context, node)
            if found is not None:
                merged[found[0]] = found[1]
    return list(merged.values())


def _find_parameter(context: ReaderContext, node: Node) -> tuple[tuple[str, str], Node] | None:
    """Return what tells a parameter from others, its name and location, and where it is; None where
    it cannot be read, which is reported. Half of them are references, each of which many
    operations have.
    """
    reference = node.value.get("$ref") if isinstance(node.value, dict) else None
    place = (node.file, reference) if isinstance(reference, str) else None
    if place in context.parameters:
        return context.parameters[place]
    try:
        found = context.references.resolve_node(node)
    except UnresolvedReference as error:
        reason = f"{error.problem.reason}; the parameter is left out"
        context.problems.add(node.to_problem(reason))
        return None
    found = _correct_location(context, found)
    written = found.value if isinstance(found.value, dict) else {}
    name, location = written.get("name"), written.get("in")
    if not (isinstance(name, _NAME) and isinstance(location, str) and name != ""):
        context.problems.add(node.to_problem("a parameter needs `name` and `in`; it is left out"))
        return None
    # A header's name is the same in any case (RFC 9110, section 5.1).
    made = (str(name).lower() if location == "header" else str(name), location), found
    if place is not None:
        context.parameters[place] = made
    return made


def _correct_location(context: ReaderContext, node: Node) -> Node:
    """Return the parameter with its `in` as the standard writes it, in whatever case it is."""
    written = node.read("in")
    meant = _CALLED.get(written.strip().lower()) if isinstance(written, str) else None
    if meant is None or meant == written:
        return node
    context.problems.add(node.to_problem(f"`in` cannot be {written[:40]!r}; {meant} is taken"))
    return Node({**node.value, "in": meant}, node.file, node.place)


def read_parameters(
    context: ReaderContext,
    nodes: Iterable[Node],
    placeholders: Collection[str],
    credentials: Collection[tuple[str, str]],
) -> tuple[Parameter, ...]:
    """Read the parameters, and add one for each placeholder of the path that has none.

    `credentials` are (location, lower-case name) pairs that the broker fills in.
    """
    made: dict[tuple[str, str], Parameter] = {}
    for node in nodes:
        location, name = node.value["in"], str(node.value["name"])
        if location == WHOLE_QUERY and _is_writable(node):
            location = "query"
        reason = _find_unusable_reason(node, location, name, placeholders)
        if reason:
            context.problems.add(node.to_problem(f"{reason}; the parameter is left out"))
        elif (location, name.lower()) not in credentials and not (
            location == "header" and name.lower() in _NOT_PARAMETERS
        ):
            place = cast(Location, location)
            made[location, name] = context.read_once(_read_parameter, node, place, name)
    for name in placeholders:
        made.setdefault(
            ("path", name),
            Parameter(
                name, "path", {"type": "string"}, required=True, style="simple", explode=False
            ),
        )
    return tuple(sorted(made.values(), key=lambda p: LOCATIONS.index(p.location)))


def find_clashes(parameters: Iterable[Parameter], schemas: Mapping[str, Schema]) -> list[str]:
    """Return the names that two parameters write into the query: the properties of an exploded
    object appear there without the parameter's own name.
    """
    query = [p for p in parameters if p.location == "query" and p.media_type is None]
    spread = {p.name: merge_properties(p.schema, schemas) for p in query if _is_spread(p)}
    if not spread:
        return []
    counts = Counter(name for p in query for name in spread.get(p.name) or [p.name])
    return [name for name, count in counts.items() if count > 1]


def _is_spread(parameter: Parameter) -> bool:
    """Whether an object's properties appear in the query without the parameter's name."""
    schema = parameter.schema
    is_object = isinstance(schema, dict) and not _NAMING.isdisjoint(schema)
    return is_object and parameter.style == "form" and parameter.explode


def is_true(value: Any) -> bool:
    """Whether a flag is true, also where it is written as a string."""
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def read_collection_style(node: Node, location: str) -> tuple[Style, bool]:
    """Return the style and explode of a Swagger 2.0 `collectionFormat` (default csv)."""
    plain: Style = "simple" if location in ("path", "header") else "form"
    written = node.read("collectionFormat")
    if written == "multi":
        return plain, plain == "form"
    return _COLLECTIONS.get(str(written), plain), False


def find_own_schema(context: ReaderContext, node: Node) -> Node:
    """Return the schema of a parameter or form field: the one under `schema`, or the keywords that
    it has itself, whichever its dialect has first.
    """
    at = node.get("schema")
    is_simple = context.dialect == "2.0" and node.read("type") is not None
    return _extract_simple_schema(node) if is_simple or at.value is None else at


def _extract_simple_schema(node: Node) -> Node:
    kept = {key: value for key, value in node.value.items() if key in _SCHEMA_KEYS}
    return Node(kept, node.file, node.place)


def _find_unusable_reason(
    node: Node, location: str, name: str, placeholders: Collection[str]
) -> str:
    """Return why a parameter is not offered to callers; "" where it is."""
    if location not in LOCATIONS:
        return f"`in` cannot be {location[:40]!r}"
    if location == "path" and name not in placeholders:
        return f"the path has no {{{name[:60]}}}"
    if len(name) > 300:
        return _NOT_A_NAME
    return _find_refusal(location, name, is_true(node.value.get("required")))


_NOT_A_NAME = "its name is too long or not printable"


@lru_cache(4096)
def _find_refusal(location: str, name: str, required: bool) -> str:
    """Return why no parameter of this name is offered, in whatever operation; "" where it is. The
    parameters of a description have few names.
    """
    if not name.isprintable():
        return _NOT_A_NAME
    if location in ("header", "cookie") and not _TOKEN.match(name):
        return f"{name[:60]!r} is not a {location} name"
    kind = "parameter" if location == "query" else location
    is_header = location == "header" and name.lower() not in _NOT_PARAMETERS
    # The broker would refuse these.
    if not (is_refused_header(name) if is_header else location == "query" and is_override(name)):
        return ""
    if required:
        return f"the {kind} {name[:60]} is required and is not a caller's to set, nor a server's"
    return f"the {kind} {name[:60]} is not a caller's to set"


def _read_parameter(context: ReaderContext, node: Node, location: Location, name: str) -> Parameter:
    written = node.value
    required = location == "path" or is_true(written.get("required"))
    description = sanitize_prose(written.get("description"), 500)
    if context.dialect == "2.0":
        style, explode = read_collection_style(node, location)
        schema = context.schemas.convert(find_own_schema(context, node))
        return Parameter(name, location, schema, required, style, explode, description=description)
    content = node.get("content")
    if isinstance(content.value, dict) and content.value:
        media_type, media = next(iter(content.list_items()), ("", content))
        at = media.get("schema")
        schema = context.schemas.convert(at) if at.value is not None else True
        kind = media_type.strip().lower() or "application/json"
        if node.value["in"] == WHOLE_QUERY and kind.startswith(FORM):
            return Parameter(name, location, schema, required, description=description)
        manner: Style = "whole" if node.value["in"] == WHOLE_QUERY else "form"
        if manner == "whole" and not is_json(kind):
            schema = _to_text_schema(schema)
        return Parameter(
            name, location, schema, required, manner, media_type=kind, description=description
        )
    style, explode = _read_style(context, node, location)
    return Parameter(
        name=name,
        location=location,
        schema=context.schemas.convert(find_own_schema(context, node)),
        required=required,
        style=style,
        explode=explode,
        allow_reserved=location == "query" and is_true(written.get("allowReserved")),
        description=description,
    )


def _is_writable(node: Node) -> bool:
    """Whether a parameter for the whole query has a media type that it can be written in."""
    first = next(iter(node.read("content") or ()), "")
    return isinstance(first, str) and (first.startswith((FORM, "text/")) or is_json(first))


def _to_text_schema(schema: Schema) -> Schema:
    """Return the schema of a value that the caller writes as text."""
    is_text = isinstance(schema, Mapping) and schema.get("type") == "string"
    return schema if is_text else {"type": "string"}


def _read_style(context: ReaderContext, node: Node, location: Location) -> tuple[Style, bool]:
    default: Style = "simple" if location in ("path", "header") else "form"
    written, explode = node.read("style"), node.read("explode")
    if written is None and explode is None:
        if not node.read("collectionFormat"):
            return default, default == "form"
        reason = "collectionFormat is of Swagger 2.0; it is read as its style"
        context.problems.add(node.to_problem(reason))
        return read_collection_style(node, location)
    if written is not None and not (isinstance(written, str) and written in _STYLES[location]):
        reason = f"style cannot be {str(written)[:40]!r} in {location}; {default} is taken"
        context.problems.add(node.to_problem(reason))
        written = None
    style = cast(Style, written or default)
    return style, style in ("form", "deepObject", "cookie") if explode is None else is_true(explode)
