"""Values of a base schema are those of its subtypes, and a property says of which."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from sandbox.bundle.model import Bundle
from sandbox.engines.process import ProcessRunner
from sandbox.schemas.validator import get_checker
from sandbox.stages.prove import prove_bundle
from tests.forge.samples import compiled, swagger
from tests.forge.sending import send

PATHS = """
/pets:
  post:
    operationId: add
    requestBody: {required: true, content: {application/json: {schema:
      {$ref: '#/components/schemas/Pet'}}}}
    responses: {200: {description: '', content: {application/json: {schema:
      {$ref: '#/components/schemas/Pet'}}}}}
"""
SCHEMAS = """
components:
  schemas:
    Pet:
      type: object
      required: [kind]
      properties: {kind: {type: string}, name: {type: string}}
      discriminator: {propertyName: kind, mapping: {cat: Cat, dog: '#/components/schemas/Dog'}}
    Cat: {allOf: [{$ref: '#/components/schemas/Pet'},
      {type: object, required: [lives], properties: {lives: {type: integer}}}]}
    Dog: {allOf: [{$ref: '#/components/schemas/Pet'}, {properties: {bark: {type: boolean}}}]}
    Puppy: {allOf: [{$ref: '#/components/schemas/Dog'}, {properties: {weeks: {type: integer}}}]}
    Other: {type: object, properties: {rest: {type: string}}}
"""


def is_taken(bundle: Bundle, body: Any) -> bool:
    return get_checker(bundle.tools[0].input_schema).find_problem({"body": body}) is None


def test_a_base_takes_the_properties_of_the_subtype_that_its_discriminator_names() -> None:
    bundle = compiled(PATHS, SCHEMAS).bundle
    branches = bundle.tools[0].input_schema["properties"]["body"]["anyOf"]
    chosen = {b["$ref"]: b["properties"]["kind"]["enum"] for b in branches if "$ref" in b}
    assert chosen == {
        "#/$defs/Cat": ["cat"],
        "#/$defs/Dog": ["dog"],
        "#/$defs/Puppy": ["Puppy"],
    }
    for right in (
        {"kind": "cat", "lives": 9},
        {"kind": "Puppy", "weeks": 3, "bark": True, "name": "Rex"},
        {"kind": "fish", "name": "Wanda"},
    ):
        assert is_taken(bundle, right), right
    for wrong in ({"kind": "cat"}, {"kind": "cat", "lives": "many"}, {"lives": 9}):
        assert not is_taken(bundle, wrong), wrong
    assert send(bundle, {"body": {"kind": "cat", "lives": 9}}) == b'{"kind":"cat","lives":9}'
    assert asyncio.run(prove_bundle(bundle, ProcessRunner())).passed


def test_an_answer_is_promised_no_more_than_the_base_says() -> None:
    told = str(compiled(PATHS, SCHEMAS).bundle.tools[0].output_schema)
    assert "lives" not in told
    assert "x-has-subtypes" not in told


def test_a_base_with_a_closed_list_of_values_is_no_value_itself_and_does_not_close_subtypes() -> (
    None
):
    closed = SCHEMAS.replace("{kind: {type: string}", "{kind: {type: string, enum: [cat, dog]}")
    closed = closed.replace(
        "required: [kind]", "required: [kind]\n      additionalProperties: false"
    )
    closed = closed.replace("    Puppy", "    x-Puppy")
    bundle = compiled(PATHS, closed).bundle
    assert is_taken(bundle, {"kind": "dog", "bark": True})
    assert not is_taken(bundle, {"kind": "dog", "lives": 3})
    assert not is_taken(bundle, {"kind": "cow"})


def test_a_subtype_whose_own_property_lists_its_values_is_chosen_by_these() -> None:
    own = SCHEMAS.replace("{bark:", "{kind: {type: string, enum: [DOG]}, bark:")
    bundle = compiled(PATHS, own).bundle
    assert is_taken(bundle, {"kind": "DOG", "bark": True})
    assert not is_taken(bundle, {"kind": "DOG", "bark": 1})


def test_a_discriminator_that_is_no_text_chooses_nothing() -> None:
    numbered = SCHEMAS.replace("{kind: {type: string}", "{kind: {type: integer}")
    bundle = compiled(PATHS, numbered).bundle
    assert "anyOf" not in bundle.tools[0].input_schema["properties"]["body"]


@pytest.mark.parametrize("own", ["", "x-ms-discriminator-value: '#Cat',"])
def test_in_swagger_the_definitions_name_or_what_azure_writes_chooses(own: str) -> None:
    document = swagger(
        """
        /pets:
          post:
            parameters: [{name: body, in: body, required: true, schema: {type: array,
              items: {$ref: '#/definitions/Pet'}}}]
        """,
        f"""
        definitions:
          Pet: {{type: object, discriminator: kind, properties: {{kind: {{type: string}}}}}}
          Cat: {{{own} allOf: [{{$ref: '#/definitions/Pet'}}],
            properties: {{lives: {{type: integer}}}}}}
        """,
    )
    bundle = compile_document(document).bundle
    value = "#Cat" if own else "Cat"
    assert is_taken(bundle, [{"kind": value, "lives": 9}])
    assert not is_taken(bundle, [{"kind": value, "lives": "many"}])


def test_subtypes_of_subtypes_in_a_ring_end() -> None:
    ring = """
    components:
      schemas:
        Pet: {allOf: [{$ref: '#/components/schemas/Cat'}], discriminator: {propertyName: kind}}
        Cat: {allOf: [{$ref: '#/components/schemas/Pet'}], properties: {lives: {type: integer}}}
    """
    assert is_taken(compiled(PATHS, ring).bundle, {"kind": "x"})


def test_many_bases_of_many_subtypes_stay_within_bounds() -> None:
    count = 300
    bases = "".join(
        f"    B{n}: {{type: object, discriminator: {{propertyName: k}}}}\n" for n in range(count)
    )
    links = ", ".join(f"{{$ref: '#/components/schemas/B{n}'}}" for n in range(count))
    subtypes = "".join(f"    S{n}: {{allOf: [{links}]}}\n" for n in range(count))
    fields = ", ".join(f"f{n}: {{$ref: '#/components/schemas/B{n}'}}" for n in range(count))
    paths = PATHS.replace(
        "{$ref: '#/components/schemas/Pet'}", f"{{type: object, properties: {{{fields}}}}}"
    )
    spec = compiled(paths, f"components:\n  schemas:\n{bases}{subtypes}").bundle.spec
    assert spec is not None
    links_made = sum(len(s.get("anyOf", ())) for s in spec.schemas.values() if isinstance(s, dict))
    assert 200 < links_made <= 20_000 + 2 * count
