"""Keywords whose standard check costs more than the value: they say the same, and cost less."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sandbox.schemas.bounded import MAX_SHOWN
from sandbox.schemas.validator import get_checker

MANY = 100_000
MEGABYTE = 1024 * 1024
TEXTS = {"type": "array", "items": {"type": "string"}}
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 1.5]), st.just("1")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=8,
)
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"uniqueItems": True},
    {"anyOf": [{"type": "integer"}, {"type": "array", "uniqueItems": True}]},
    {"oneOf": [{"type": "number"}, {"type": "integer"}, TEXTS]},
    {"not": {"oneOf": [{"type": "array"}, {"minItems": 2}]}},
    {"prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
    {"contains": {"type": "integer"}, "unevaluatedItems": {"type": "string"}},
    {"properties": {"a": {}}, "additionalProperties": False},
    {"properties": {"a": {}}, "unevaluatedProperties": False},
    {"items": {"anyOf": [TEXTS, {"uniqueItems": True}]}},
)


@given(st.sampled_from(SCHEMAS), VALUES)
def test_a_value_is_taken_by_whom_the_standard_takes_it(schema: dict[str, Any], value: Any) -> None:
    problem = get_checker(schema).find_problem(value)
    assert (problem is None) == Draft202012Validator(schema).is_valid(value)


@given(VALUES)
def test_items_are_equal_as_json_values_are(value: Any) -> None:
    told = [value, {"a": value}, [value]]
    items = [*told, "end"]
    assert get_checker({"uniqueItems": True}).find_problem(items) is None
    assert get_checker({"uniqueItems": True}).find_problem([*items, told[1]]) is not None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, 1.0, True), (1, True, False), (0, False, False), ("1", 1, False), ([1], [1.0], True)],
)
def test_a_number_is_another_value_than_a_boolean_or_a_text(
    one: object, other: object, same: bool
) -> None:
    assert (get_checker({"uniqueItems": True}).find_problem([one, other]) is not None) == same


def test_objects_that_hold_the_same_members_at_other_depths_are_no_repetition() -> None:
    items = [{"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}]
    assert get_checker({"uniqueItems": True}).find_problem(items) is None


@pytest.mark.parametrize(
    ("factor", "value", "takes"),
    [
        *((0.01, 19.99, True), (0.01, 4.02, True), (0.01, 19.995, False), (2.0, 10**400, True)),
        *((2.0, 2**64 + 1, False), (2, 2**64 + 1, False), (3.0, 1e20, False), (1e20, 0.5, False)),
    ],
)
def test_a_multiple_is_told_as_of_decimals(factor: Any, value: Any, takes: bool) -> None:
    assert (get_checker({"multipleOf": factor}).find_problem(value) is None) == takes


@pytest.mark.parametrize("factor", ["0.5", 0, None])
def test_a_factor_that_is_no_number_or_zero_is_a_problem(factor: Any) -> None:
    assert get_checker({"multipleOf": factor}).find_problem(1.5) is not None


def peak(schema: dict[str, Any], value: Any) -> float:
    """The megabytes that a check took at most which found a problem."""
    checker = get_checker(schema)
    tracemalloc.start()
    try:
        assert checker.find_problem(value) is not None
        return tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_of_a_branch_that_takes_no_item_few_errors_are_kept(keyword: str) -> None:
    assert peak({keyword: [TEXTS, {"type": "null"}]}, [1] * MANY) < 50
    inner = {"type": "array", "items": {keyword: [TEXTS, {"type": "null"}]}}
    assert peak({keyword: [inner, {"type": "null"}]}, [[1] * 100] * (MANY // 100)) < 50


def test_what_no_branch_takes_is_told_of_the_branch_that_was_meant() -> None:
    problem = get_checker({"anyOf": [TEXTS, {"type": "null"}]}).find_problem(["a", 1])
    assert problem is not None
    assert (problem.where, problem.reason) == ("/1", "1 is not of type 'string'")


def test_a_large_value_stands_in_no_message_whole() -> None:
    schema = {"allOf": [{"type": "string", "minLength": number} for number in range(500)]}
    assert peak({"type": "object", "properties": {"a": schema}}, {"a": list(range(MANY))}) < 50
    assert peak({"properties": {"a": {"not": schema, **schema}}}, {"a": ["a" * MEGABYTE]}) < 50
    names = {f"{number}": number for number in range(MANY)}
    for rest in ("additionalProperties", "unevaluatedProperties"):
        assert peak({"properties": {"a": {}}, rest: False}, names) < 50


def test_names_and_items_too_many_are_told_by_the_first_of_them() -> None:
    few, many = {"b": 1, "c": 2}, {f"n{number}": 1 for number in range(10 * MAX_SHOWN)}
    for rest in ("additionalProperties", "unevaluatedProperties"):
        checker = get_checker({"properties": {"a": {}}, rest: False})
        told = checker.find_problem({"a": 1, **few})
        assert told is not None
        assert "('b', 'c' were unexpected)" in told.reason
        cut = checker.find_problem({**many, "a": 1})
        assert cut is not None
        assert "'n0'" in cut.reason
        assert f"'n{MAX_SHOWN}'" not in cut.reason
    items = get_checker({"prefixItems": [{}], "unevaluatedItems": False})
    told = items.find_problem([1, 2, 3])
    assert told is not None
    assert told.reason == "Unevaluated items are not allowed (2, 3 were unexpected)"


def test_many_objects_are_compared_in_one_walk() -> None:
    items = [{"a": number, "b": "x"} for number in range(MANY)]
    checker = get_checker({"type": "array", "uniqueItems": True})
    assert checker.find_problem(items) is None
    assert checker.find_problem([*items, {"b": "x", "a": 1.0}]) is not None


def test_many_items_that_another_keyword_took_are_left_out_in_one_walk() -> None:
    schema = {"contains": {"type": "integer"}, "unevaluatedItems": False}
    items: list[object] = list(range(MANY // 5))
    assert get_checker(schema).find_problem(items) is None
    assert get_checker(schema).find_problem([*items, "a"]) is not None
