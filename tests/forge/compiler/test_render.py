from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.compiler.design import design_server
from forge.compiler.render import format_literal, render_server
from forge.errors import NoUsableOperation
from forge.naming import API, PAGES, STYLES, TYPES
from forge.readers.document import Document
from forge.readers.openapi.reader import read_openapi
from tests.forge.samples import reading


def source(paths: str, rest: str = "", version: str = "3.0.3") -> str:
    return render_server(design_server(reading(paths, rest, version).spec))


def test_a_server_reads_as_one_would_write_it() -> None:
    text = source(
        """
        /servers/{server_id}/zones:
          get:
            operationId: listZones
            summary: List all zones of a server.
            parameters:
              - {name: zone, in: query, schema: {type: string}}
              - {name: tag, in: query, explode: false, schema: {type: array}}
        /zones:
          post:
            operationId: createZone
            requestBody: {required: true, content: {application/json: {}}}
        """
    )
    assert (
        text
        == '''"""Pets: 2 operations, compiled from api.yaml."""

from __future__ import annotations

from typing import Any

from toolwright import UNSET, Answer, Unset, http, tool
from toolwright.styles import csv


@tool
def list_zones(
    server_id: str,
    zone: str | Unset = UNSET,
    tag: list[Any] | Unset = UNSET,
) -> Answer:
    """List all zones of a server."""
    return http.request(
        "GET",
        "/servers/{server_id}/zones",
        path={"server_id": server_id},
        query={"zone": zone, "tag": csv(tag)},
    )


@tool
def create_zone(body: Any) -> Answer:
    """createZone"""
    return http.request("POST", "/zones", json=body)
'''
    )


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ("{name: q, in: query, schema: {type: array}}", 'query={"q": q}'),
        ("{name: q, in: query, explode: false, schema: {type: string}}", 'query={"q": q}'),
        ("{name: q, in: query, explode: false}", 'query={"q": csv(q)}'),
        ("{name: q, in: query, style: spaceDelimited}", "ssv(q)"),
        ("{name: q, in: query, style: pipeDelimited}", "pipes(q)"),
        ("{name: q, in: query, style: pipeDelimited, explode: true}", '{"q": q}'),
        ("{name: q, in: query, style: deepObject}", "deep(q)"),
        ("{name: q, in: query, allowReserved: true}", '{"q": raw(q)}'),
        ("{name: q, in: query, allowReserved: true, explode: false}", "raw(csv(q))"),
        ("{name: q, in: query, content: {application/json: {}}}", "json_text(q)"),
        ("{name: id, in: path, style: label}", "label(id)"),
        ("{name: id, in: path, style: matrix, explode: true}", "matrix(id, explode=True)"),
        ("{name: id, in: path, explode: true}", "exploded(id)"),
        ("{name: X-H, in: header}", 'header={"X-H": x_h}'),
        ("{name: X-H, in: header, explode: true}", "exploded(x_h)"),
        ("{name: c, in: cookie}", 'cookie={"c": c}'),
        ("{name: c, in: cookie, explode: false}", 'cookie={"c": csv(c)}'),
    ],
)
def test_each_style_has_its_wrapper(parameter: str, written: str) -> None:
    text = source(f"/a/{{id}}: {{get: {{parameters: [{parameter}]}}}}")
    assert written in text
    ast.parse(text)


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("application/json: {}", "json=body"),
        ("application/vnd.x+json: {}", 'json=body, content_type="application/vnd.x+json"'),
        ("application/x-www-form-urlencoded: {}", "form=body"),
        ("text/plain: {}", "text=body"),
        ("application/xml: {}", 'text=body, content_type="application/xml"'),
        ("'image/*': {}", "binary=body"),
        ("image/png: {}", 'binary=body, content_type="image/png"'),
        (
            "application/x-www-form-urlencoded: {schema: {type: string}}",
            'text=body, content_type="application/x-www-form-urlencoded"',
        ),
        ("application/x-www-form-urlencoded: {schema: {type: [object, 'null']}}", "form=body"),
        ("image/*: {}", 'binary=body, content_type="image/png"'),
        ("'*/*': {schema: {type: string, format: binary}}", "binary=body)"),
    ],
)
def test_each_kind_of_body_has_its_keyword(content: str, written: str) -> None:
    text = source(f"/a: {{post: {{requestBody: {{content: {{{content}}}}}}}}}")
    assert written in " ".join(text.split()).replace(", )", ")")


def test_parts_of_a_multipart_body_are_files_or_typed_where_the_document_says() -> None:
    schema = """
    {properties: {f: {type: string, format: binary}, m: {type: object}, n: {type: string}}}
    """
    body = f"{{schema: {schema.strip()}, encoding: {{m: {{contentType: application/json}}}}}}"
    wrapped = (
        '"f": file(body.get("f", UNSET)), '
        '"m": part(body.get("m", UNSET), content_type="application/json")'
    )
    required = source(
        "/a: {put: {requestBody: {required: true, "
        f"content: {{multipart/form-data: {body}}}}}}}}}"
    )
    optional = source(
        f"/a: {{post: {{requestBody: {{content: {{multipart/form-data: {body}}}}}}}}}"
    )
    for text in (required, optional):
        said = " ".join(text.split()).replace("( ", "(").replace(" )", ")")
        assert f"if not isinstance(body, Unset): body = {{ **body, {wrapped}, }}" in said
        assert "multipart=body" in said


def test_another_server_is_named_whole_and_other_answers_are_asked_for() -> None:
    text = source(
        """
        /a: {get: {}}
        /b: {get: {}}
        /c:
          servers: [{url: 'https://files.example.com'}]
          get: {responses: {200: {content: {text/csv: {}}}}}
        """
    )
    assert '"https://files.example.com/c"' in text
    assert text.count("accept=") == 1
    assert 'accept="text/csv"' in text


def test_constants_of_a_path_are_written_out() -> None:
    assert 'query={"action": "list"}' in source("'/a?action=list': {get: {}}")


@given(st.text())
def test_a_literal_is_the_text_and_nothing_else(text: str) -> None:
    assert ast.literal_eval(format_literal(text)) == text
    assert "\n" not in format_literal(text)


_HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            '"""\nimport os\nos.system("x")\n"""',
            "'''",
            "\\",
            '\\"""',
            '"); import os #',
            "{x!r}",
            "\\N{BULLET}",
            "\u2028import os",
            "\r\nimport os",
            "a\x00b",
            "class",
            "UNSET",
            "http",
            "tool",
            "csv",
            "__import__('os')",
            "_" * 50,
            '"' * 10,
            "\ud7ff\ue000",
        ]
    ),
)
_LOCATIONS = st.sampled_from(["query", "header", "cookie", "path"])
_MEDIA = st.sampled_from(
    ["application/json", "multipart/form-data", "application/x-www-form-urlencoded", "image/png"]
)


@st.composite
def _operations(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(
        st.dictionaries(_HOSTILE, st.just({"type": "string", "format": "binary"}), max_size=2)
    )
    return {
        "operationId": draw(_HOSTILE),
        "summary": draw(_HOSTILE),
        "description": draw(_HOSTILE),
        "parameters": [
            {"name": draw(_HOSTILE), "in": draw(_LOCATIONS), "description": draw(_HOSTILE), **extra}
            for extra in draw(st.lists(st.sampled_from([{}, {"explode": False}]), max_size=3))
        ],
        "requestBody": {
            "required": draw(st.booleans()),
            "content": {draw(_MEDIA): {"schema": {"type": "object", "properties": properties}}},
        },
    }


@settings(deadline=None)
@given(
    _HOSTILE,
    st.dictionaries(
        st.one_of(_HOSTILE, st.just("a?{q}='\"&b={c}"), st.just("{x'}/{\"y}")),
        _operations(),
        max_size=4,
    ),
)
def test_nothing_of_a_document_becomes_code(
    title: str, operations: dict[str, dict[str, Any]]
) -> None:
    root = {
        "openapi": "3.0.0",
        "info": {"title": title},
        "servers": [{"url": "https://api.example.com"}],
        "paths": {f"/{path}": {"post": operation} for path, operation in operations.items()},
    }
    try:
        spec = read_openapi(Document(title or "x", b"", root)).spec
    except NoUsableOperation:
        return
    server = design_server(spec)
    tree = ast.parse(render_server(server))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions] == [tool.definition.name for tool in server.tools]
    head = tree.body[: len(tree.body) - len(functions)]
    assert isinstance(head[0], ast.Expr)
    assert all(isinstance(node, ast.ImportFrom) for node in head[1:])
    for node, tool in zip(functions, server.tools, strict=True):
        arguments = [argument.arg for argument in node.args.args]
        assert sorted(arguments) == sorted(tool.definition.input_schema["properties"])
        for inner in ast.walk(node):
            assert not isinstance(inner, ast.Import | ast.Lambda | ast.JoinedStr | ast.Await)
            if isinstance(inner, ast.Call):
                known = {"http.request", "isinstance", *PAGES, *STYLES, *_gets(arguments)}
                assert ast.unparse(inner.func) in known
            if isinstance(inner, ast.Name):
                assert inner.id in {*API, *TYPES, *arguments}


def _gets(arguments: list[str]) -> set[str]:
    return {f"{name}.get" for name in arguments}
