"""What a compiled tool accepts and lists, beside what its document says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.accepted import (
    build_accepted_schema,
    build_listed_schema,
    list_empty_bodies,
    relax_arguments,
    soften_arguments,
)
from sandbox.schemas.coercion import coerce_arguments
from sandbox.schemas.validator import describe_refusal, get_checker
from tests.forge.samples import compiled

PATHS = """
/a/{id}:
  put:
    operationId: putA
    parameters:
    - {name: id, in: path, required: true, schema: {type: string, pattern: '^[0-9]+$'}}
    - {name: q, in: query, required: true, schema: {type: string, maxLength: 3}}
    - {name: n, in: query, schema: {type: integer, minimum: 1, maximum: 9}}
    - {name: day, in: query, schema: {type: string, format: date}}
    - {name: kinds, in: query, schema: {type: array, minItems: 2, items: {type: string, enum: [x]}}}
    requestBody:
      required: true
      content:
        application/json:
          schema:
            type: object
            required: [name, pet]
            additionalProperties: false
            properties:
              name: {type: string, minLength: 5}
              pet: {$ref: '#/components/schemas/Pet'}
"""
PET = """
components:
  schemas:
    Pet:
      oneOf:
      - {type: object, required: [kind], properties: {kind: {const: cat}, age: {type: integer}}}
      - {type: object, required: [kind], properties: {kind: {const: dog}, name: {type: string}}}
"""
UNTOLD = """
/a/{id}:
  put:
    parameters:
    - {name: id, in: path, required: true, schema: {type: integer}}
    requestBody:
      content:
        application/json:
          schema:
            type: object
            properties:
              style: {type: object, title: Style}
              more: {type: array, items: {type: object, nullable: true}}
              told: {type: object, properties: {a: {type: string}}}
              open: {type: object, additionalProperties: true}
"""
DOCUMENTED: dict[str, Any] = {
    "id": "1",
    "q": "abc",
    "n": 1,
    "day": "2031-01-01",
    "kinds": ["x", "x"],
    "body": {"name": "abcde", "pet": {"kind": "cat", "age": 1}},
}
UNDOCUMENTED: dict[str, dict[str, Any]] = {
    "a pattern": {"id": "one"},
    "a length": {"q": "abcd"},
    "a limit": {"n": 10},
    "a format": {"day": "tomorrow"},
    "a list's length": {"kinds": []},
    "an enumeration": {"kinds": ["x", "y"]},
    "a field that is required": {"body": {"pet": {"kind": "cat"}}},
    "a field that is unknown": {"body": {"name": "abcde", "pet": {"kind": "cat"}, "more": 1}},
    "a constant": {"body": {"name": "abcde", "pet": {"kind": "horse"}}},
    "a null": {"body": {"name": None, "pet": {"kind": "cat", "age": None}}},
}


@pytest.fixture(scope="module")
def made() -> tuple[Bundle, ToolDefinition]:
    bundle = compiled(PATHS, PET, "3.1.0").bundle
    return bundle, bundle.tools[0]


@pytest.mark.parametrize("what", sorted(UNDOCUMENTED.keys() - {"a format"}))
def test_what_the_document_refuses_and_a_request_can_carry_is_accepted(
    what: str, made: tuple[Bundle, ToolDefinition]
) -> None:
    given = {**DOCUMENTED, **UNDOCUMENTED[what]}
    assert get_checker(made[1].input_schema).find_problem(given) is not None
    assert get_checker(build_accepted_schema(*made)).find_problem(given) is None


@pytest.mark.parametrize("what", sorted(UNDOCUMENTED.keys() - {"a null"}))
def test_a_client_that_checks_before_it_sends_sends_it_too(
    what: str, made: tuple[Bundle, ToolDefinition]
) -> None:
    given = {**DOCUMENTED, **UNDOCUMENTED[what]}
    listed = build_listed_schema(*made)
    jsonschema.Draft202012Validator.check_schema(listed)
    jsonschema.Draft202012Validator(
        listed, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    ).validate(given)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"id": "1", "pagee": 3}, "'pagee' was unexpected"),
        ({"id": "1", "name": "flat"}, "'name' was unexpected"),
        ({}, "'id' is a required property"),
    ],
)
def test_a_wrong_name_is_refused_with_the_names_that_are_taken(
    given: dict[str, Any], wrong: str, made: tuple[Bundle, ToolDefinition]
) -> None:
    schema = build_accepted_schema(*made)
    problem = get_checker(schema).find_problem(given)
    assert problem is not None
    told = describe_refusal(schema, problem)
    assert wrong in told
    assert told.endswith(". It takes id, q, n, day, kinds, body {name, pet}.")


def test_a_wrong_value_is_refused_without_them(made: tuple[Bundle, ToolDefinition]) -> None:
    schema = build_accepted_schema(*made)
    problem = get_checker(schema).find_problem({"id": "1", "n": "five"})
    assert problem is not None
    assert describe_refusal(schema, problem) == str(problem)


@pytest.mark.parametrize(
    "given",
    [
        {"id": ""},
        {"id": None},
        {"id": 5},
        {"n": "five"},
        {"kinds": [1]},
        {"body": "text"},
        {"body": {"name": {}, "pet": {"kind": "cat"}}},
        {"other": 1},
    ],
)
def test_what_has_no_form_in_a_request_is_refused(
    given: dict[str, Any], made: tuple[Bundle, ToolDefinition]
) -> None:
    accepted = get_checker(build_accepted_schema(*made))
    assert accepted.find_problem({**DOCUMENTED, **given}) is not None
    assert accepted.find_problem(DOCUMENTED) is None


def test_of_all_arguments_only_those_in_the_path_are_needed(
    made: tuple[Bundle, ToolDefinition],
) -> None:
    accepted = get_checker(build_accepted_schema(*made))
    assert accepted.find_problem({"id": "1"}) is None
    assert accepted.find_problem({"q": "abc"}) is not None


def test_what_the_document_says_is_still_listed_first(made: tuple[Bundle, ToolDefinition]) -> None:
    listed = build_listed_schema(*made)["properties"]
    assert listed["q"]["anyOf"] == [{"maxLength": 3}, {}]
    assert listed["kinds"]["items"]["anyOf"] == [{"enum": ["x"]}, {}]
    assert {"required": ["name", "pet"]} in listed["body"]["anyOf"]
    assert build_listed_schema(*made)["required"] == ["id", "q", "body"]


def test_a_schema_without_claims_is_listed_as_it_is() -> None:
    plain = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "x-in": "path:id"},
            "n": {"type": "integer", "format": "int64", "x-in": "query:n"},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
    assert soften_arguments(plain) == plain


def test_the_schema_of_code_that_somebody_wrote_holds_as_it_is(
    made: tuple[Bundle, ToolDefinition],
) -> None:
    bundle, tool = made
    written = replace(bundle, provenance=replace(bundle.provenance, author="client"))
    assert build_accepted_schema(written, tool) is tool.input_schema
    assert build_listed_schema(written, tool) is tool.input_schema


def test_the_limit_of_pages_is_ours_and_holds() -> None:
    pages = {"type": "integer", "minimum": 1, "maximum": 10, "x-in": "pages"}
    claimed = {"type": "object", "properties": {"max_items": pages}}
    assert relax_arguments(claimed)["properties"] == {"max_items": pages}
    assert soften_arguments(claimed)["properties"] == {"max_items": pages}


def test_a_file_keeps_the_form_that_the_runtime_takes() -> None:
    body = "{multipart/form-data: {schema: {properties: {f: {type: string, format: binary}}}}}"
    bundle = compiled(f"/a: {{post: {{requestBody: {{content: {body}}}}}}}").bundle
    accepted = get_checker(build_accepted_schema(bundle, bundle.tools[0]))
    assert accepted.find_problem({"body": {"f": {"base64": "eA==", "filename": "x"}}}) is None
    assert accepted.find_problem({"body": {"f": {"filename": "x"}}}) is not None


def test_a_value_that_is_listed_without_a_type_has_the_type_of_those_listed() -> None:
    claimed = {"type": "object", "properties": {"n": {"enum": [1, 2], "x-in": "query:n"}}}
    accepted = get_checker(relax_arguments(claimed))
    assert accepted.find_problem({"n": 3}) is None
    assert accepted.find_problem({"n": "3"}) is not None


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"body": {}}),
        ({"$ref": "#/$defs/Open"}, {"body": {}}),
        ({"type": "object", "required": ["a"]}, {}),
        ({"type": "object", "minProperties": 1}, {}),
        ({"type": "array"}, {}),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, {}),
    ],
)
def test_a_required_body_that_is_not_given_is_an_object_of_nothing_where_that_is_one(
    body: dict[str, Any], sent: dict[str, Any]
) -> None:
    claimed = {
        "properties": {"body": {**body, "x-in": "body"}},
        "required": ["body"],
        "$defs": {"Open": {"type": "object"}},
    }
    assert list_empty_bodies(claimed, {}) == sent
    assert list_empty_bodies(claimed, {"body": {"b": 1}}) == {}
    assert list_empty_bodies({**claimed, "required": []}, {}) == {}


@pytest.fixture(scope="module")
def untold() -> tuple[Bundle, ToolDefinition]:
    bundle = compiled(UNTOLD, PET, "3.0.3").bundle
    return bundle, bundle.tools[0]


@pytest.mark.parametrize("given", ["ale", 5, True, ["a"], {"a": 1}, None])
def test_an_object_of_which_nothing_is_told_may_be_any_value(
    given: Any, untold: tuple[Bundle, ToolDefinition]
) -> None:
    arguments = {"id": 1, "body": {"style": given, "more": [given]}}
    assert get_checker(build_accepted_schema(*untold)).find_problem(arguments) is None


@pytest.mark.parametrize("given", ["ale", 5, True, ["a"], {"a": 1}])
def test_a_client_that_checks_may_send_any_value_for_an_object_of_which_nothing_is_told(
    given: Any, untold: tuple[Bundle, ToolDefinition]
) -> None:
    arguments = {"id": 1, "body": {"style": given}}
    jsonschema.Draft202012Validator(build_listed_schema(*untold)).validate(arguments)


def test_the_json_of_an_object_of_which_nothing_is_told_is_read_as_it(
    untold: tuple[Bundle, ToolDefinition],
) -> None:
    arguments = {"id": 1, "body": {"style": '{"a": 1}'}}
    read = coerce_arguments(build_accepted_schema(*untold), arguments)
    assert read.arguments == {"id": 1, "body": {"style": {"a": 1}}}


@pytest.mark.parametrize("given", [{"told": "x"}, {"open": "x"}])
def test_an_object_of_which_something_is_told_is_one(
    given: dict[str, Any], untold: tuple[Bundle, ToolDefinition]
) -> None:
    accepted = get_checker(build_accepted_schema(*untold))
    assert accepted.find_problem({"id": 1, "body": given}) is not None


def test_a_body_of_which_nothing_is_told_is_an_object() -> None:
    body = "{application/x-www-form-urlencoded: {schema: {type: object}}}"
    bundle = compiled(f"/a: {{post: {{requestBody: {{content: {body}}}}}}}").bundle
    accepted = get_checker(build_accepted_schema(bundle, bundle.tools[0]))
    assert accepted.find_problem({"body": {"a": 1}}) is None
    assert accepted.find_problem({"body": "a=1"}) is not None


@pytest.mark.parametrize(("given", "read"), [("me", "me"), ("7f-2/ü", "7f-2/ü"), ("12", 12)])
def test_a_text_for_a_number_in_a_path_is_sent_and_one_that_is_a_number_is_read_as_it(
    given: str, read: Any, untold: tuple[Bundle, ToolDefinition]
) -> None:
    accepted = build_accepted_schema(*untold)
    made = coerce_arguments(accepted, {"id": given}).arguments
    assert made == {"id": read}
    assert get_checker(accepted).find_problem(made) is None


@pytest.mark.parametrize("given", ["", "1.5", " ", None, [1], True])
def test_what_is_no_text_and_no_number_of_a_path_is_refused(
    given: Any, untold: tuple[Bundle, ToolDefinition]
) -> None:
    assert get_checker(build_accepted_schema(*untold)).find_problem({"id": given}) is not None
