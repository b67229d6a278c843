"""Recorded requests as an OpenAPI 3.1 document: what they have in common, and what differs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forge.recorded.request import PLACEHOLDER, Body, Credential, Pair, RecordedRequest, Recording
from forge.recorded.secrets import is_secret, showable, without_secrets
from forge.recorded.shape import shape

MAX_EXAMPLES = 3
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
_WORD = re.compile(r"[^A-Za-z0-9]+")
_BODILESS = ("GET", "HEAD", "DELETE", "OPTIONS", "TRACE")


@dataclass(frozen=True)
class Described:
    """An OpenAPI document, and of its pointers those in the recording that they came from.
    `left_out` are places in the recording and why they are not in it.
    """

    root: Mapping[str, Any] = field(repr=False)
    places: Mapping[str, str] = field(repr=False)
    left_out: tuple[tuple[str, str], ...] = ()


def described(recording: Recording) -> Described:
    """The document that a recording amounts to. Requests of one method and path are one operation:
    what not all of them carry is optional.
    """
    groups: dict[tuple[str, str, str], list[RecordedRequest]] = {}
    for request in recording.requests:
        groups.setdefault((request.origin, _route(request.path), request.method), []).append(
            request
        )
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
        item[method.lower()] = _operation(requests, origin, schemes)
        places[f"/paths/{_escaped(path)}/{method.lower()}"] = requests[0].where
    return Described(_document(recording, paths, schemes), places, tuple(left_out))


def _document(
    recording: Recording, paths: Mapping[str, Any], schemes: Mapping[str, Any]
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


def _route(path: str) -> str:
    """A path whatever its placeholders are called."""
    return PLACEHOLDER.sub("{}", path)


def _operation(
    requests: Sequence[RecordedRequest], origin: str, schemes: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    first = requests[0]
    name = next((request.name for request in requests if request.name), "")
    made: dict[str, Any] = {
        **({"operationId": _identifier(name), "summary": name} if name else {}),
        "description": next((r.description for r in requests if r.description), ""),
        "parameters": [*_path_parameters(first), *_query(requests), *_headers(requests)],
        "responses": _responses(requests),
    }
    if first.group:
        made["tags"] = [first.group]
    if origin:
        made["servers"] = [{"url": origin}]
    body = _body(requests)
    if body:
        made["requestBody"] = body
    asked = {r.credential for r in requests if r.credential}
    if asked:
        made["security"] = [{_scheme(c, schemes): []} for c in sorted(asked, key=repr)]
    return made


def _identifier(text: str) -> str:
    return _WORD.sub("_", text).strip("_")[:80]


def _path_parameters(request: RecordedRequest) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(PLACEHOLDER.findall(request.path)):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query(requests: Sequence[RecordedRequest]) -> Iterator[dict[str, Any]]:
    keyed = [(without_secrets(request.query), request.shares) for request in requests]
    for name in dict.fromkeys(name for pairs, _ in keyed for name, _ in pairs):
        repeated = any([n for n, _ in pairs].count(name) > 1 for pairs, _ in keyed)
        values = [value for pairs, shares in keyed for n, value in pairs if n == name and shares]
        schema: dict[str, Any] = {"type": "integer" if _COUNTS.match(name) else "string"}
        if repeated:
            schema = {"type": "array", "items": {"type": "string"}}
        elif (
            schema["type"] == "string"
            and values
            and showable(values[0])
            and not PLACEHOLDER.search(values[0])
        ):
            schema["examples"] = values[:1]
        yield {"name": name, "in": "query", "schema": schema}


def _headers(requests: Sequence[RecordedRequest]) -> Iterator[dict[str, Any]]:
    """The headers of the API's own. One that every request sends with one plain value is needed."""
    sent = [dict(_own_headers(request)) for request in requests]
    for name in dict.fromkeys(name for headers in sent for name in headers):
        values = {headers.get(name) for headers in sent}
        schema: dict[str, Any] = {"type": "string"}
        value = next(iter(values))
        if len(values) == 1 and requests[0].shares and showable(value):
            schema["default"] = value
        yield {"name": name, "in": "header", "schema": schema}


def _own_headers(request: RecordedRequest) -> Iterator[Pair]:
    asked = request.credential.parameter.lower() if request.credential else ""
    for name, value in request.headers:
        low = name.lower()
        if low not in _OWN and low != asked and not low.startswith(_BROWSERS):
            if not is_secret(low):
                yield low, value


def _body(requests: Sequence[RecordedRequest]) -> dict[str, Any] | None:
    bodies = [(r.body, r.shares) for r in requests if r.body and r.method not in _BODILESS]
    if not bodies:
        return None
    types = dict.fromkeys(body.media_type for body, _ in bodies)
    content = {
        media_type: _media([pair for pair in bodies if pair[0].media_type == media_type])
        for media_type in types
    }
    return {"content": content, "required": len(bodies) == len(requests)}


def _media(bodies: Sequence[tuple[Body, bool]]) -> dict[str, Any]:
    """The media type object (OpenAPI 3.1, section 4.8.14) of bodies of one type."""
    if any(body.fields for body, _ in bodies):
        return {"schema": _form(bodies)}
    values = [value for body, _ in bodies for value in _parsed(body.media_type, body.text)]
    if not values:
        return {}
    found = shape(values, shares=all(shares for _, shares in bodies))
    return {"schema": found} if found else {}


def _form(bodies: Sequence[tuple[Body, bool]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for body, shares in bodies:
        for item in body.fields:
            schema: dict[str, Any] = {"type": "string"}
            if item.is_file:
                schema = {"type": "string", "format": "binary"}
            elif shares and item.value and showable(item.value) and not is_secret(item.name):
                schema["examples"] = [item.value]
            properties.setdefault(item.name, schema)
    return {"type": "object", "properties": properties}


def _responses(requests: Sequence[RecordedRequest]) -> dict[str, Any]:
    answers = [answer for request in requests for answer in request.answers]
    made: dict[str, Any] = {}
    for status in sorted({a.status for a in answers if 100 <= a.status <= 599}):
        mine = [answer for answer in answers if answer.status == status]
        content = {}
        for media_type in dict.fromkeys(answer.media_type for answer in mine):
            texts = [answer.text for answer in mine if answer.media_type == media_type]
            values = [value for text in texts for value in _parsed(media_type, text)]
            found = shape(values) if values else {}
            if media_type:
                content[media_type] = {"schema": found} if found else {}
        made[str(status)] = {"description": "", **({"content": content} if content else {})}
    return made or {"default": {"description": "as the API answers"}}


def _parsed(media_type: str, text: str) -> list[Any]:
    """The JSON value that a text is, in a list; an empty list where it is none."""
    if not text or len(text) > MAX_TEXT or not ("json" in media_type or media_type == ""):
        return []
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _scheme(credential: Credential, schemes: dict[str, dict[str, Any]]) -> str:
    """The name of the credential's scheme, declared if it is not yet."""
    made: dict[str, Any] = {"type": "http", "scheme": credential.kind}
    name: str = credential.kind
    if credential.kind == "apiKey":
        where = credential.location
        made = {"type": "apiKey", "in": where, "name": credential.parameter}
        name = _identifier(credential.parameter) or "key"
    elif credential.kind == "oauth2":
        flow = {"tokenUrl": credential.token_url, "scopes": {}}
        made = {"type": "oauth2", "flows": {"clientCredentials": flow}}
        if not credential.token_url:
            made = {"type": "http", "scheme": "bearer"}
    schemes.setdefault(name, made)
    return name


def _escaped(path: str) -> str:
    return path.replace("~", "~0").replace("/", "~1")
