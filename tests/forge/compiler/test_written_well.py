"""`server.py` passes the linter and the type checker, against the runtime's own annotations."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forge.compiler.annotations import render_annotation
from sandbox.bundle.apispec import Schema
from tests.forge.samples import compiled

RUNTIME = Path(__file__).parents[3] / "images" / "base" / "runtime"
RUFF = shutil.which("ruff", path=os.path.dirname(sys.executable)) or "ruff"
RULES = "E4,E7,E9,F,I,B,UP,C4,RUF"
OF_PROSE = "RUF001,RUF002,RUF003"
"""Rules on the letters of strings and docstrings, which are the document's."""
NUMBERS = "{type: array, items: {type: number}}"
PARTS = "{id: {xml: {attribute: true}}, kind: {xml: {name: sort, namespace: 'https://x.test/'}}}"
LONG = "AVeryLongNameOfAFieldThatAnAuthorThoughtOfOnALongAfternoonInTheOffice"
DOCUMENTS = {
    "parameters": f"""
    /a/{{id}}/{{l}}:
      parameters:
        - {{name: id, in: path, required: true, schema: {{type: integer}}}}
        - {{name: l, in: path, required: true, style: matrix, schema: {{type: array}}}}
      get:
        operationId: list
        summary: 'Says \\"hello\\" — with a \\\\ and an …'
        parameters:
          - {{name: list, in: query, style: deepObject, schema: {{type: object}}}}
          - {{name: page, in: query, schema: {{type: integer, nullable: true}}}}
          - {{name: per-page, in: query, schema: {{type: integer}}}}
          - {{name: Any, in: query, explode: false, schema: {NUMBERS}}}
          - {{name: X-Trace, in: header, schema: {{type: boolean}}}}
          - {{name: isinstance, in: cookie, content: {{application/json: {{}}}}}}
          - {{name: raw, in: query, allowReserved: true, schema: {{type: string}}}}
        responses: {{'200': {{description: '', content: {{application/json: {{schema:
          {{type: array, items: {{type: string}}}}}}}}}}}}
    """,
    "bodies": f"""
    /json: {{put: {{requestBody: {{content: {{application/json: {{schema:
      {{type: [object, 'null']}}}}}}}}}}}}
    /form: {{post: {{requestBody: {{content: {{application/x-www-form-urlencoded: {{schema:
      {{type: object, properties: {{tags: {{type: array}}}}}},
      encoding: {{tags: {{explode: false}}}}}}}}}}}}}}
    /files: {{post: {{operationId: dict, requestBody: {{required: true, content:
      {{multipart/form-data: {{schema: {{type: object, properties:
        {{f: {{type: string, format: binary}}, m: {{type: object}}}}}},
        encoding: {{m: {{contentType: application/json}}}}}}}}}}}}}}
    /lines: {{post: {{requestBody: {{content: {{application/x-ndjson: {{}}}}}}}}}}
    /xml: {{post: {{requestBody: {{content: {{application/xml: {{schema:
      {{type: object, xml: {{name: Pet}}, properties: {PARTS}}}}}}}}}}}}}
    /bytes: {{post: {{operationId: class, requestBody: {{content: {{image/png: {{}}}}}}}}}}
    """,
    "plain": "/: {get: {operationId: get}}",
    "long": f"""
    /{LONG}/{{{LONG}}}:
      post:
        parameters: [{{name: {LONG}1, in: query, style: pipeDelimited, schema: {{type: array}}}}]
        requestBody: {{content: {{multipart/form-data: {{schema: {{type: object, properties:
          {{'{LONG}(': {{type: string, format: binary}}}}}}}}}}}}
    """,
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("servers")
    for name, paths in DOCUMENTS.items():
        made = compiled(paths, version="3.1.0")
        assert not made.problems, made.problems
        (directory / f"{name}.py").write_text(made.bundle.source_code)
    return directory


def test_the_linter_finds_nothing(servers: Path) -> None:
    rules = ["--isolated", "--no-cache", "--select", RULES, "--ignore", OF_PROSE, str(servers)]
    ran = subprocess.run([RUFF, "check", *rules], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_formatter_changes_nothing_where_no_name_is_too_long_for_a_line(servers: Path) -> None:
    paths = [str(path) for path in servers.iterdir() if path.stem != "long"]
    command = [RUFF, "format", "--isolated", "--no-cache", "--diff", *paths]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_strict_type_checker_finds_nothing(servers: Path, tmp_path: Path) -> None:
    assert (RUNTIME / "toolwright" / "py.typed").exists()
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(servers)]
    environment = {**os.environ, "MYPYPATH": str(RUNTIME), "MYPY_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout


def test_every_argument_and_every_return_has_a_type(servers: Path) -> None:
    for path in servers.iterdir():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.returns is not None
                assert all(argument.annotation for argument in node.args.args)


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["null", "integer"]}, "int | None"),
        ({"enum": ["a", 1, None]}, "str | int | None"),
        ({"const": True}, "bool"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"type": "array", "items": {"type": "array"}}, "list[list[Any]]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"properties": {}}, "dict[str, Any]"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/N"}]}, "str | int"),
        ({"allOf": [{"$ref": "#/$defs/N"}, {"minimum": 1}]}, "int"),
        ({"anyOf": [{"type": "string"}, {}]}, "Any"),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        (True, "Any"),
        (False, "Any"),
        ({}, "Any"),
    ],
)
def test_annotations_say_what_schemas_allow(schema: Schema, written: str) -> None:
    defs: dict[str, Schema] = {"N": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}}
    assert render_annotation(schema, defs) == written
