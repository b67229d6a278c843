"""Checking the request that a server sends against the operation that it claims to call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from sandbox.bundle.apispec import Operation, Parameter, Schema
from sandbox.schemas.directional import DirectionalValidator
from sandbox.stages.contract.body import check_body, extract_essence, find_media_type, has_fields
from sandbox.stages.contract.places import IGNORED_HEADERS, ArgumentPlace, find_constants
from sandbox.stages.contract.styles import (
    Pairs,
    is_nothing,
    read_cookie,
    read_header,
    read_path,
    read_query,
    read_whole,
)
from sandbox.stages.contract.texts import NOT_JSON, is_equal_json, parse_json, reads_as
from sandbox.wire.exchange import WireRequest
from sandbox.wire.policy import compile_template

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")
_VALUE = "((?:[^/?#%]|%[0-9A-Fa-f]{2})*)"
"""What a placeholder stands for. An escape is one letter: the literal `F` behind it is none in
`%9F`.
"""


@dataclass(frozen=True)
class UrlTemplate:
    """`path` matches scheme to path and takes one group per name. `query` is the template's own
    pairs that are fixed, `slots` those whose value is a placeholder, by its name.
    """

    path: re.Pattern[str]
    names: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4_096)
def parse_url_template(url: str) -> UrlTemplate:
    """Read a URL template such as `https://api.example.com/zones/{id}?action=list`."""
    whole, _, query = url.partition("#")[0].partition("?")
    pairs = parse_qsl(query, True)
    slots = tuple((name, text[1:-1]) for name, text in pairs if _PLACEHOLDER.fullmatch(text))
    fixed = tuple(pair for pair in pairs if not _PLACEHOLDER.search(pair[1]))
    path = compile_template(whole, _VALUE, _build_literal_pattern)
    return UrlTemplate(path, tuple(_PLACEHOLDER.findall(whole)), fixed, slots)


def _build_literal_pattern(piece: str) -> str:
    """A pattern for literal text, whose letters may be percent-encoded or not."""
    return "".join(
        re.escape(letter)
        if (letter.isalnum() and letter.isascii()) or letter in "/:.-_~"
        else f"(?:{re.escape(letter)}|{_build_escape_pattern(letter)})"
        for letter in piece
    )


def _build_escape_pattern(letter: str) -> str:
    return "".join(f"(?:%{byte:02X}|%{byte:02x})" for byte in letter.encode())


PLUMBING = frozenset(
    {"accept", "accept-language", "content-type", "content-length", "user-agent", "cookie"}
)
"""Headers that carry no parameter, or whose parameters are read from elsewhere."""


def check_request(
    operation: Operation,
    arguments: Mapping[str, Any],
    bound: Mapping[str, ArgumentPlace],
    request: WireRequest,
    judge: DirectionalValidator,
) -> tuple[str, ...]:
    """The problems of a wire request, compared with the documented one for these arguments.

    `bound` is the place of each argument. Every argument must be at its place in its documented
    style, everything required must be there, and nothing else may be.
    """
    given = find_constants(operation)
    given |= {bound[name]: value for name, value in arguments.items() if name in bound}
    problems = [f"the argument {name} has no place" for name in arguments if name not in bound]
    if request.method != operation.method.upper():
        problems.append(f"the method is {request.method}, not {operation.method.upper()}")
    problems += _check_path(operation, given, request)
    problems += _check_query(operation, given, request)
    problems += _check_headers(operation, given, request)
    problems += _check_cookies(operation, given, request)
    problems += _check_body(operation, given, request)
    problems += _check_accept(operation, request)
    problems += _check_values(operation, given, judge)
    return tuple(problems)


def _iterate_parameters(
    operation: Operation, location: str
) -> Iterator[tuple[ArgumentPlace, Parameter]]:
    for parameter in operation.parameters:
        if parameter.location == location:
            yield ArgumentPlace(location, parameter.name), parameter


def list_documented_schemas(
    operation: Operation, place: ArgumentPlace | None
) -> tuple[Schema, ...]:
    """The documented schemas of the value at a place; none for bytes and text."""
    if place == ArgumentPlace("body", "") and operation.body is not None:
        content = [m for m in operation.body.content if has_fields(m.type) or "*" in m.type]
        return tuple(True if media.schema is None else media.schema for media in content)
    found = [p for p in operation.parameters if ArgumentPlace(p.location, p.name) == place]
    return tuple(parameter.schema for parameter in found)


def _check_values(
    operation: Operation, given: Mapping[ArgumentPlace, Any], judge: DirectionalValidator
) -> Iterator[str]:
    """Problems with values that the document forbids: a call with them proves nothing."""
    for place, value in given.items():
        schemas = list_documented_schemas(operation, place)
        problems = [judge.find_problem(schema, value) for schema in schemas]
        if problems and all(problems):
            yield f"{place} has a value that its document forbids: {problems[0]}"


def _check_path(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    template = parse_url_template(operation.url)
    sent = request.url.partition("#")[0].partition("?")[0]
    found = template.path.match(sent)
    if not found:
        yield f"the URL {sent[:160]} is not {operation.url}"
        return
    segments = dict(zip(template.names, found.groups(), strict=True))
    _divide_segments(operation, given, segments)
    for place, parameter in _iterate_parameters(operation, "path"):
        raw = segments.get(parameter.name)
        if raw is None:
            if parameter.name not in [name for _, name in template.slots]:
                yield f"{place} does not stand in {operation.path}"
        elif place not in given:
            yield f"{place} stands in the path and is no argument"
        elif not read_path(parameter, given[place], raw):
            yield _describe_astray(place, parameter, given[place], raw)


def _divide_segments(
    operation: Operation, given: Mapping[ArgumentPlace, Any], segments: dict[str, str]
) -> None:
    """Divide the text of several placeholders of a segment, `/{name}{extension}` or
    `/{day}T{time}`, so that all of their arguments can be read: their values may hold what stands
    between them.
    """
    known = {
        p.name: (p, given[place])
        for place, p in _iterate_parameters(operation, "path")
        if place in given
    }
    for segment in operation.path.split("/"):
        pieces = _PLACEHOLDER.split(segment)
        names, between = pieces[1::2], pieces[2:-1:2]
        if len(names) < 2 or not known.keys() >= {*names} <= segments.keys():
            continue
        rest = "".join(f"{gap}{segments[n]}" for gap, n in zip(between, names[1:], strict=True))
        divided = _divide(segments[names[0]] + rest, [known[name] for name in names], between)
        segments.update(zip(names, divided, strict=True) if divided else ())


def _divide(
    text: str, wanted: Sequence[tuple[Parameter, Any]], between: Sequence[str]
) -> tuple[str, ...] | None:
    """The parts of a text that are the wanted arguments, without what is between them."""
    parameter, value = wanted[0]
    if not between:
        return (text,) if read_path(parameter, value, text) else None
    for end in range(len(text) + 1):
        if text.startswith(between[0], end) and read_path(parameter, value, text[:end]):
            rest = _divide(text[end + len(between[0]) :], wanted[1:], between[1:])
            if rest is not None:
                return (text[:end], *rest)
    return None


def _describe_astray(place: ArgumentPlace, parameter: Parameter, value: Any, raw: object) -> str:
    style = parameter.media_type or f"{parameter.style}{'*' if parameter.explode else ''}"
    return f"{place} ({style}) is {str(raw)[:100]!r}, not {str(value)[:100]!r}"


def _check_query(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    query = urlsplit(request.url).query
    pairs = split_pairs(query, "&")
    used: set[int | None] = set()
    for place, parameter in _iterate_parameters(operation, "query"):
        if place in given:
            share = _select_pairs(operation, given, place, parameter, pairs, used)
            if parameter.style == "whole":
                found = read_whole(parameter, given[place], query, len(pairs))
            else:
                found = read_query(parameter, given[place], share)
            if found is None:
                yield _describe_astray(
                    place, parameter, given[place], dict(pairs).get(parameter.name, "")
                )
            used |= found or set()
        elif parameter.required:
            yield f"{place} is required and no argument was given"
    used |= set(own := _find_own_pairs(parse_url_template(operation.url), given, pairs))
    if None in own:
        yield f"the query that the template holds is missing or wrong: {operation.path}"
    for at, (name, _) in enumerate(pairs):
        if at not in used and not any(_is_reported(name, place) for place in given):
            yield f"the query holds {name[:60]!r}, which is not documented or was not given"


def _select_pairs(
    operation: Operation,
    given: Mapping[ArgumentPlace, Any],
    place: ArgumentPlace,
    parameter: Parameter,
    pairs: Pairs,
    used: set[int | None],
) -> Pairs:
    """The pairs that can belong to an argument. Of two exploded objects, whose pairs do not carry
    the parameter's name, the first gets the first pair of each name that they share.
    """
    if not _is_spread(parameter, given[place]):
        return pairs
    others = [
        given[other]
        for other, its in _iterate_parameters(operation, "query")
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


def _find_own_pairs(
    template: UrlTemplate, given: Mapping[ArgumentPlace, Any], pairs: Pairs
) -> list[int | None]:
    """The position of each pair that the template itself holds; None where one is missing."""
    decoded = [(name, unquote_plus(raw)) for name, raw in pairs]
    wanted: list[tuple[str, Any]] = list(template.query)
    wanted += [(key, given.get(ArgumentPlace("path", name))) for key, name in template.slots]
    return [
        next(
            (at for at, (n, text) in enumerate(decoded) if n == name and reads_as(text, value)),
            None,
        )
        for name, value in wanted
    ]


def _is_reported(name: str, place: ArgumentPlace) -> bool:
    """Whether an unused query name was reported already, as part of a wrong value."""
    return place.location == "query" and (name == place.name or name.startswith(f"{place.name}["))


def split_pairs(text: str, delimiter: str) -> Pairs:
    """The pairs of a query or a cookie: decoded names, and values as they are sent."""
    split = [item.strip().partition("=") for item in text.split(delimiter) if item.strip()]
    return [(unquote(name.replace("+", " ")), raw) for name, _, raw in split]


def _check_headers(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    known = set(PLUMBING)
    for place, parameter in _iterate_parameters(operation, "header"):
        name = parameter.name.lower()
        if name in IGNORED_HEADERS:
            continue
        known.add(name)
        sent = [text for key, text in request.headers if key.lower() == name]
        if place not in given:
            if parameter.required:
                yield f"{place} is required and no argument was given"
            if sent and name not in PLUMBING:
                yield f"{place} was sent and no argument was given"
        elif not (len(sent) == 1 and read_header(parameter, given[place], sent[0])):
            if sent or not is_nothing(given[place]):
                yield _describe_astray(place, parameter, given[place], ", ".join(sent))
    for name, _ in request.headers:
        if name.lower() not in known:
            yield f"the header {name[:60]!r} is not documented"


def _check_cookies(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    pairs = split_pairs(request.get_header("cookie") or "", ";")
    used: set[int] = set()
    for place, parameter in _iterate_parameters(operation, "cookie"):
        if place in given:
            found = read_cookie(parameter, given[place], pairs)
            if found is None:
                yield _describe_astray(
                    place, parameter, given[place], request.get_header("cookie") or ""
                )
            used |= found or {at for at, pair in enumerate(pairs) if pair[0] == parameter.name}
        elif parameter.required:
            yield f"{place} is required and no argument was given"
    if any(place.name.lower() == "cookie" for place, _ in _iterate_parameters(operation, "header")):
        return
    for at, (name, _) in enumerate(pairs):
        if at not in used:
            yield f"the cookie {name[:60]!r} is not documented or was not given"


def _check_body(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    place = ArgumentPlace("body", "")
    if operation.document:
        yield from _check_document(operation, given, request)
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
    content_type = request.get_header("content-type") or ""
    media = find_media_type(content_type, operation.body.content)
    if media is None:
        yield f"the body's media type {content_type[:80]!r} is not documented"
        return
    problem = check_body(media, content_type, given[place], request.body)
    if problem:
        yield f"the body ({media.type}) {problem}"


def _check_document(
    operation: Operation, given: Mapping[ArgumentPlace, Any], request: WireRequest
) -> Iterator[str]:
    """The problems of a body that has to be a GraphQL document and its variables."""
    variables = {
        place.name: value for place, value in given.items() if place.location == "variable"
    }
    wanted: dict[str, Any] = {"query": operation.document}
    wanted |= {"variables": variables} if variables else {}
    sent = parse_json(request.body)
    if extract_essence(request.get_header("content-type") or "") != "application/json":
        yield "the document is not sent as application/json"
    if sent is NOT_JSON or not is_equal_json(wanted, sent):
        yield f"the body is {str(sent)[:160]!r}, not the document with {str(variables)[:160]}"
    for place, parameter in _iterate_parameters(operation, "variable"):
        if parameter.required and place not in given:
            yield f"{place} is required and no argument was given"


def _check_accept(operation: Operation, request: WireRequest) -> Iterator[str]:
    """An Accept header has to let a documented success through (RFC 9110, section 12.5.1)."""
    accepted = request.get_header("accept")
    if accepted is None:
        return
    told = [r for r in operation.responses if r.status.startswith("2")]
    documented = {extract_essence(media.type) for response in told for media in response.content}
    wanted = documented or {"application/json"}
    ranges = {extract_essence(part) for part in accepted.split(",")}
    offered = {form for kind in wanted for form in (kind, kind.partition("/")[0] + "/*", "*/*")}
    if not ranges & offered and "*/*" not in wanted:
        yield f"the answer is asked for as {accepted[:80]!r}, which is not documented"
