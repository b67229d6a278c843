from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest

from forge.compiler.bodies import build_xml_hint, find_file_form, find_root_name
from forge.compiler.design import design_server
from forge.compiler.render import render_server
from forge.readers.openapi.reader import read_openapi
from sandbox.engines.process import ProcessRunner
from sandbox.stages.prove import prove_bundle
from tests.forge.samples import api, compiled
from tests.forge.sending import send

PETS = """
components:
  schemas:
    Pet:
      type: object
      xml: {name: pet, namespace: 'urn:pets', prefix: p}
      properties:
        id: {type: integer, xml: {attribute: true}}
        name: {type: string}
        tags:
          type: array
          xml: {name: tagList, wrapped: true}
          items: {type: string, xml: {name: tag}}
        photos: {type: array, xml: {wrapped: true}, items: {type: string}}
        mother: {$ref: '#/components/schemas/Pet'}
"""
PATHS = """
/pets:
  post: {requestBody: {required: true, content: {application/xml: {schema: SCHEMA}}}}
"""
PET = "{$ref: '#/components/schemas/Pet'}"


def schemas() -> Any:
    return read_openapi(api(PATHS.replace("SCHEMA", PET), PETS)).spec.schemas


def test_names_attributes_wrappers_and_namespaces_come_from_the_document() -> None:
    told = build_xml_hint({"$ref": "#/$defs/Pet"}, schemas())
    assert (told["name"], told["namespace"]) == ("p:pet", "urn:pets")
    assert told["fields"]["id"] == {"attribute": True}
    assert told["fields"]["tags"] == {"name": "tag", "wrapper": "tagList"}
    assert told["fields"]["photos"] == {"wrapper": ""}
    assert "name" not in told["fields"]


def test_the_root_is_called_as_its_schema() -> None:
    found = schemas()
    assert find_root_name({"$ref": "#/$defs/Pet"}, found) == "pet"
    assert find_root_name({"type": "object"}, found) == "root"


def test_a_list_has_a_root_around_it() -> None:
    told = build_xml_hint({"type": "array", "items": {"$ref": "#/$defs/Pet"}}, schemas())
    assert (told["wrapper"], told["name"]) == ("root", "p:pet")


def test_a_schema_that_holds_itself_ends() -> None:
    told: Any = build_xml_hint({"$ref": "#/$defs/Pet"}, schemas())
    depth = 0
    while "mother" in told.get("fields", {}):
        told, depth = told["fields"]["mother"], depth + 1
    assert 0 < depth < 10


def test_the_code_hands_the_body_over_with_what_the_document_says_of_it() -> None:
    source = render_server(
        design_server(read_openapi(api(PATHS.replace("SCHEMA", PET), PETS)).spec)
    )
    assert re.search(r"text=xml_text\(\s*body,\s*\"pet\",\s*\{", source)
    assert 'content_type="application/xml"' in source
    compile(source, "server.py", "exec")


IMPORTS = """
/rows:
  post:
    summary: Import rows
    requestBody:
      required: true
      content:
        application/json: {schema: {type: object, properties: {rows: {type: array}}}}
        multipart/form-data: {schema: {type: object, properties: {sheet: FILE}}}
    responses: {'200': {description: It}}
"""


def test_a_body_with_a_file_in_place_of_other_fields_is_a_tool_of_its_own() -> None:
    file = "{type: string, format: binary}"
    tools = {tool.name: tool for tool in compiled(IMPORTS.replace("FILE", file)).bundle.tools}
    taken = {name: [*tool.input_schema["properties"]["body"]["properties"]] for name, tool in
             tools.items()}  # fmt: skip
    assert taken == {"post_rows": ["rows"], "post_rows_file": ["sheet"]}
    assert tools["post_rows_file"].description.startswith("Import rows (in parts, with a file). ")
    (same,) = compiled(IMPORTS.replace("FILE", "{type: string}")).bundle.tools
    assert [*same.input_schema["properties"]["body"]["properties"]] == ["rows"]


BINARY = {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("field", "form"),
    [
        (BINARY, "one"),
        ({"type": "string", "contentMediaType": "image/png"}, "one"),
        ({"type": ["string", "null"], "format": "binary"}, "one"),
        ({"anyOf": [BINARY, {"type": "null"}]}, "one"),
        ({"oneOf": [{"type": "null"}, BINARY]}, "one"),
        ({"allOf": [BINARY], "description": "It"}, "one"),
        ({"allOf": [{"$ref": "#/$defs/File"}]}, "one"),
        ({"type": "array", "items": BINARY}, "list"),
        ({"type": "array", "items": {"$ref": "#/$defs/File"}}, "list"),
        ({"anyOf": [{"type": "array", "items": BINARY}, {"type": "null"}]}, "list"),
        ({"type": "string"}, None),
        ({"type": "string", "format": "byte"}, None),
        ({"type": "string", "contentMediaType": "application/json"}, None),
        (
            {"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"},
            None,
        ),
        ({"type": "object", "properties": {"file": BINARY}}, None),
        ({"$ref": "#/$defs/Loop"}, None),
        (True, None),
    ],
)
def test_a_field_is_a_file_in_whatever_words(field: Any, form: str | None) -> None:
    loop = {"anyOf": [{"$ref": "#/$defs/Loop"}], "items": {"$ref": "#/$defs/Loop"}}
    assert find_file_form(field, {"File": BINARY, "Loop": loop}) == form


FIELDS = {"d": {"x": [1, 2], "y": {"z": "q"}}, "p": ["a", "b"], "s": ["a", "b"], "n": ["c"]}


@pytest.mark.parametrize("media", ["multipart/form-data", "application/x-www-form-urlencoded"])
def test_fields_with_a_style_are_written_in_it_and_the_proof_reads_them_back(media: str) -> None:
    bundle = compiled(
        f"""
        /a:
          post:
            operationId: add
            requestBody:
              required: true
              content:
                {media}:
                  schema: {{type: object, properties: {{d: {{type: object}},
                    p: {{type: array, items: {{type: string}}}},
                    s: {{type: array, items: {{type: string}}}},
                    n: {{type: array, items: {{type: string}}}}}}}}
                  encoding: {{d: {{style: deepObject}}, p: {{style: pipeDelimited}},
                    s: {{style: spaceDelimited, explode: false}}, n: {{style: deepObject}}}}
            responses: {{200: {{description: ''}}}}
        """
    ).bundle
    body = send(bundle, {"body": FIELDS}).decode()
    if media.startswith("multipart"):
        found = re.findall(r'name="(.*?)"\r\n\r\n(.*?)\r\n', body)
    else:
        found = parse_qsl(body)
    assert found == [
        ("d[x][]", "1"),
        ("d[x][]", "2"),
        ("d[y][z]", "q"),
        ("p", "a|b"),
        ("s", "a b"),
        ("n[]", "c"),
    ]
    assert asyncio.run(prove_bundle(bundle, ProcessRunner())).passed
