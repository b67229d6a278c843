"""Values of another type than the schema's: read where there is one reading, refused with two."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.schemas.coercion import coerce_arguments, render_claims, render_notes

LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
POINT: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}


def takes(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, "additionalProperties": False, **more}


@pytest.mark.parametrize(
    ("schema", "given", "read"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "-12", -12),
        ({"type": "integer"}, "12345678901234567890123", 12345678901234567890123),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, 12345678901234567890, "12345678901234567890"),
        ({"type": "string"}, 2.5, "2.5"),
        ({"type": "string"}, True, "true"),
        (LIST, "a", ["a"]),
        (LIST, 5, ["5"]),
        (NUMBERS, 5, [5]),
        (NUMBERS, "5", [5]),
        (NUMBERS, ["5", 6], [5, 6]),
        (NUMBERS, "[5, 6]", [5, 6]),
        ({"type": "array", "items": POINT}, {"x": "1"}, [{"x": 1}]),
        (POINT, {"x": "1"}, {"x": 1}),
        (POINT, '{"x": "1"}', {"x": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "5", 5),
        ({"anyOf": [POINT, {"type": "null"}]}, {"x": "1"}, {"x": 1}),
        ({"allOf": [{"type": "integer"}]}, "5", 5),
        ({"$ref": "#/$defs/N"}, "5", 5),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "5"}, {"a": 5}),
    ],
)
def test_a_value_with_one_reading_is_read(schema: Any, given: Any, read: Any) -> None:
    made = coerce_arguments(takes(schema, **{"$defs": {"N": {"type": "integer"}}}), {"v": given})
    assert made.arguments == {"v": read}
    assert type(made.arguments["v"]) is type(read)
    assert len(made.notes) >= 1
    assert made.doubts == ()


@pytest.mark.parametrize(
    ("schema", "given", "first", "second"),
    [
        ({"type": "integer"}, "5.0", "the number 5.0", 'the text "5.0"'),
        ({"type": "integer"}, "007", "the number 007", 'the text "007"'),
        ({"type": "integer"}, "1,000", "the number 1,000", 'the text "1,000"'),
        ({"type": "integer"}, 5.5, "5", "6"),
        ({"type": "number"}, "0.10000000000000000001", "0.10000000000000000001", "0.1"),
        ({"type": "boolean"}, "yes", "true", '"yes" itself'),
        ({"type": "boolean"}, 0, "false", "0 itself"),
        ({"type": "string"}, 5.0, '"5.0"', '"5"'),
        (LIST, "a,b", '["a,b"]', '["a", "b"]'),
        (NUMBERS, "1,2", '["1,2"]', '["1", "2"]'),
        (LIST, "", '[""]', "[]"),
        (LIST, '["a"]', '["[\\"a\\"]"]', '["a"]'),
        ({"anyOf": [{"type": "integer"}, LIST]}, "5", "5", '["5"]'),
    ],
)
def test_a_value_with_two_readings_is_left_and_both_are_named(
    schema: Any, given: Any, first: str, second: str
) -> None:
    made = coerce_arguments(takes(schema), {"v": given})
    assert made.arguments == {"v": given}
    assert made.notes == ()
    (doubt,) = made.doubts
    assert first in doubt
    assert second in doubt


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "integer"}, "five"),
        ({"type": "integer"}, True),
        ({"type": "boolean"}, "maybe"),
        ({"type": "string"}, {"a": 1}),
        ({"type": "object"}, [1]),
        ({"type": "object"}, "[1]"),
        (NUMBERS, "a"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
    ],
)
def test_a_value_with_no_reading_is_left(schema: Any, given: Any) -> None:
    made = coerce_arguments(takes(schema), {"v": given})
    assert made.arguments == {"v": given}
    assert made.notes == ()


def test_a_value_that_some_alternative_takes_is_left_as_it_is() -> None:
    schema = takes({"anyOf": [{"type": "string"}, {"type": "integer"}]})
    schema["properties"]["n"] = {"type": "integer"}
    made = coerce_arguments(schema, {"v": "5", "n": "6"})
    assert made.arguments == {"v": "5", "n": 6}


def test_nothing_is_read_where_the_call_would_be_refused_all_the_same() -> None:
    given = {"v": "5", "unknown": 1}
    assert coerce_arguments(takes({"type": "integer"}), given).arguments is given


def test_null_for_an_argument_that_may_be_left_out_leaves_it_out() -> None:
    query = takes({"type": "integer", "x-in": "query:v"})
    assert coerce_arguments(query, {"v": None}).arguments == {}
    path = takes({"type": "integer", "x-in": "path:v"}, required=["v"])
    assert coerce_arguments(path, {"v": None}).arguments == {"v": None}


def test_the_caller_is_told_once_what_was_read_as_what() -> None:
    made = coerce_arguments(takes(NUMBERS), {"v": ["5", "6"]})
    assert render_notes(made.notes) == (
        'Arguments were read by their types: /v/0 "5" as 5; /v/1 "6" as 6.'
    )


def test_a_hostile_schema_takes_bounded_work_and_reads_nothing() -> None:
    doubling = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}
    schema = takes({"$ref": "#/$defs/A"}, **{"$defs": {"A": doubling}})
    assert coerce_arguments(schema, {"v": {"a": ["5"] * 50}}).notes == ()
    wide = {"anyOf": [{"type": "object", "properties": {"x": False}}] * 2_000}
    assert coerce_arguments(takes(wide), {"v": '{"x": 1}'}).notes == ()


def test_a_text_that_is_json_nested_beyond_all_bounds_is_no_object() -> None:
    text = '{"a":' * 100_000
    assert coerce_arguments(takes({"type": "object"}), {"v": text}).notes == ()


def test_a_refusal_is_explained_by_argument_rule_and_what_was_given() -> None:
    claimed = takes({"type": "string", "enum": ["a", "b"]}, required=["v", "w"])
    told = render_claims(claimed, {"v": "c"})
    assert "/w: is required (given: nothing)" in told
    assert "/v: 'c' is not one of ['a', 'b'] (given: \"c\")" in told
    assert render_claims(takes({"type": "string"}), {"v": "c"}) == ""


def test_a_value_that_several_alternatives_take_is_as_the_document_says() -> None:
    number = {"oneOf": [{"type": "number"}, {"type": "integer", "format": "int64"}]}
    labels = {"anyOf": [{"type": "object", "additionalProperties": number}, {"type": "null"}]}
    assert render_claims(takes(number), {"v": 5}) == ""
    assert render_claims(takes(labels), {"v": {"a": 9007199254740993}}) == ""
    assert "/v: " in render_claims(takes(number), {"v": "five"})
