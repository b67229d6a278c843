"""Alternatives of which one takes all values of another: one of them is enough."""

from __future__ import annotations

import pytest

from forge.readers.openapi.overlaps import has_swallowed_branch
from sandbox.bundle.apispec import Schema
from sandbox.schemas.validator import get_checker
from tests.forge.samples import compiled

REST = """
components:
  schemas:
    Named: {type: object, properties: {name: {type: string}}}
    Text: {type: string}
"""


def find_key(branches: str) -> str:
    paths = f"""
    /a: {{post: {{requestBody: {{content: {{application/json: {{schema:
      {{oneOf: [{branches}]}}}}}}}}}}}}
    """
    body = compiled(paths, REST).bundle.tools[0].input_schema["properties"]["body"]
    return next(key for key in ("oneOf", "anyOf") if key in body)


@pytest.mark.parametrize(
    "branches",
    [
        "{type: integer}, {type: number}",
        "{type: string, format: uuid}, {$ref: '#/components/schemas/Text'}",
        "{type: string, enum: [a]}, {type: string, enum: [a, b]}",
        "{$ref: '#/components/schemas/Named'}, {type: object, properties: {size: {}}}",
        "{type: object, required: [a]}, {type: object, properties: {b: {type: integer}}}",
        "{type: array, items: {type: integer}}, {type: array, items: {type: number}}",
    ],
)
def test_what_fits_two_alternatives_is_taken_where_one_takes_all_of_the_other(
    branches: str,
) -> None:
    assert find_key(branches) == "anyOf"


@pytest.mark.parametrize(
    "branches",
    [
        "{required: [a]}, {required: [b]}",
        "{type: string}, {type: integer}",
        "{type: string, minLength: 3}, {type: string, maxLength: 9}",
        "{type: object, properties: {k: {enum: [a]}}}, {properties: {k: {enum: [b]}}}",
        "{type: object, additionalProperties: false, properties: {a: {}}}, {type: object, "
        "additionalProperties: false, properties: {b: {}}}",
        "{type: array, items: {type: integer}}, {type: array, items: {type: string}}",
    ],
)
def test_alternatives_that_each_take_what_no_other_takes_stay_exclusive(branches: str) -> None:
    assert find_key(branches) == "oneOf"


def test_a_whole_number_is_taken_where_an_integer_and_a_number_are_offered() -> None:
    paths = """
    /a: {get: {parameters: [{name: n, in: query,
      schema: {oneOf: [{type: integer}, {type: number}]}}]}}
    """
    (tool,) = compiled(paths).bundle.tools
    assert get_checker(tool.input_schema).find_problem({"n": 3}) is None


def test_long_enumerations_are_not_compared_pair_by_pair() -> None:
    values = [f"v{number}" for number in range(50_000)]
    one: Schema = {"type": "string", "enum": values}
    other: Schema = {"type": "string", "enum": values[::-1]}
    assert not has_swallowed_branch([one, other], {})
