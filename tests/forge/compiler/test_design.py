from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from forge.compiler.design import ToolSpec, design_server
from forge.readers.openapi.reader import read_openapi
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import RequestPattern
from tests.forge.samples import BASE, api, reading

PET = """
components:
  schemas:
    Pet:
      type: object
      required: [id, name, secret]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, description: What it is called.}
        secret: {type: string, writeOnly: true}
        parent: {$ref: '#/components/schemas/Pet'}
    Unused: {type: string}
    Named: {allOf: [{$ref: '#/components/schemas/Pet'}, {type: object, required: [id, name]}]}
"""


def tool(paths: str, rest: str = "", version: str = "3.0.3") -> ToolSpec:
    (only,) = design_server(reading(paths, rest, version).spec).tools
    return only


def body_of(schema: str, media: str = "application/json", extra: str = "") -> Any:
    made = tool(
        f"/a: {{post: {{requestBody: {{{extra}content: {{{media}: {{schema: {schema}}}}}}}}}}}", PET
    )
    return made.definition.input_schema


def answer_of(responses: str) -> Any:
    return tool(f"/a: {{get: {{responses: {{{responses}}}}}}}", PET).definition.output_schema


JSON_PET = "content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}"


def test_the_input_is_an_object_of_every_parameter_and_the_body() -> None:
    made = tool(
        """
        /a/{id}:
          post:
            parameters:
              - {name: id, in: path, schema: {type: string}, description: Which.}
              - {name: from, in: query, schema: {type: integer, minimum: 1}}
              - {name: X-Trace, in: header, required: true, schema: {type: string}}
              - {name: sid, in: cookie, schema: {type: string}}
            requestBody: {required: true, content: {application/json: {schema: {type: array}}}}
        """
    )
    assert made.definition.input_schema == {
        "type": "object",
        "properties": {
            "id": {
                "type": "string",
                "description": "Which.",
                "minLength": 1,
                "x-in": "path:id",
            },
            "from_": {"type": "integer", "minimum": 1, "x-in": "query:from"},
            "x_trace": {"type": "string", "x-in": "header:X-Trace"},
            "sid": {"type": "string", "x-in": "cookie:sid"},
            "body": {"type": "array", "x-in": "body"},
        },
        "additionalProperties": False,
        "required": ["id", "x_trace", "body"],
    }


def test_a_request_has_no_read_only_properties_and_only_the_definitions_it_needs() -> None:
    schema = body_of("{$ref: '#/components/schemas/Pet'}")
    assert set(schema["$defs"]) == {"Pet"}
    assert set(schema["$defs"]["Pet"]["properties"]) == {"name", "secret", "parent"}
    assert schema["$defs"]["Pet"]["required"] == ["name", "secret"]
    assert "required" not in schema


def test_read_only_properties_are_not_required_by_a_sibling_either() -> None:
    schema = body_of("{$ref: '#/components/schemas/Named'}")
    assert Draft202012Validator(schema).is_valid({"body": {"name": "a", "secret": "b"}})
    assert not Draft202012Validator(schema).is_valid({"body": {"secret": "b"}})


def test_the_output_wraps_what_is_documented_without_write_only_properties() -> None:
    schema = answer_of(f"200: {{{JSON_PET}}}, 404: {{description: none}}")
    assert schema == {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"type": "integer"},
            "body": {"$ref": "#/$defs/Pet"},
            "text": {"type": "string"},
            "bytes": {"type": "integer"},
            "sha256": {"type": "string"},
            "content_type": {"type": "string"},
        },
        "$defs": {
            "Pet": {
                "type": ["object", "null"],
                "properties": {
                    "id": {"type": ["integer", "null"]},
                    "name": {"type": ["string", "null"]},
                    "parent": {"$ref": "#/$defs/Pet"},
                },
            }
        },
    }


@pytest.mark.parametrize(
    ("responses", "body"),
    [
        ("204: {description: none}", {}),
        ("default: {content: {application/json: {schema: {type: string}}}}", {}),
        ("200: {content: {text/plain: {schema: {type: string}}}}", {}),
        (
            "200: {content: {application/hal+json: {schema: {type: array}}}}",
            {"type": ["array", "null"]},
        ),
        ("2XX: {content: {'*/*': {schema: {type: array}}}}", {"type": ["array", "null"]}),
        (
            "200: {content: {application/json: {schema: {type: array}}}}, "
            "201: {content: {application/json: {schema: {type: object}}}}, "
            "202: {content: {application/json: {schema: {type: array}}}}",
            {"anyOf": [{"type": ["array", "null"]}, {"type": ["object", "null"]}]},
        ),
        (
            "200: {content: {application/json: {schema: {type: array}}}}, "
            "201: {content: {application/json: {}}}",
            {},
        ),
    ],
)
def test_the_body_of_an_answer_is_one_of_the_documented_successes(
    responses: str, body: object
) -> None:
    assert answer_of(responses)["properties"]["body"] == body


@pytest.mark.parametrize(
    ("listed", "chosen", "kind"),
    [
        ("application/xml, application/json, text/plain", "application/json", "json"),
        ("application/vnd.x+json, application/json", "application/json", "json"),
        ("text/plain, application/vnd.x+json; v=1", "application/vnd.x+json; v=1", "json"),
        ("multipart/form-data, application/x-www-form-urlencoded", None, "form"),
        ("application/octet-stream, multipart/form-data", "multipart/form-data", "multipart"),
        ("image/png, text/csv", "text/csv", "text"),
        ("application/x-ndjson", "application/x-ndjson", "lines"),
        ("application/xml", "application/xml", "xml"),
        ("text/xml, application/octet-stream", "application/octet-stream", "binary"),
        ("'*/*'", "*/*", "json"),
        ("application/vnd.x.v2", "application/vnd.x.v2", "json"),
        ("image/png", "image/png", "binary"),
    ],
)
def test_one_media_type_is_chosen(listed: str, chosen: str | None, kind: str) -> None:
    content = ", ".join(
        f"{name.strip()}: {{schema: {{type: object}}}}" for name in listed.split(",")
    )
    made = tool(f"/a: {{post: {{requestBody: {{content: {{{content}}}}}}}}}")
    assert made.body is not None
    assert made.body.kind == kind
    assert made.body.media.type == (chosen or "application/x-www-form-urlencoded")


@pytest.mark.parametrize(
    "written", ["application/x-msgpack", "application/vnd.google.protobuf", "application/a+cbor"]
)
def test_values_in_a_binary_form_are_taken_as_base64_and_json_before_them(written: str) -> None:
    packed = body_of("{type: object}", written)["properties"]["body"]
    assert (packed["type"], packed["contentEncoding"]) == ("string", "base64")
    schema = "{schema: {type: object}}"
    content = f"{{{written}: {schema}, application/json: {schema}}}"
    made = tool(f"/a: {{post: {{requestBody: {{content: {content}}}}}}}")
    assert made.body is not None
    assert made.body.kind == "json"


def test_bytes_are_taken_as_base64() -> None:
    binary = body_of("{type: string, format: binary}", "image/png")["properties"]["body"]
    assert (binary["type"], binary["contentEncoding"]) == ("string", "base64")
    untyped = body_of("{type: string}", "application/octet-stream")["properties"]["body"]
    assert untyped["contentEncoding"] == "base64"


@pytest.mark.parametrize(
    "field",
    ["{type: string, format: binary}", "{contentMediaType: image/png}"],
)
def test_a_file_is_its_content_alone_or_with_a_name_and_type(field: str) -> None:
    part = body_of(f"{{type: object, properties: {{f: {field}}}}}", "multipart/form-data")
    content, named = part["properties"]["body"]["properties"]["f"]["anyOf"]
    assert content == {"type": "string", "contentEncoding": "base64"}
    assert named["properties"].keys() == {"base64", "filename", "content_type"}


@pytest.mark.parametrize(
    "field",
    [
        "f: {type: string, format: uri}",
        "f: {type: [string, 'null'], format: uri}",
        "userPhoto: {type: string}",
    ],
)
def test_a_text_of_a_multipart_body_without_a_file_may_be_one(field: str) -> None:
    schema = f"{{type: object, required: [n], properties: {{n: {{type: string}}, {field}}}}}"
    taken = body_of(schema, "multipart/form-data")["properties"]["body"]
    text, named = next(v for k, v in taken["properties"].items() if k != "n")["anyOf"]
    assert "string" in text["type"]
    assert named["properties"].keys() == {"base64", "filename", "content_type"}
    assert taken["properties"]["n"] == {"type": "string"}


@pytest.mark.parametrize(
    "fields",
    [
        "f: {type: string, format: uri}, up: {type: string, format: binary}",
        "f: {type: string, enum: [file]}",
        "profile: {type: string}",
        "f: {type: string, format: date}",
    ],
)
def test_other_texts_of_a_multipart_body_are_texts(fields: str) -> None:
    schema = f"{{type: object, properties: {{{fields}}}}}"
    taken = body_of(schema, "multipart/form-data")["properties"]["body"]["properties"]
    assert next(iter(taken.values()))["type"] == "string"


def test_a_file_is_sent_in_parts_where_the_same_body_is_listed_as_json_too() -> None:
    schema = "{schema: {type: object, properties: {f: {type: string, format: binary}}}}"
    listed = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
    content = ", ".join(f"{name}: {schema}" for name in listed)
    made = tool(f"/a: {{post: {{requestBody: {{content: {{{content}}}}}}}}}")
    assert made.body is not None
    assert made.body.kind == "multipart"
    alone = ", ".join(f"{name}: {schema}" for name in listed[:1])
    made = tool(f"/a: {{post: {{requestBody: {{content: {{{alone}}}}}}}}}")
    assert made.body is not None
    assert made.body.kind == "json"


def test_xml_is_taken_as_the_object_that_it_writes_and_as_text_where_it_is_a_string() -> None:
    named = "{type: object, xml: {name: n}, properties: {a: {type: string}}}"
    pet = body_of(named, "application/xml")["properties"]["body"]
    assert pet == {"type": "object", "properties": {"a": {"type": "string"}}, "x-in": "body"}
    assert body_of("{type: string}", "text/xml")["properties"]["body"]["type"] == "string"


@pytest.mark.parametrize("written", ["{type: object}", "{type: array, items: {type: object}}"])
def test_lines_are_taken_as_a_list_of_what_each_line_holds(written: str) -> None:
    body = body_of(written, "application/x-ndjson")["properties"]["body"]
    assert (body["type"], body["items"]) == ("array", {"type": "object"})


def test_a_form_without_a_type_is_an_object() -> None:
    for schema in ("{}", "{properties: {a: {type: string}}}"):
        body = body_of(schema, "multipart/form-data")["properties"]["body"]
        assert body["type"] == "object"


def test_a_parameter_with_one_possible_value_is_no_argument() -> None:
    made = tool("'/a?action=list': {get: {}}")
    assert made.arguments == ()
    assert [(p.name, p.schema) for p in made.constants] == [("action", {"const": "list"})]


@pytest.mark.parametrize(
    ("written", "access", "destructive", "idempotent"),
    [
        ("get: {operationId: listPets}", "read", False, True),
        ("post: {operationId: createPet}", "write", False, False),
        ("post: {summary: Adds a pet}", "write", False, False),
        ("post: {operationId: runJob}", "write", True, False),
        ("post: {operationId: deletePets}", "write", True, False),
        ("put: {operationId: createPet}", "write", True, True),
        ("patch: {operationId: changePet}", "write", True, False),
        ("delete: {operationId: deletePet}", "write", True, True),
        ("get: {operationId: deletePet}", "write", True, False),
    ],
)
def test_annotations_follow_from_method_and_words(
    written: str, access: str, destructive: bool, idempotent: bool
) -> None:
    made = tool(f"/a: {{{written}}}").definition
    assert (made.access, made.destructive, made.idempotent) == (access, destructive, idempotent)


def test_a_description_begins_with_what_it_does_and_stays_short() -> None:
    made = tool(
        "/a: {get: {summary: List pets., deprecated: true, description: " + "word " * 500 + "}}"
    ).definition
    assert made.description.startswith("Deprecated. List pets. GET /a. word word")
    assert len(made.description) <= 600
    assert made.title == "List pets."


def test_without_a_summary_the_first_sentence_stands_in() -> None:
    made = tool("/a: {get: {description: Shows the pets. All of them.}}").definition
    assert made.description == "Shows the pets. GET /a. All of them."


def test_a_summary_that_is_the_beginning_of_a_word_takes_nothing_from_the_description() -> None:
    made = tool("/a: {post: {summary: Up, description: Upload a picture.}}").definition
    assert made.description == "Up. POST /a. Upload a picture."
    same = tool("/a: {post: {summary: Add it, description: Add it. It stays.}}").definition
    assert same.description == "Add it. POST /a. It stays."


def test_requests_permissions_and_credentials_are_what_the_operations_use() -> None:
    rest = """
    components:
      securitySchemes:
        key: {type: apiKey, in: query, name: k}
        other: {type: http, scheme: basic}
    """
    found = reading(
        """
        /a/{id}: {get: {security: [{key: []}]}}
        /b: {servers: [{url: 'http://h.example:8080/x'}], get: {}}
        /c: {servers: [{url: 'http://h.example:80'}], get: {}}
        """,
        rest,
    )
    server = design_server(found.spec)
    assert server.base_url == BASE
    assert server.permissions == (
        "network:api.example.com",
        "network:h.example:8080",
        "network:h.example",
    )
    assert server.credentials == (Credential("key", "apiKey", "query", "k"),)
    first = server.tools[0].definition
    assert first.requests == (RequestPattern("GET", f"{BASE}/a/{{id}}"),)
    assert first.security == (("key",),)


def test_schemas_too_large_for_a_tool_are_cut_but_stay_valid() -> None:
    words = [f"word{number:04}" for number in range(100)]
    schemas: dict[str, Any] = {
        f"S{n}": {
            "type": "object",
            "properties": {
                "p": {"type": "string", "enum": [f"{n}{word}" for word in words]},
                "n": {"oneOf": [{"$ref": f"#/components/schemas/S{n + 1}"}, {"type": "integer"}]},
            },
        }
        for n in range(100)
    }
    reference = "{content: {application/json: {schema: {$ref: '#/components/schemas/S0'}}}}"
    found = api(f"/a: {{post: {{requestBody: {reference}, responses: {{200: {reference}}}}}}}")
    root = {**found.root, "components": {"schemas": {**schemas, "S100": {"type": "string"}}}}
    spec = read_openapi(replace(found, root=root)).spec
    (made,) = design_server(spec).tools
    assert made.trimmed == ("input", "output")
    for schema in (made.definition.input_schema, made.definition.output_schema):
        Draft202012Validator.check_schema(schema)
        assert len(str(schema)) < 80_000
    validator = Draft202012Validator(made.definition.output_schema)
    assert validator.is_valid({"status": 200, "body": {"n": {"n": 3}}})
    assert not validator.is_valid({"status": 200, "body": {"p": 3}})


@pytest.mark.parametrize(
    ("media", "schema", "given"),
    [
        ("text/csv", "{type: string, format: binary}", {"description": "The content (text/csv)"}),
        (
            "application/xml",
            "{type: string, format: binary, description: Rows}",
            {"description": "Rows"},
        ),
        ("text/plain", "{type: string, format: byte}", {"format": "byte"}),
        ("image/png", "{type: string, format: binary}", {"contentEncoding": "base64"}),
    ],
)
def test_a_body_of_a_text_type_is_given_as_text(
    media: str, schema: str, given: dict[str, str]
) -> None:
    body = body_of(schema, media)["properties"]["body"]
    assert ("contentEncoding" in body) == (media == "image/png")
    assert body["type"] == "string"
    assert all(str(body[key]).startswith(value) for key, value in given.items())


CHOICE = """
components:
  schemas:
    Cat: {type: object, properties: {kind: {type: string}, lives: {type: integer}}}
    Dog: {type: object, properties: {kind: {type: string}, tricks: {type: integer}}}
    Cow: {type: object, properties: {kind: {type: string, enum: [cow, bull]}}}
    Pet:
      oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'},
              {$ref: '#/components/schemas/Cow'}]
      discriminator: {propertyName: kind, mapping: {MAPPING}}
"""


@pytest.mark.parametrize(
    ("mapping", "told"),
    [
        (
            "cat: '#/components/schemas/Cat', tom: Cat, cow: Cow",
            ["Is 'cat' or 'tom' here.", None, None],
        ),
        ("dog: Dog", [None, "Is 'dog' here.", None]),
        ("", ["Is 'Cat' here.", "Is 'Dog' here.", None]),
    ],
)
def test_a_request_is_told_which_value_chooses_an_alternative(mapping: str, told: Any) -> None:
    content = "content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}"
    paths = f"/a: {{post: {{requestBody: {{{content}}}, responses: {{200: {{{content}}}}}}}}}"
    made = tool(paths, CHOICE.replace("MAPPING", mapping)).definition
    branches = made.input_schema["properties"]["body"]["anyOf"]
    chosen = [
        branch["properties"]["kind"]["description"]
        if "$ref" in branch and "properties" in branch
        else None
        for branch in branches
    ]
    assert chosen == told
    assert "x-chosen-by" not in str((made.input_schema, made.output_schema))
    assert "'tom'" not in str(made.output_schema)


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        ("{type: array, items: {type: string}}", {"minItems": 1}),
        ("{type: array, minItems: 2}", {"minItems": 2}),
        ("{type: object}", {"minProperties": 1}),
        ("{type: string}", {"minLength": 1}),
        ("{$ref: '#/components/schemas/Named'}", {}),
    ],
)
def test_no_value_that_goes_into_a_path_is_empty(schema: str, bound: dict[str, int]) -> None:
    parameter = f"{{name: a, in: path, required: true, schema: {schema}}}"
    made = tool(f"/{{a}}: {{get: {{parameters: [{parameter}]}}}}", PET).definition
    given = made.input_schema["properties"]["a"]
    assert {key: given[key] for key in given if key.startswith("min")} == bound
