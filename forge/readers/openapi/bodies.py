"""Request bodies and responses, with their media types, of OpenAPI 3.x and Swagger 2.0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from forge.readers.openapi.context import OperationSkipped, ReaderContext
from forge.readers.openapi.parameters import (
    BODY_LOCATIONS,
    find_own_schema,
    is_true,
    read_collection_style,
)
from forge.readers.openapi.references import Node, UnresolvedReference
from forge.schemas.media import is_json
from forge.text import sanitize_prose
from sandbox.bundle.apispec import Encoding, MediaType, RequestBody, Response, Style

MAX_MEDIA_TYPES = 32
MAX_HEADERS = 64
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FILE = "file"
_UNREAD = ("prefixEncoding", "itemEncoding")
"""What 3.2 has for multipart bodies without names."""
_MORE = frozenset({"encoding", "itemSchema", *_UNREAD})
"""What few media types have beside a schema and examples."""
_ONE_FILE = f"a multipart body is an object of parts; this is taken as its part {FILE!r}"
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+(\s*;[ -~]{0,200})?\Z", re.ASCII)
_STATUS = re.compile(r"[1-5](\d\d|XX)\Z")
_STYLES = frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"})


def split_body_parameters(
    context: ReaderContext, nodes: Iterable[Node], operation: Node
) -> tuple[list[Node], list[Node]]:
    """Split an operation's parameters into those that are its body, as in Swagger 2.0, and the
    others. In OpenAPI 3.x they are its body where it has none of its own, and that is reported.
    """
    both: tuple[list[Node], list[Node]] = ([], [])
    is_own = context.dialect == "2.0"
    is_taken = is_own or operation.read("requestBody") is None
    for node in nodes:
        in_body = node.value["in"] in BODY_LOCATIONS
        if in_body and is_taken and not is_own:
            reason = f"`in: {node.value['in']}` is of Swagger 2.0; it is read as the request body"
            context.problems.add(node.to_problem(reason))
        both[not (in_body and is_taken)].append(node)
    return both


def read_body(
    context: ReaderContext, parameters: list[Node], operation: Node
) -> RequestBody | None:
    """Read the body of an operation: from the parameters that are its body, where it has any, else
    from its request body. Raises OperationSkipped.
    """
    if parameters:
        return _read_swagger_body(context, parameters, operation)
    node = operation.get("requestBody")
    if node.value is not None and context.dialect == "2.0":
        context.problems.add(node.to_problem("`requestBody` is of OpenAPI 3; it is read as there"))
    return _read_request_body(context, node)


def _read_request_body(context: ReaderContext, node: Node) -> RequestBody | None:
    """Read a body of OpenAPI 3.x. Raises OperationSkipped where its reference cannot be
    resolved.
    """
    if node.value is None:
        return None
    try:
        node = context.references.resolve_node(node)
    except UnresolvedReference as error:
        raise OperationSkipped(error.problem) from error
    if not isinstance(node.value, dict):
        raise OperationSkipped(node.to_problem("a request body must be an object"))
    content = _read_content(context, node.get("content"))
    if not content:
        context.problems.add(node.to_problem("the body has no media type; no body is sent"))
        return None
    description = sanitize_prose(node.read("description"), 500)
    return RequestBody(content, is_true(node.read("required")), description)


def _read_swagger_body(context: ReaderContext, nodes: list[Node], operation: Node) -> RequestBody:
    """Build the body from Swagger 2.0 `body` or `formData` parameters. There may be one `body` and
    nothing beside it; where there is more, each is a field by its name.
    """
    whole = [node for node in nodes if node.value["in"] == "body"]
    consumes = _list_media_types(context, operation, "consumes")
    if len(whole) == 1 == len(nodes):
        (node,) = whole
        at = find_own_schema(context, node)
        schema = context.schemas.convert(at) if at.value else True
        content = tuple(MediaType(kind, schema) for kind in consumes or ("application/json",))
        description = sanitize_prose(node.read("description"), 500)
        return RequestBody(content, is_true(node.read("required")), description)
    for node in whole:
        reason = "a body has one `body` parameter and no other; it is read as a field of the body"
        context.problems.add(node.to_problem(reason))
    if len(whole) < len(nodes):
        return _build_form(context, nodes, consumes)
    fields = _read_fields(context, nodes)
    kinds = tuple(filter(is_json, consumes)) or ("application/json",)
    content = tuple(MediaType(kind, fields) for kind in kinds)
    return RequestBody(content, "required" in fields)


def read_responses(context: ReaderContext, operation: Node) -> tuple[Response, ...]:
    """Read the documented responses; an invalid one is reported and left out."""
    made: dict[str, Response] = {}
    node = operation.get("responses")
    produced = _list_media_types(context, operation, "produces")
    for code, written in node.list_items():
        status = _parse_status(code)
        if not status:
            context.problems.add(written.to_problem("this is no status code; it is left out"))
            continue
        try:
            found = context.references.resolve_node(written)
        except UnresolvedReference as error:
            reason = f"{error.problem.reason}; no content is expected of it"
            context.problems.add(written.to_problem(reason))
            found = Node({}, written.file, written.place)
        made[status] = context.read_once(_read_response, found, status, produced)
    return tuple(made.values())


@lru_cache(256)
def _parse_status(code: str) -> str:
    """Return the status that a key of `responses` names; "" where it names none."""
    if code.lower() == "default":
        return "default"
    status = code.strip().upper()
    return status if _STATUS.match(status) else ""


def _read_response(
    context: ReaderContext, node: Node, status: str, produced: tuple[str, ...]
) -> Response:
    description = sanitize_prose(node.read("description"), 200)
    headers = tuple(name.lower() for name, _ in node.get("headers").list_items()[:MAX_HEADERS])
    at = node.get("schema")
    if isinstance(node.read("content"), dict):
        return Response(status, description, _read_content(context, node.get("content")), headers)
    if at.value is None:
        return Response(status, description, headers=headers)
    schema = context.schemas.convert(at)
    kinds = produced
    if isinstance(at.value, dict) and at.value.get("type") == "file":
        kinds = produced or ("application/octet-stream",)
    content = tuple(MediaType(kind, schema) for kind in kinds or ("application/json",))
    return Response(status, description, content, headers)


def _read_content(context: ReaderContext, node: Node) -> tuple[MediaType, ...]:
    made = []
    for kind, media in node.list_items()[:MAX_MEDIA_TYPES]:
        if not _MEDIA_TYPE.match(kind):
            context.problems.add(media.to_problem("this is no media type; it is left out"))
            continue
        try:
            found = context.references.resolve_node(media)
        except UnresolvedReference as error:
            context.problems.add(error.problem)
            continue
        at = found.get("schema")
        schema = context.schemas.convert(at) if at.value is not None else None
        is_multipart = kind.startswith("multipart/")
        if not is_multipart and isinstance(found.value, dict) and _MORE.isdisjoint(found.value):
            made.append(MediaType(kind, schema))
            continue
        item = found.get("itemSchema")
        if schema is None and item.value is not None:
            # 3.2: https://spec.openapis.org/oas/v3.2.0.html#sequential-media-types
            schema = {"type": "array", "items": context.schemas.convert(item)}
        if is_multipart and _has_no_fields(context, at):
            context.problems.add(at.to_problem(_ONE_FILE))
            schema = {"type": "object", "required": [FILE], "properties": {FILE: schema}}
        for key in _UNREAD:
            if found.read(key) is not None:
                context.problems.add(found.get(key).to_problem("this is not read; defaults hold"))
        made.append(MediaType(kind, schema, _read_encodings(found.get("encoding"))))
    return tuple(made)


def _has_no_fields(context: ReaderContext, schema: Node) -> bool:
    try:
        found = context.references.resolve_node(schema).value
    except UnresolvedReference:
        return False
    return isinstance(found, dict) and found.get("type") in ("string", "array")


def _read_encodings(node: Node) -> Mapping[str, Encoding]:
    made = {}
    for name, entry in node.list_items():
        kind, style, explode = (entry.read(key) for key in ("contentType", "style", "explode"))
        usable = style if isinstance(style, str) and style in _STYLES else None
        made[name] = Encoding(
            content_type=kind if isinstance(kind, str) and kind.isprintable() else None,
            style=cast("Style | None", usable),
            explode=usable in (None, "form") if explode is None else is_true(explode),
            allow_reserved=is_true(entry.read("allowReserved")),
        )
    return made


def _build_form(
    context: ReaderContext, fields: list[Node], consumes: tuple[str, ...]
) -> RequestBody:
    schema = _read_fields(context, fields)
    properties = schema["properties"]
    encoding: dict[str, Encoding] = {}
    for node in fields:
        name = str(node.value["name"])
        if node.value["in"] != "body" and _is_list(properties[name]):
            style, explode = read_collection_style(node, "formData")
            encoding[name] = Encoding(style=style, explode=explode)
    has_file = any(map(_is_file, properties.values()))
    kinds = tuple(k for k in consumes if k in (MULTIPART, FORM) and not (has_file and k == FORM))
    content = tuple(
        MediaType(kind, schema, encoding) for kind in kinds or (MULTIPART if has_file else FORM,)
    )
    return RequestBody(content, "required" in schema)


def _read_fields(context: ReaderContext, nodes: list[Node]) -> dict[str, Any]:
    """The schema of an object whose properties are these parameters."""
    properties: dict[str, Any] = {}
    required = []
    for node in nodes:
        name = str(node.value["name"])
        schema = context.schemas.convert(find_own_schema(context, node))
        text = sanitize_prose(node.read("description"), 500)
        keywords = schema if isinstance(schema, dict) else {}
        properties[name] = {**keywords, "description": text} if text else schema
        if is_true(node.read("required")):
            required.append(name)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": required} if required else made


def _is_list(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "array"


def _is_file(schema: Any) -> bool:
    """Whether a field is a file, or a list of files."""
    inner = schema.get("items", schema) if isinstance(schema, dict) else None
    return isinstance(inner, dict) and inner.get("format") == "binary"


def _list_media_types(context: ReaderContext, operation: Node, key: str) -> tuple[str, ...]:
    written = operation.read(key)
    if written is None:
        written = context.references.root.read(key)
    if written is None:
        return ()
    kinds = written if isinstance(written, list) else [written]
    return tuple(dict.fromkeys(k for k in kinds if isinstance(k, str) and _MEDIA_TYPE.match(k)))[
        :MAX_MEDIA_TYPES
    ]
