"""Request bodies and responses, with their media types, of OpenAPI 3.x and Swagger 2.0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from forge.openapi.context import Context, LeftOut
from forge.openapi.parameters import collection_style, simple_schema, truth
from forge.openapi.references import Node, Unresolved
from forge.prose import clean
from sandbox.apispec import Encoding, MediaType, RequestBody, Response, Style

MAX_MEDIA_TYPES = 32
MAX_HEADERS = 64
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FILE = "file"
_UNREAD = ("prefixEncoding", "itemEncoding")
"""What 3.2 has for multipart bodies without names."""
_ONE_FILE = f"a multipart body is an object of parts; this is taken as its part {FILE!r}"
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+(\s*;[ -~]{0,200})?\Z", re.ASCII)
_STATUS = re.compile(r"[1-5](\d\d|XX)\Z")
_STYLES = frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"})


def request_body(context: Context, operation: Node) -> RequestBody | None:
    """The body of an OpenAPI 3.x operation. Raises LeftOut where its reference leads nowhere."""
    node = operation.get("requestBody")
    if node.value is None:
        return None
    try:
        node = context.references.follow(node)
    except Unresolved as error:
        raise LeftOut(error.problem) from error
    if not isinstance(node.value, dict):
        raise LeftOut(node.problem("a request body must be an object"))
    content = _content(context, node.get("content"))
    if not content:
        context.problems.add(node.problem("the body has no media type; no body is sent"))
        return None
    description = clean(node.get("description").value, 500)
    return RequestBody(content, truth(node.get("required").value), description)


def swagger_body(
    context: Context, parameters: Iterable[Node], operation: Node
) -> RequestBody | None:
    """The body that Swagger 2.0's `body` or `formData` parameters make up."""
    nodes = list(parameters)
    whole = [node for node in nodes if node.value["in"] == "body"]
    fields = [node for node in nodes if node.value["in"] == "formData"]
    consumes = _listed(context, operation, "consumes")
    if whole:
        node = whole[-1]
        at = node.get("schema")
        schema = context.schemas.convert(at) if at.value is not None else True
        content = tuple(MediaType(kind, schema) for kind in consumes or ("application/json",))
        description = clean(node.get("description").value, 500)
        return RequestBody(content, truth(node.get("required").value), description)
    return _form(context, fields, consumes) if fields else None


def responses(context: Context, operation: Node) -> tuple[Response, ...]:
    """The documented responses; an unusable one is reported and left out."""
    made: dict[str, Response] = {}
    node = operation.get("responses")
    for code, written in node.items():
        status = "default" if code.lower() == "default" else code.strip().upper()
        if status != "default" and not _STATUS.match(status):
            context.problems.add(written.problem("this is no status code; it is left out"))
            continue
        try:
            found = context.references.follow(written)
        except Unresolved as error:
            reason = f"{error.problem.reason}; no content is expected of it"
            context.problems.add(written.problem(reason))
            found = Node({}, written.file, written.pointer)
        made[status] = _response(context, found, status, operation)
    return tuple(made.values())


def _response(context: Context, node: Node, status: str, operation: Node) -> Response:
    description = clean(node.get("description").value, 200)
    headers = tuple(name.lower() for name, _ in node.get("headers").items()[:MAX_HEADERS])
    if context.dialect != "2.0":
        return Response(status, description, _content(context, node.get("content")), headers)
    at = node.get("schema")
    if at.value is None:
        return Response(status, description, headers=headers)
    schema = context.schemas.convert(at)
    kinds = _listed(context, operation, "produces")
    if isinstance(at.value, dict) and at.value.get("type") == "file":
        kinds = kinds or ("application/octet-stream",)
    content = tuple(MediaType(kind, schema) for kind in kinds or ("application/json",))
    return Response(status, description, content, headers)


def _content(context: Context, node: Node) -> tuple[MediaType, ...]:
    made = []
    for kind, media in node.items()[:MAX_MEDIA_TYPES]:
        if not _MEDIA_TYPE.match(kind):
            context.problems.add(media.problem("this is no media type; it is left out"))
            continue
        try:
            found = context.references.follow(media)
        except Unresolved as error:
            context.problems.add(error.problem)
            continue
        at = found.get("schema")
        schema = context.schemas.convert(at) if at.value is not None else None
        item = found.get("itemSchema")
        if schema is None and item.value is not None:
            # 3.2: https://spec.openapis.org/oas/v3.2.0.html#sequential-media-types
            schema = {"type": "array", "items": context.schemas.convert(item)}
        if kind.startswith("multipart/") and _has_no_fields(context, at):
            context.problems.add(at.problem(_ONE_FILE))
            schema = {"type": "object", "required": [FILE], "properties": {FILE: schema}}
        for key in _UNREAD:
            if found.get(key).value is not None:
                context.problems.add(found.get(key).problem("this is not read; defaults hold"))
        made.append(MediaType(kind, schema, _encodings(found.get("encoding"))))
    return tuple(made)


def _has_no_fields(context: Context, schema: Node) -> bool:
    try:
        found = context.references.follow(schema).value
    except Unresolved:
        return False
    return isinstance(found, dict) and found.get("type") in ("string", "array")


def _encodings(node: Node) -> Mapping[str, Encoding]:
    made = {}
    for name, entry in node.items():
        kind, style, explode = (entry.get(key).value for key in ("contentType", "style", "explode"))
        usable = style if style in _STYLES else None
        made[name] = Encoding(
            content_type=kind if isinstance(kind, str) and kind.isprintable() else None,
            style=cast("Style | None", usable),
            explode=usable in (None, "form") if explode is None else truth(explode),
            allow_reserved=truth(entry.get("allowReserved").value),
        )
    return made


def _form(context: Context, fields: list[Node], consumes: tuple[str, ...]) -> RequestBody:
    properties: dict[str, Any] = {}
    encoding: dict[str, Encoding] = {}
    required = []
    for node in fields:
        name = str(node.value["name"])
        schema = context.schemas.convert(simple_schema(node))
        text = clean(node.get("description").value, 500)
        keywords = schema if isinstance(schema, dict) else {}
        properties[name] = {**keywords, "description": text} if text else schema
        if truth(node.get("required").value):
            required.append(name)
        if keywords.get("type") == "array":
            style, explode = collection_style(node, "formData")
            encoding[name] = Encoding(style=style, explode=explode)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    has_file = any(node.value.get("type") == "file" for node in fields)
    kinds = tuple(k for k in consumes if k in (MULTIPART, FORM) and not (has_file and k == FORM))
    content = tuple(
        MediaType(kind, schema, encoding) for kind in kinds or (MULTIPART if has_file else FORM,)
    )
    return RequestBody(content, bool(required))


def _listed(context: Context, operation: Node, key: str) -> tuple[str, ...]:
    written = operation.get(key).value
    if written is None:
        written = context.references.root.get(key).value
    kinds = written if isinstance(written, list) else [written]
    return tuple(dict.fromkeys(k for k in kinds if isinstance(k, str) and _MEDIA_TYPE.match(k)))[
        :MAX_MEDIA_TYPES
    ]
