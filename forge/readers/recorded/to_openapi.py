"""Inference of an OpenAPI 3.1 document from recorded requests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forge.readers.recorded.request import (
    PLACEHOLDER,
    Pair,
    RecordedBody,
    RecordedCredential,
    RecordedRequest,
    RequestRecording,
    is_secret_name,
    is_secret_pair,
    is_showable,
    remove_secrets,
)
from sandbox.wire.exchange import find_header

MAX_DEPTH = 12
MAX_PROPERTIES = 200
MAX_ITEMS = 20


def infer_schema(values: Sequence[Any], *, shares: bool = False, depth: int = 0) -> dict[str, Any]:
    """Infer a schema that accepts all the values. With `shares`, plain values of its leaves are
    given as examples.

    A null leaves the type open, since any other value may appear there. An integer is inferred as a
    number: the next value may be 10.5.
    """
    if depth == MAX_DEPTH:
        return {}
    kinds = sorted({_get_json_type(value) for value in values})
    if not kinds or "null" in kinds:
        return {}
    if len(kinds) > 1:
        return {"type": kinds}
    if kinds == ["object"]:
        return _infer_object_schema(values, shares, depth)
    if kinds == ["array"]:
        items = [item for value in values for item in value[:MAX_ITEMS]]
        found = infer_schema(items, shares=shares, depth=depth + 1)
        return {"type": "array", "items": found} if found else {"type": "array"}
    schema: dict[str, Any] = {"type": kinds[0]}
    if shares and is_showable(values[0]):
        schema["examples"] = [values[0]]
    return schema


def _infer_object_schema(values: Iterable[Any], shares: bool, depth: int) -> dict[str, Any]:
    seen: dict[str, list[Any]] = {}
    for value in values:
        for name, inner in value.items():
            if name in seen or len(seen) < MAX_PROPERTIES:
                seen.setdefault(name, []).append(inner)
    found = {
        name: infer_schema(inner, shares=shares and not is_secret_name(name), depth=depth + 1)
        for name, inner in seen.items()
    }
    return {"type": "object", "properties": found} if found else {"type": "object"}


def _get_json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


MAX_TEXT = 4 * 1024 * 1024
_OWN = frozenset(
    "accept accept-charset accept-encoding accept-language access-control-request-headers "
    "access-control-request-method authorization cache-control connection content-length "
    "content-type cookie dnt expect forwarded host keep-alive origin postman-token pragma priority "
    "proxy-authorization proxy-connection referer sec-gpc te trailer transfer-encoding upgrade "
    "upgrade-insecure-requests user-agent via x-requested-with".split()
)
"""Headers that a client sets by itself, which say nothing of the API."""
_BROWSERS = ("sec-", "x-forwarded-", "if-", ":")
_COUNTS = re.compile(
    r"(?:page|limit|offset|skip|(?:page|per|max|batch)[-_]?(?:size|page|results|items))\Z", re.I
)
"""Query parameters that are whole numbers in every API that has them."""
_VERSION_NAME = re.compile(r"(?:\A|[-_])version\Z", re.I)
"""Headers such as `Notion-Version` and `X-GitHub-Api-Version`."""
_VERSION = re.compile(
    r"v?\d{1,4}(?:[.-]\d{1,4}){0,3}(?:-?(?:alpha|beta|preview|rc)\d{0,3})?\Z", re.I
)
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}\Z", re.ASCII)
_WORD = re.compile(r"[^A-Za-z0-9]+")
_BODILESS = ("GET", "HEAD", "DELETE", "OPTIONS", "TRACE")


@dataclass(frozen=True)
class InferredDocument:
    """An inferred document. `places` maps its pointers to pointers of the recording; `left_out` are
    (pointer, reason) of requests that are not in it.
    """

    root: Mapping[str, Any] = field(repr=False)
    places: Mapping[str, str] = field(repr=False)
    left_out: tuple[tuple[str, str], ...] = ()


def infer_document(recording: RequestRecording) -> InferredDocument:
    """Infer the document of a recording. Requests of one method and path become one operation; what
    not all of them carry is optional.
    """
    groups: dict[tuple[str, str, str], list[RecordedRequest]] = {}
    for request in recording.requests:
        groups.setdefault(
            (request.origin, _normalize_route(request.path), request.method), []
        ).append(request)
    paths: dict[str, dict[str, Any]] = {}
    schemes: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    left_out: list[tuple[str, str]] = []
    for (origin, _, method), requests in groups.items():
        path = requests[0].path
        item = paths.setdefault(path, {})
        if method.lower() in item:
            reason = f"{method} {path[:200]} is there at another host; that of {origin} is left out"
            left_out.append((requests[0].where, reason))
            continue
        item[method.lower()] = _build_operation(requests, origin, schemes)
        places[f"/paths/{_escape_token(path)}/{method.lower()}"] = requests[0].where
    return InferredDocument(_build_document(recording, paths, schemes), places, tuple(left_out))


def _build_document(
    recording: RequestRecording, paths: Mapping[str, Any], schemes: Mapping[str, Any]
) -> dict[str, Any]:
    origins = list(dict.fromkeys(r.origin for r in recording.requests if r.origin))
    root: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": recording.title, "version": "", "description": recording.description},
        "paths": paths,
        "components": {"securitySchemes": schemes},
    }
    if origins:
        root["servers"] = [{"url": origins[0]}]
    return root


def _normalize_route(path: str) -> str:
    """Return a path without the names of its placeholders, to compare it."""
    return PLACEHOLDER.sub("{}", path)


def _build_operation(
    requests: Sequence[RecordedRequest], origin: str, schemes: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    first = requests[0]
    name = next((request.name for request in requests if request.name), "")
    made: dict[str, Any] = {
        **({"operationId": _to_identifier(name), "summary": name} if name else {}),
        "description": next((r.description for r in requests if r.description), ""),
        "parameters": [
            *_build_path_parameters(first),
            *_build_query_parameters(requests),
            *_build_header_parameters(requests),
        ],
        "responses": _build_responses(requests),
    }
    if first.group:
        made["tags"] = [first.group]
    if origin:
        made["servers"] = [{"url": origin}]
    body = _build_body(requests)
    if body:
        made["requestBody"] = body
    asked = {(r.credential, *r.others) for r in requests if r.credential}
    if asked:
        made["security"] = [
            {_declare_scheme(c, schemes): [] for c in together}
            for together in sorted(asked, key=repr)
        ]
    return made


def _to_identifier(text: str) -> str:
    return _WORD.sub("_", text).strip("_")[:80]


def _build_path_parameters(request: RecordedRequest) -> Iterator[dict[str, Any]]:
    values = dict(remove_secrets(request.placed)) if request.shares else {}
    for name in dict.fromkeys(PLACEHOLDER.findall(request.path)):
        schema: dict[str, Any] = {"type": "string"}
        if name in values and is_showable(values[name]):
            schema["examples"] = [values[name]]
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _build_query_parameters(requests: Sequence[RecordedRequest]) -> Iterator[dict[str, Any]]:
    shown: dict[str, list[str]] = {}
    repeated: set[str] = set()
    for request in requests:
        pairs = remove_secrets(request.query)
        times = Counter(name for name, _ in pairs)
        repeated |= {name for name, count in times.items() if count > 1}
        for name, value in pairs:
            shown.setdefault(name, []).extend([value] if request.shares else [])
    for name, values in shown.items():
        schema: dict[str, Any] = {"type": "integer" if _COUNTS.match(name) else "string"}
        if name in repeated:
            schema = {"type": "array", "items": {"type": "string"}}
        elif (
            schema["type"] == "string"
            and values
            and is_showable(values[0])
            and not PLACEHOLDER.search(values[0])
        ):
            schema["examples"] = values[:1]
        yield {"name": name, "in": "query", "schema": schema}


def _build_header_parameters(requests: Sequence[RecordedRequest]) -> Iterator[dict[str, Any]]:
    """Yield the API's own headers; a plain value that every request sends becomes the default, and
    a version is sent with every call: what the requests got, they got of that version.
    """
    sent = [dict(_select_own_headers(request)) for request in requests]
    values: dict[str, list[str]] = {}
    for headers in sent:
        for name, value in headers.items():
            values.setdefault(name, []).append(value)
    for name, found in values.items():
        schema: dict[str, Any] = {"type": "string"}
        is_same = len(found) == len(sent) and len(set(found)) == 1
        if is_same and _VERSION_NAME.search(name) and _VERSION.match(found[0]):
            fixed = {**schema, "const": found[0]}
            yield {"name": name, "in": "header", "required": True, "schema": fixed}
            continue
        if is_same and requests[0].shares and is_showable(found[0]):
            schema["default"] = found[0]
        yield {"name": name, "in": "header", "schema": schema}


def _select_own_headers(request: RecordedRequest) -> Iterator[Pair]:
    carried = (request.credential, *request.others)
    asked = {credential.parameter.lower() for credential in carried if credential}
    for name, value in request.headers:
        low = name.lower()
        if low not in _OWN and low not in asked and not low.startswith(_BROWSERS):
            if not is_secret_pair(low, value):
                yield low, value


def _build_body(requests: Sequence[RecordedRequest]) -> dict[str, Any] | None:
    bodies = [(r.body, r.shares) for r in requests if r.body and r.method not in _BODILESS]
    if not bodies:
        return None
    types = dict.fromkeys(body.media_type for body, _ in bodies)
    content = {
        media_type: _build_media_type([pair for pair in bodies if pair[0].media_type == media_type])
        for media_type in types
    }
    return {"content": content, "required": len(bodies) == len(requests)}


def _build_media_type(bodies: Sequence[tuple[RecordedBody, bool]]) -> dict[str, Any]:
    """Build the media type object (OpenAPI 3.1, section 4.8.14) of bodies of one type."""
    if any(body.fields for body, _ in bodies):
        return {"schema": _build_form_schema(bodies)}
    values = [value for body, _ in bodies for value in _parse_json(body.media_type, body.text)]
    if not values:
        return {}
    found = infer_schema(values, shares=all(shares for _, shares in bodies))
    return {"schema": found} if found else {}


def _build_form_schema(bodies: Sequence[tuple[RecordedBody, bool]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for body, shares in bodies:
        for item in body.fields:
            schema: dict[str, Any] = {"type": "string"}
            if item.is_file:
                schema = {"type": "string", "format": "binary"}
            elif (
                shares and item.value and is_showable(item.value) and not is_secret_name(item.name)
            ):
                schema["examples"] = [item.value]
            properties.setdefault(item.name, schema)
    return {"type": "object", "properties": properties}


def _build_responses(requests: Sequence[RecordedRequest]) -> dict[str, Any]:
    answers = [answer for request in requests for answer in request.answers]
    made: dict[str, Any] = {}
    for status in sorted({a.status for a in answers if 100 <= a.status <= 599}):
        mine = [answer for answer in answers if answer.status == status]
        content = {}
        for media_type in dict.fromkeys(answer.media_type for answer in mine):
            texts = [answer.text for answer in mine if answer.media_type == media_type]
            values = [value for text in texts for value in _parse_json(media_type, text)]
            found = infer_schema(values) if values else {}
            if media_type:
                content[media_type] = {"schema": found} if found else {}
        made[str(status)] = {"description": "", **({"content": content} if content else {})}
    return made or _build_expected_response(requests)


def _build_expected_response(requests: Sequence[RecordedRequest]) -> dict[str, Any]:
    """What requests without recorded answers ask for, where all name one and the same type."""
    asked = {find_header(request.headers, "accept") or "" for request in requests}
    kind = asked.pop().partition(";")[0].strip() if len(asked) == 1 else ""
    if not _MEDIA_TYPE.match(kind):
        return {"default": {"description": "as the API answers"}}
    return {"200": {"description": "as the API answers", "content": {kind: {}}}}


def _parse_json(media_type: str, text: str) -> list[Any]:
    """Parse a JSON text to a list with its value; an empty list where it is no JSON."""
    if not text or len(text) > MAX_TEXT or not ("json" in media_type or media_type == ""):
        return []
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _declare_scheme(credential: RecordedCredential, schemes: dict[str, dict[str, Any]]) -> str:
    """Declare the credential's scheme if it is new, and return its name."""
    made: dict[str, Any] = {"type": "http", "scheme": credential.kind}
    name: str = credential.kind
    if credential.kind == "apiKey":
        where = credential.location
        made = {"type": "apiKey", "in": where, "name": credential.parameter}
        name = _to_identifier(credential.parameter) or "key"
    elif credential.kind == "oauth2":
        flow = {"tokenUrl": credential.token_url, "scopes": {}}
        made = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        if not credential.token_url:
            made = {"type": "http", "scheme": "bearer"}
    schemes.setdefault(name, made)
    return name


def _escape_token(path: str) -> str:
    return path.replace("~", "~0").replace("/", "~1")
