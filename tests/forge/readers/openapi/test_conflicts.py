"""Contradictions in a document are located, and what was meant is taken."""

from __future__ import annotations

from typing import Any

import pytest

from forge.readers.openapi.conflicts import find_conflict
from sandbox.bundle.apispec import Schema
from tests.forge.samples import operation, reading

NAMED: dict[str, Schema] = {
    "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
    "Closed": {"properties": {"a": {}}, "additionalProperties": False},
    "Text": {"type": "string"},
}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([{"type": "integer"}, ref("Text")], "its parts want integer and string"),
        ([{"enum": ["a"]}, {"enum": ["b", "c"]}], "its parts allow no value in common"),
        ([{"const": 1}, {"enum": [2]}], "its parts allow no value in common"),
        ([{"minLength": 5}, {"maxLength": 4}], "its parts want at least 5 and at most 4"),
        (
            [ref("Base"), {"properties": {"id": {"type": "string"}}}],
            "its parts contradict each other in id",
        ),
        ([ref("Base"), ref("Closed")], "one part requires id, which another closes out"),
        (
            [{"required": ["x"]}, {"properties": {"x": False}}],
            "one part requires x, which another closes out",
        ),
        (
            [{"properties": {"a": {}, "b": {}}}, ref("Closed")],
            "one part has b, which another closes out",
        ),
    ],
)
def test_parts_that_no_value_fits(parts: list[Schema], reason: str) -> None:
    assert find_conflict({"allOf": parts}, NAMED) == reason


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "integer"}, {"type": "number"}],
        [{"type": ["string", "null"]}, ref("Text")],
        [ref("Base"), {"properties": {"id": {"minimum": 1}}}],
        [{"properties": {"a": {}}}, ref("Closed")],
        [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}],
        [{"minLength": 4}, {"maxLength": 4}],
        [True, ref("Base"), ref("Missing")],
        [],
    ],
)
def test_parts_that_a_value_fits(parts: list[Schema]) -> None:
    assert find_conflict({"allOf": parts}, NAMED) == ""


SHARED = """
components:
  schemas:
    Base: {type: object, required: [kind], properties: {kind: {type: integer}, n: {type: integer}}}
    Child:
      description: A child.
      allOf:
        - $ref: '#/components/schemas/Base'
        - {required: [m], properties: {kind: {type: string}, m: {type: number}}}
        - {anyOf: [{required: [n]}, {required: [o]}]}
"""


@pytest.mark.parametrize("schema", ["{$ref: '#/components/schemas/Child'}", None])
def test_the_later_part_counts_and_the_place_is_told(schema: str | None) -> None:
    inline = (
        schema
        or "{allOf: [{$ref: '#/components/schemas/Base'}, {properties: {kind: {type: string}}}]}"
    )
    found = reading(
        f"/a: {{post: {{requestBody: {{content: {{application/json: {{schema: {inline}}}}}}}}}}}",
        SHARED,
    )
    (problem,) = found.problems
    assert problem.reason == (
        "no value fits: its parts contradict each other in kind; the later one counts"
    )
    assert problem.pointer == (
        "/components/schemas/Child"
        if schema
        else "/paths/~1a/post/requestBody/content/application~1json/schema"
    )
    body = found.spec.operations[0].body
    assert body is not None
    made = found.spec.schemas["Child"] if schema else body.content[0].schema
    assert isinstance(made, dict)
    assert made["properties"]["kind"] == {"type": "string"}
    assert made["properties"]["n"] == {"type": "integer"}
    assert made["required"] == (["kind", "m"] if schema else ["kind"])
    if schema:
        assert made["allOf"] == [{"anyOf": [{"required": ["n"]}, {"required": ["o"]}]}]
    assert found.spec.schemas["Base"]["properties"]["kind"] == {"type": "integer"}  # type: ignore[index]


def test_two_exploded_objects_with_one_property_are_told() -> None:
    schema = "{type: object, properties: {size: {}, %s: {}}}"
    listed = ", ".join(
        f"{{name: {name}, in: query, schema: {schema % name}}}" for name in ("first", "second")
    )
    found = reading(f"/a: {{get: {{parameters: [{listed}]}}}}")
    (problem,) = found.problems
    assert problem.pointer == "/paths/~1a/get/parameters"
    assert "'size'" in problem.reason
    assert [p.name for p in found.spec.operations[0].parameters] == ["first", "second"]


def test_objects_that_keep_their_names_do_not_clash() -> None:
    listed = """
    - {name: a, in: query, style: deepObject, schema: {type: object, properties: {x: {}}}}
    - {name: b, in: query, explode: false, schema: {type: object, properties: {x: {}}}}
    - {name: x, in: query, schema: {type: string}}
    - {name: x, in: header, schema: {type: string}}
    """
    paths = "/a:\n  get:\n    parameters:\n" + "".join(
        f"    {line.strip()}\n" for line in listed.strip().splitlines()
    )
    assert len(operation(paths).parameters) == 4


@pytest.mark.parametrize("required", ["true", "false"])
def test_a_header_that_routes_is_left_out_and_told(required: str) -> None:
    listed = (
        "[{in: header, name: X-HTTP-Method-Override, "
        f"required: {required}, schema: {{type: string, enum: [GET]}}}}]"
    )
    found = reading(f"/a: {{post: {{parameters: {listed}}}}}")
    assert found.spec.operations[0].parameters == ()
    (problem,) = found.problems
    assert problem.pointer == "/paths/~1a/post/parameters/0"
    assert ("is required and" in problem.reason) is (required == "true")
    assert problem.reason.endswith("the parameter is left out")


def test_a_type_of_which_a_part_says_more_counts_before_one_that_stands_alone() -> None:
    found = reading(
        """
        /a:
          post:
            requestBody: {content: {application/json: {schema: {type: object, properties:
              {state: {type: object, allOf: [{$ref: '#/components/schemas/State'}]},
               place: {type: string, allOf: [{$ref: '#/components/schemas/Place'}]}}}}}}
        """,
        """
        components:
          schemas:
            State: {type: string, enum: [open, shut]}
            Place: {type: object, properties: {town: {type: string}}}
        """,
    )
    (only,) = found.spec.operations
    assert only.body is not None
    schema = only.body.content[0].schema
    assert isinstance(schema, dict)
    assert schema["properties"]["state"] == {"type": "string", "enum": ["open", "shut"]}
    assert schema["properties"]["place"]["type"] == "object"
    assert len(found.problems) == 2
