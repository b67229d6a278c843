"""What a server sends, against the operation it claims to call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from sandbox.apispec import Operation, Parameter, Schema
from sandbox.contract.body import documented, essence, has_fields, read_body
from sandbox.contract.places import IGNORED_HEADERS, Place, constants
from sandbox.contract.styles import (
    Pairs,
    is_nothing,
    read_cookie,
    read_header,
    read_path,
    read_query,
    read_whole,
)
from sandbox.contract.texts import NOT_JSON, parse_json, reads_as, same
from sandbox.contract.url import UrlTemplate, url_template
from sandbox.exchange import WireRequest
from sandbox.judge import Judge

PLUMBING = frozenset(
    {"accept", "accept-language", "content-type", "content-length", "user-agent", "cookie"}
)
"""Headers that carry no parameter, or whose parameters are read from elsewhere."""


def check_request(
    operation: Operation,
    arguments: Mapping[str, Any],
    bound: Mapping[str, Place],
    request: WireRequest,
    judge: Judge,
) -> tuple[str, ...]:
    """The ways in which the wire request is not the documented request for these arguments.

    `bound` is the place of each argument. Every argument has to stand at its place in its
    documented style, whatever is required has to be there, and nothing else may be.
    """
    given = constants(operation)
    given |= {bound[name]: value for name, value in arguments.items() if name in bound}
    problems = [f"the argument {name} has no place" for name in arguments if name not in bound]
    if request.method != operation.method.upper():
        problems.append(f"the method is {request.method}, not {operation.method.upper()}")
    problems += _path(operation, given, request)
    problems += _query(operation, given, request)
    problems += _headers(operation, given, request)
    problems += _cookies(operation, given, request)
    problems += _body(operation, given, request)
    problems += _accept(operation, request)
    problems += _values(operation, given, judge)
    return tuple(problems)


def _parameters(operation: Operation, location: str) -> Iterator[tuple[Place, Parameter]]:
    for parameter in operation.parameters:
        if parameter.location == location:
            yield Place(location, parameter.name), parameter


def documented_schemas(operation: Operation, place: Place | None) -> tuple[Schema, ...]:
    """The schemas that the document has for the value at a place; none for bytes and text."""
    if place == Place("body", "") and operation.body is not None:
        content = [m for m in operation.body.content if has_fields(m.type) or "*" in m.type]
        return tuple(True if media.schema is None else media.schema for media in content)
    found = [p for p in operation.parameters if Place(p.location, p.name) == place]
    return tuple(parameter.schema for parameter in found)


def _values(operation: Operation, given: Mapping[Place, Any], judge: Judge) -> Iterator[str]:
    """A value that the document forbids makes a call that proves nothing."""
    for place, value in given.items():
        schemas = documented_schemas(operation, place)
        problems = [judge.problem(schema, value) for schema in schemas]
        if problems and all(problems):
            yield f"{place} has a value that its document forbids: {problems[0]}"


def _path(operation: Operation, given: Mapping[Place, Any], request: WireRequest) -> Iterator[str]:
    template = url_template(operation.url)
    sent = request.url.partition("#")[0].partition("?")[0]
    found = template.path.match(sent)
    if not found:
        yield f"the URL {sent[:160]} is not {operation.url}"
        return
    segments = dict(zip(template.names, found.groups(), strict=True))
    for place, parameter in _parameters(operation, "path"):
        raw = segments.get(parameter.name)
        if raw is None:
            if parameter.name not in [name for _, name in template.slots]:
                yield f"{place} does not stand in {operation.path}"
        elif place not in given:
            yield f"{place} stands in the path and is no argument"
        elif not read_path(parameter, given[place], raw):
            yield _astray(place, parameter, given[place], raw)


def _astray(place: Place, parameter: Parameter, value: Any, raw: object) -> str:
    style = parameter.media_type or f"{parameter.style}{'*' if parameter.explode else ''}"
    return f"{place} ({style}) is {str(raw)[:100]!r}, not {str(value)[:100]!r}"


def _query(operation: Operation, given: Mapping[Place, Any], request: WireRequest) -> Iterator[str]:
    query = urlsplit(request.url).query
    pairs = _pairs(query, "&")
    used: set[int | None] = set()
    for place, parameter in _parameters(operation, "query"):
        if place in given:
            share = _share(operation, given, place, parameter, pairs, used)
            if parameter.style == "whole":
                found = read_whole(parameter, given[place], query, len(pairs))
            else:
                found = read_query(parameter, given[place], share)
            if found is None:
                yield _astray(place, parameter, given[place], dict(pairs).get(parameter.name, ""))
            used |= found or set()
        elif parameter.required:
            yield f"{place} is required and no argument was given"
    used |= set(own := _own_pairs(url_template(operation.url), given, pairs))
    if None in own:
        yield f"the query that the template holds is missing or wrong: {operation.path}"
    for at, (name, _) in enumerate(pairs):
        if at not in used and not any(_told(name, place) for place in given):
            yield f"the query holds {name[:60]!r}, which is not documented or was not given"


def _share(
    operation: Operation,
    given: Mapping[Place, Any],
    place: Place,
    parameter: Parameter,
    pairs: Pairs,
    used: set[int | None],
) -> Pairs:
    """The pairs that can be an argument's. Of two objects written pair by pair, which stand under
    no name of their own, the first gets the first pair of each name that they share.
    """
    if not _is_spread(parameter, given[place]):
        return pairs
    others = [
        given[other]
        for other, its in _parameters(operation, "query")
        if other != place and other in given and _is_spread(its, given[other])
    ]
    shared = {name for other in others for name in other} & given[place].keys()
    left = [
        ("" if name in shared and at in used else name, raw) for at, (name, raw) in enumerate(pairs)
    ]
    for name in shared:
        mine = [at for at, (key, _) in enumerate(left) if key == name]
        for at in mine[1:]:
            left[at] = ("", left[at][1])
    return left


def _is_spread(parameter: Parameter, value: Any) -> bool:
    plain = parameter.media_type is None and parameter.style == "form"
    return plain and parameter.explode and isinstance(value, Mapping)


def _own_pairs(template: UrlTemplate, given: Mapping[Place, Any], pairs: Pairs) -> list[int | None]:
    """The position of each pair that the template itself holds; None where one is missing."""
    decoded = [(name, unquote_plus(raw)) for name, raw in pairs]
    wanted: list[tuple[str, Any]] = list(template.query)
    wanted += [(key, given.get(Place("path", name))) for key, name in template.slots]
    return [
        next(
            (at for at, (n, text) in enumerate(decoded) if n == name and reads_as(text, value)),
            None,
        )
        for name, value in wanted
    ]


def _told(name: str, place: Place) -> bool:
    """Whether a left-over query name has been told of already, as a value that went astray."""
    return place.location == "query" and (name == place.name or name.startswith(f"{place.name}["))


def _pairs(text: str, delimiter: str) -> Pairs:
    split = [item.strip().partition("=") for item in text.split(delimiter) if item.strip()]
    return [(unquote(name.replace("+", " ")), raw) for name, _, raw in split]


def _headers(
    operation: Operation, given: Mapping[Place, Any], request: WireRequest
) -> Iterator[str]:
    known = set(PLUMBING)
    for place, parameter in _parameters(operation, "header"):
        name = parameter.name.lower()
        if name in IGNORED_HEADERS:
            continue
        known.add(name)
        sent = [text for key, text in request.headers if key.lower() == name]
        if place not in given:
            if parameter.required:
                yield f"{place} is required and no argument was given"
            if sent:
                yield f"{place} was sent and no argument was given"
        elif not (len(sent) == 1 and read_header(parameter, given[place], sent[0])):
            if sent or not is_nothing(given[place]):
                yield _astray(place, parameter, given[place], ", ".join(sent))
    for name, _ in request.headers:
        if name.lower() not in known:
            yield f"the header {name[:60]!r} is not documented"


def _cookies(
    operation: Operation, given: Mapping[Place, Any], request: WireRequest
) -> Iterator[str]:
    pairs = _pairs(request.header("cookie") or "", ";")
    used: set[int] = set()
    for place, parameter in _parameters(operation, "cookie"):
        if place in given:
            found = read_cookie(parameter, given[place], pairs)
            if found is None:
                yield _astray(place, parameter, given[place], request.header("cookie") or "")
            used |= found or {at for at, pair in enumerate(pairs) if pair[0] == parameter.name}
        elif parameter.required:
            yield f"{place} is required and no argument was given"
    if any(place.name.lower() == "cookie" for place, _ in _parameters(operation, "header")):
        return
    for at, (name, _) in enumerate(pairs):
        if at not in used:
            yield f"the cookie {name[:60]!r} is not documented or was not given"


def _body(operation: Operation, given: Mapping[Place, Any], request: WireRequest) -> Iterator[str]:
    place = Place("body", "")
    if operation.document:
        yield from _document(operation, given, request)
        return
    if operation.body is None:
        if request.body:
            yield "a body was sent and none is documented"
        return
    if place not in given:
        if request.body:
            yield "a body was sent and no argument was given"
        elif operation.body.required:
            yield "the body is required and no argument was given"
        return
    content_type = request.header("content-type") or ""
    media = documented(content_type, operation.body.content)
    if media is None:
        yield f"the body's media type {content_type[:80]!r} is not documented"
        return
    problem = read_body(media, content_type, given[place], request.body)
    if problem:
        yield f"the body ({media.type}) {problem}"


def _document(
    operation: Operation, given: Mapping[Place, Any], request: WireRequest
) -> Iterator[str]:
    """What is wrong with a body that has to be a GraphQL document and its variables."""
    variables = {
        place.name: value for place, value in given.items() if place.location == "variable"
    }
    wanted: dict[str, Any] = {"query": operation.document}
    wanted |= {"variables": variables} if variables else {}
    sent = parse_json(request.body)
    if essence(request.header("content-type") or "") != "application/json":
        yield "the document is not sent as application/json"
    if sent is NOT_JSON or not same(wanted, sent):
        yield f"the body is {str(sent)[:160]!r}, not the document with {str(variables)[:160]}"
    for place, parameter in _parameters(operation, "variable"):
        if parameter.required and place not in given:
            yield f"{place} is required and no argument was given"


def _accept(operation: Operation, request: WireRequest) -> Iterator[str]:
    """An Accept header has to let a documented success through (RFC 9110, section 12.5.1)."""
    accepted = request.header("accept")
    if accepted is None:
        return
    told = [r for r in operation.responses if r.status.startswith("2")]
    documented = {essence(media.type) for response in told for media in response.content}
    wanted = documented or {"application/json"}
    ranges = {essence(part) for part in accepted.split(",")}
    offered = {form for kind in wanted for form in (kind, kind.partition("/")[0] + "/*", "*/*")}
    if not ranges & offered and "*/*" not in wanted:
        yield f"the answer is asked for as {accepted[:80]!r}, which is not documented"
