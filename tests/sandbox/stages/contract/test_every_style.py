"""What the runtime writes, the contract reads back: every style, place and body in one server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.bundle.apispec import (
    APISpec,
    Encoding,
    MediaType,
    Operation,
    Parameter,
    RequestBody,
    Response,
)
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.bundle.report import StageReport
from sandbox.stages.mock.stage import prove_mock
from sandbox.stages.prove import build_bench_opener
from tests.sandbox.local import LocalRunner

SERVER = "https://styles.example/api"
LIST = {"type": "array", "items": {"type": "integer"}, "minItems": 2}
NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2}
OBJECT = {
    "type": "object",
    "required": ["R", "G"],
    "properties": {"R": {"type": "integer"}, "G": {"type": "string"}},
}
NESTED = {
    "type": "object",
    "required": ["a"],
    "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}, "l": LIST},
}
TEXT = {"type": "string"}
BYTES = {"type": "string", "format": "byte"}
FILE = {"type": "string", "format": "binary"}

Case = tuple[str, Mapping[str, Any], str, bool, str]
PARAMETERS: Mapping[str, Case] = {
    "path-simple": ("path", TEXT, "simple", False, "value"),
    "path-simple-list": ("path", LIST, "simple", False, "value"),
    "path-simple-object": ("path", OBJECT, "simple", False, "value"),
    "path-simple-object-exploded": ("path", OBJECT, "simple", True, "exploded(value)"),
    "path-label": ("path", TEXT, "label", False, "label(value)"),
    "path-label-list": ("path", LIST, "label", False, "label(value)"),
    "path-label-numbers": ("path", NUMBERS, "label", True, "label(value, explode=True)"),
    "path-label-object": ("path", OBJECT, "label", True, "label(value, explode=True)"),
    "path-matrix": ("path", TEXT, "matrix", False, "matrix(value)"),
    "path-matrix-list": ("path", LIST, "matrix", False, "matrix(value)"),
    "path-matrix-list-exploded": ("path", LIST, "matrix", True, "matrix(value, explode=True)"),
    "path-matrix-object": ("path", OBJECT, "matrix", False, "matrix(value)"),
    "path-matrix-object-exploded": ("path", OBJECT, "matrix", True, "matrix(value, explode=True)"),
    "query-form": ("query", TEXT, "form", True, "value"),
    "query-boolean": ("query", {"type": "boolean"}, "form", True, "value"),
    "query-form-list": ("query", LIST, "form", True, "value"),
    "query-form-list-joined": ("query", LIST, "form", False, "csv(value)"),
    "query-form-object": ("query", OBJECT, "form", True, "value"),
    "query-form-object-joined": ("query", OBJECT, "form", False, "csv(value)"),
    "query-spaces": ("query", LIST, "spaceDelimited", False, "ssv(value)"),
    "query-pipes": ("query", LIST, "pipeDelimited", False, "pipes(value)"),
    "query-tabs": ("query", LIST, "tabDelimited", False, "tsv(value)"),
    "query-deep": ("query", OBJECT, "deepObject", True, "deep(value)"),
    "query-deep-nested": ("query", NESTED, "deepObject", True, "deep(value)"),
    "query-deep-list": ("query", LIST, "deepObject", True, "deep(value)"),
    "query-json": ("query", NESTED, "json", False, "json_text(value)"),
    "header": ("header", TEXT, "simple", False, "value"),
    "header-number": ("header", {"type": "number"}, "simple", False, "value"),
    "header-list": ("header", LIST, "simple", False, "value"),
    "header-object": ("header", OBJECT, "simple", True, "exploded(value)"),
    "cookie": ("cookie", TEXT, "form", True, "value"),
    "cookie-list": ("cookie", LIST, "form", False, "csv(value)"),
    "cookie-list-exploded": ("cookie", LIST, "form", True, "value"),
    "cookie-unescaped": ("cookie", TEXT, "cookie", True, "unescaped(value)"),
    "cookie-unescaped-list": ("cookie", LIST, "cookie", True, "unescaped(value)"),
    "cookie-unescaped-joined": ("cookie", LIST, "cookie", False, "unescaped(value, explode=False)"),
    "cookie-unescaped-object": ("cookie", OBJECT, "cookie", True, "unescaped(value)"),
    "query-whole-json": ("query", NESTED, "whole", True, "whole(json_text(value))"),
    "query-whole-text": ("query", TEXT, "whole", True, "whole(value)"),
}
FIELDS = {
    "type": "object",
    "required": ["name", "tags"],
    "properties": {"name": TEXT, "tags": LIST, "colour": OBJECT, "count": {"type": "integer"}},
}
UPLOAD = {
    "type": "object",
    "required": ["file", "name"],
    "properties": {"file": FILE, "name": TEXT, "tags": LIST, "colour": OBJECT},
}
JOINED = {"tags": Encoding(style="form", explode=False)}
BODIES: Mapping[str, tuple[MediaType, str]] = {
    "json-object": (MediaType("application/json", NESTED), "json=value"),
    "json-list": (MediaType("application/json", LIST), "json=value"),
    "json-text": (MediaType("application/json", TEXT), "json=value"),
    "vendor-json": (
        MediaType("application/vnd.x+json", OBJECT),
        'json=value, content_type="application/vnd.x+json"',
    ),
    "form": (MediaType("application/x-www-form-urlencoded", FIELDS), "form=value"),
    "form-joined": (
        MediaType("application/x-www-form-urlencoded", FIELDS, JOINED),
        'form={**value, "tags": csv(value["tags"])}',
    ),
    "multipart": (
        MediaType("multipart/form-data", UPLOAD),
        'multipart={**value, "file": file(value["file"])}',
    ),
    "text": (MediaType("text/plain", TEXT), "text=value"),
    "lines": (
        MediaType("application/x-ndjson", LIST),
        "text=json_lines(value), content_type='application/x-ndjson'",
    ),
    "sequence": (
        MediaType("application/json-seq", LIST),
        'text=json_sequence(value), content_type="application/json-seq"',
    ),
    "markup": (
        MediaType("application/xml", NESTED),
        'text=xml_text(value, "nested"), content_type="application/xml"',
    ),
    "bytes": (MediaType("application/octet-stream", BYTES), "binary=value"),
}
IMPORTS = (
    "csv, deep, exploded, file, json_lines, json_sequence, json_text, label, matrix, pipes, ssv, "
    "tsv, unescaped, whole, xml_text"
)


def parameter_bundle(wrong: str = "") -> Bundle:
    operations, tools, code = [], [], []
    for at, (location, schema, style, explode, text) in enumerate(PARAMETERS.values()):
        name = f"X-P{at}" if location == "header" else f"p{at}"
        as_json = style == "json"
        media_type = "application/json" if as_json or "json_text" in text else None
        media_type = "text/plain" if text == "whole(value)" else media_type
        parameter = Parameter(
            name,
            location,  # type: ignore[arg-type]
            schema,
            True,
            style="form" if as_json else style,  # type: ignore[arg-type]
            explode=explode,
            media_type=media_type,
        )
        path = f"/t{at}/{{{name}}}" if location == "path" else f"/t{at}"
        operations.append(_operation(at, "GET", path, parameters=(parameter,)))
        tools.append(_tool(operations[-1], {**schema, "x-in": f"{location}:{name}"}))
        code.append(_function(at, "GET", path, f"{location}={{{name!r}: {wrong or text}}}"))
    return _bundle(operations, tools, code)


def body_bundle() -> Bundle:
    operations, tools, code = [], [], []
    for at, (media, text) in enumerate(BODIES.values()):
        body = RequestBody((media,), True)
        operations.append(_operation(at, "POST", f"/b{at}", body=body))
        assert isinstance(media.schema, Mapping)
        tools.append(_tool(operations[-1], {**media.schema, "x-in": "body"}))
        code.append(_function(at, "POST", f"/b{at}", text))
    return _bundle(operations, tools, code)


def _operation(at: int, method: str, path: str, **more: Any) -> Operation:
    ok = Response("200", content=(MediaType("application/json", {"type": "object"}),))
    access: Any = "read" if method == "GET" else "write"
    return Operation(f"op{at}", method, path, SERVER, access, responses=(ok,), **more)


def _tool(operation: Operation, schema: Mapping[str, Any]) -> ToolDefinition:
    arguments = {"type": "object", "required": ["value"], "properties": {"value": schema}}
    body = {"type": "object"}
    result = {"type": "object", "properties": {"status": {"type": "integer"}, "body": body}}
    requests = (RequestPattern(operation.method, operation.url),)
    name = operation.id
    return ToolDefinition(
        name, name, arguments, result, operation.access, operation.id, requests=requests
    )


def _function(at: int, method: str, path: str, text: str) -> str:
    call = f'http.request("{method}", "{path}", {text})'
    return f"@tool\ndef op{at}(value):\n    return {call}\n\n\n"


def _bundle(operations: list[Operation], tools: list[ToolDefinition], code: list[str]) -> Bundle:
    head = f"from toolwright import http, tool\nfrom toolwright.styles import {IMPORTS}\n\n\n"
    return Bundle(
        "styles",
        1,
        "Styles",
        SERVER,
        head + "".join(code),
        tuple(tools),
        Provenance("", ""),
        ("network:styles.example",),
        spec=APISpec("Styles", "1", "", "openapi-3.1", tuple(operations)),
    )


def run(bundle: Bundle, seed: int = 0) -> StageReport:
    return asyncio.run(
        prove_mock(bundle, build_bench_opener(bundle, LocalRunner(), seed), seed=seed)
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_every_parameter_style_arrives_as_documented(seed: int) -> None:
    report = run(parameter_bundle(), seed)
    assert report.list_failures() == ()
    assert report.verdict == "passed"


def test_every_body_arrives_as_documented() -> None:
    report = run(body_bundle())
    assert report.list_failures() == ()
    assert report.verdict == "passed"


def test_a_parameter_written_in_another_style_than_its_own_fails() -> None:
    report = run(parameter_bundle(wrong="value"))
    names = list(PARAMETERS)
    failed = {names[int(cell.operation[2:])] for cell in report.list_failures()}
    # Numbers need no escape: they are the same bytes in both styles.
    alike = {"cookie-unescaped-list"}
    assert failed == {n for n, case in PARAMETERS.items() if case[4] != "value"} - alike
