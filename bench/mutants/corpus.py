"""Calls on which a mutant is compared with its original: arguments of every kind with a good
answer, and answers of every kind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.mutants.instances import HOSTILE, Instances, Mood
from bench.mutants.shapes import resolved
from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.validator import get_checker
from sandbox.wire.exchange import Headers, WireResponse

MAX_VALUES = 16
MAX_ALONE = 14
_EXTREMES: tuple[Mood, ...] = ("minimal", "falsy", "low", "high")
_MOODS: tuple[Mood, ...] = (
    "minimal",
    "full",
    "random",
    "falsy",
    "high",
    "low",
    "many",
    "single",
    "random",
    "random",
    "random",
    "random",
    "random",
    "full",
)
_STATUSES = (
    *(200, 201, 202, 203, 204, 206, 226, 301, 304, 400, 401, 403, 404, 405, 409, 410, 412, 418),
    *(422, 429, 451, 500, 501, 502, 503, 504, 599),
)
_HEADERS: Headers = (
    ("content-type", "application/json"),
    ("link", '<https://api.example/next>; rel="next"'),
    ("etag", '"v7"'),
    ("location", "https://api.example/items/7"),
    ("x-ratelimit-remaining", "41"),
    ("retry-after", "7"),
)
_JSON = _HEADERS[:1]
_VALUES: tuple[Any, ...] = (
    None,
    False,
    0,
    "",
    [],
    {},
    "text",
    7,
    2**63 + 11,
    1.5,
    ["ä", None, [1, 2, 3, 4, 5]],
    {"Field": {"list": [1, 2, 3, 4], "null": None, "big": 2**60 + 1, "long": "y" * 500}},
)


_MISFITS: tuple[Any, ...] = ("no such\u0000 value", 847_100, [[]], {"no": {"such": 1}}, True, None)


@dataclass(frozen=True)
class Call:
    """Arguments, and what the API answers; with no answer it is silent until the limit."""

    tool: str
    arguments: Mapping[str, Any]
    answer: WireResponse | None


def calls(bundle: Bundle, seed: int) -> Mapping[str, tuple[Call, ...]]:
    """The calls of every tool of a bundle by the tool's name, the most telling ones first."""
    assert bundle.spec is not None
    known = {operation.id: operation for operation in bundle.spec.operations}
    made = {}
    for tool in bundle.tools:
        rng = random.Random(f"{seed} {tool.name}")
        if tool.operation in known:
            made[tool.name] = tuple(_calls(bundle.spec, tool, known[tool.operation], rng))
    return made


def _calls(
    spec: APISpec, tool: ToolDefinition, operation: Operation, rng: random.Random
) -> Iterator[Call]:
    instances = Instances(tool.input_schema.get("$defs", {}), rng)
    good = list(_good(tool.input_schema, instances))
    answers = list(_answers(spec, operation, rng))
    minimal, full = good[0], good[min(1, len(good) - 1)]
    for at, arguments in enumerate(good):
        yield Call(tool.name, arguments, answers[at % 3])
    for answer in answers:
        yield Call(tool.name, minimal, answer)
    for answer in answers[:: max(1, len(answers) // 8)]:
        yield Call(tool.name, full, answer)
    yield Call(tool.name, minimal, None)
    for arguments in _bad(tool.input_schema, full):
        yield Call(tool.name, arguments, answers[0])


def _good(schema: Mapping[str, Any], instances: Instances) -> Iterator[dict[str, Any]]:
    """Arguments that the input schema takes, the least and the most of them first."""
    takes = get_checker(schema)
    seen = set()
    for arguments in _arguments(schema, instances):
        key = json.dumps(arguments, sort_keys=True)
        if key not in seen and takes.find_problem(arguments) is None:
            seen.add(key)
            yield arguments
    if not seen:
        yield {}


def _arguments(schema: Mapping[str, Any], instances: Instances) -> Iterator[dict[str, Any]]:
    for mood in _MOODS:
        yield instances.make(schema, mood)
    for word in HOSTILE:
        yield instances.make(schema, "hostile", word)
    minimal, full = instances.make(schema, "minimal"), instances.make(schema, "full")
    properties: Mapping[str, Any] = schema.get("properties", {})
    optional = [name for name in properties if name not in minimal and name in full][:MAX_ALONE]
    for name in optional:
        yield {**minimal, name: full[name]}
        yield {key: value for key, value in full.items() if key != name}
    defs = schema.get("$defs", {})
    for name, part in properties.items():
        for value in _listed(resolved(part, defs), defs)[:MAX_VALUES]:
            yield {**minimal, name: value}
        for mood in _EXTREMES:
            yield {**minimal, name: instances.make(part, mood)}


def _listed(part: Mapping[str, Any], defs: Mapping[str, Any]) -> list[Any]:
    """Each value of an enumeration, alone or as the item of a list."""
    if part.get("enum"):
        return list(part["enum"])
    items = resolved(part.get("items"), defs)
    return [[value] for value in items.get("enum") or ()]


def _bad(schema: Mapping[str, Any], full: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments that the input schema should refuse."""
    yield {**full, "undeclared": 1}
    for name in schema.get("required", ()):
        yield {key: value for key, value in full.items() if key != name}
    for name, value in full.items():
        for wrong in _MISFITS:
            if type(wrong) is not type(value):
                yield {**full, name: wrong}
        if isinstance(value, str):
            yield {**full, name: "no such value"}


def _answers(spec: APISpec, operation: Operation, rng: random.Random) -> Iterator[WireResponse]:
    """Every kind of answer; the first three are good ones."""
    instances = Instances(spec.schemas, rng)
    content = [
        (response.status, media)
        for response in operation.responses
        if response.status.startswith("2") or response.status == "default"
        for media in response.content
    ]
    schemas = [media.schema for _, media in content if "json" in media.type] or [True]
    status = next((int(s) for s, _ in content if s.isdigit()), 200)
    moods: tuple[Mood, ...] = (
        "full",
        "minimal",
        "many",
        "random",
        "falsy",
        "high",
        "low",
        "single",
    )
    for schema in schemas:
        for mood in (*moods, "random", "random"):
            yield _json(status, instances.make(schema, mood))
        for word in HOSTILE:
            yield _json(status, instances.make(schema, "hostile", word))
    for value in _VALUES:
        yield _json(200, value)
    whole = instances.make(schemas[0], "full")
    yield WireResponse(200, _HEADERS, json.dumps(whole).encode())
    for wrong in _wrong(whole):
        yield _json(200, wrong)
    for number in _STATUSES:
        yield _json(number, {"error": {"message": f"told {number}"}})
        yield WireResponse(number)
    yield from _odd()


def _odd() -> Iterator[WireResponse]:
    yield WireResponse(429, (*_JSON, ("retry-after", "3")), b'{"message": "slow down"}')
    yield WireResponse(503, (("retry-after", "900"),), b"later")
    yield WireResponse(200, _JSON, b'{"cut": ')
    yield WireResponse(200, _JSON, b'{"line": 1}\n{"line": 2}\n')
    yield WireResponse(200, _JSON, b"null")
    yield WireResponse(200, _JSON, b'{"Extra-Field": null, "id": null}')
    yield WireResponse(200, _JSON, b'{"a": 1, "a": 2}')
    yield WireResponse(200, (("content-type", "text/plain"),), b"plain text, " * 40)
    yield WireResponse(200, (("content-type", "text/html"),), "<p>ä</p>".encode("latin-1"))
    yield WireResponse(
        200, (("content-type", "image/png"),), b"\x89PNG\r\n\x1a\n" + bytes(range(99))
    )
    yield WireResponse(200, (("content-type", "application/xml"),), b"<a><b>1</b></a>")
    yield WireResponse(200, (), b'{"untyped": true}')
    yield WireResponse(200, _JSON, b"[" + b"1," * 150_000 + b"1]")


def _json(status: int, value: Any) -> WireResponse:
    return WireResponse(status, _JSON, json.dumps(value, ensure_ascii=False).encode())


def _wrong(value: Any) -> Iterator[Any]:
    """The value with one part of another type, each of the outer ones in turn."""
    if isinstance(value, dict):
        for name, part in list(value.items())[:20]:
            yield {**value, name: 847 if not isinstance(part, int | float) else "wrong"}
            if isinstance(part, dict | list):
                for inner in list(_wrong(part))[:4]:
                    yield {**value, name: inner}
    elif isinstance(value, list) and value:
        for inner in list(_wrong(value[0]))[:8]:
            yield [inner, *value[1:]]
        yield [True, *value[1:]]
