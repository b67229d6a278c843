"""Differences of type between an answer and a schema: places and types, nothing of the answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sandbox.stages.probe.differences import find_differences, get_type

DEFS: dict[str, Any] = {
    "Thing": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "kind": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
            "state": {"enum": ["on", "off"]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "inner": {"$ref": "#/$defs/Thing"},
            "a/b~c": {"type": "string"},
        },
    },
    "Loop": {"$ref": "#/$defs/Loop"},
    "Forks": {"anyOf": [{"$ref": "#/$defs/Forks"}, {"$ref": "#/$defs/Forks"}]},
}
THINGS = {"type": "array", "items": {"$ref": "#/$defs/Thing"}}


def found(answer: Any, schema: Any = THINGS) -> set[tuple[str, str]]:
    return {(each.where, each.type) for each in find_differences(schema, DEFS, answer)}


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        ({"name": None}, {("/*/name", "null")}),
        ({"count": "7"}, {("/*/count", "string")}),
        ({"count": 1.5}, {("/*/count", "number")}),
        ({"count": True}, {("/*/count", "boolean")}),
        ({"kind": "x"}, {("/*/kind", "string")}),
        ({"state": None}, {("/*/state", "null")}),
        ({"labels": {"S3CRET-NAME": None}}, {("/*/labels/*", "null")}),
        ({"inner": {"inner": {"count": None}}}, {("/*/inner/inner/count", "null")}),
        ({"name": {}, "count": []}, {("/*/name", "object"), ("/*/count", "array")}),
        ({"a/b~c": None}, {("/*/a~1b~0c", "null")}),
        ({"name": "oar", "count": 4, "ratio": 3, "kind": True, "state": "on"}, set()),
        ({"count": 4.0}, set()),
        ({"count": 10**400}, set()),
        ({"unknown": {"deep": None}}, set()),
    ],
)
def test_a_difference_is_told_by_the_schemas_own_names(
    thing: Any, told: set[tuple[str, str]]
) -> None:
    assert found([{"name": "oar"}, thing]) == told


def test_another_word_of_an_enumeration_is_a_value_and_not_told() -> None:
    assert found([{"state": "paused"}]) == set()


def test_another_shape_is_told_at_its_root() -> None:
    assert found({"items": []}) == {("", "object")}


@pytest.mark.parametrize("schema", [{"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Forks"}, True])
def test_a_schema_without_an_end_says_nothing(schema: Any) -> None:
    assert found({"name": None}, schema) == set()


def test_a_deep_answer_and_a_long_one_are_compared_as_far_as_the_steps_suffice() -> None:
    deep: Any = {"count": "x"}
    for _ in range(5_000):
        deep = {"inner": deep}
    assert found([deep]) == set()
    assert found([{"count": "x"}] * 500_000) == {("/*/count", "string")}


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5),
        lambda inner: (
            some.lists(inner, max_size=3)
            | some.dictionaries(some.sampled_from([*DEFS["Thing"]["properties"], "x"]), inner)
        ),
        max_leaves=20,
    )
)
def test_whatever_comes_only_types_and_documented_names_are_told(answer: Any) -> None:
    names = {
        "",
        "*",
        *(n.replace("~", "~0").replace("/", "~1") for n in DEFS["Thing"]["properties"]),
    }
    for where, kind in found(answer):
        assert set(where.split("/")) <= names
        assert kind in {"null", "boolean", "integer", "number", "string", "array", "object"}


def test_types_are_those_of_json_schema() -> None:
    values = [None, True, 1, 1.0, 1.5, "", [], {}]
    told = ["null", "boolean", "integer", "integer", "number", "string", "array", "object"]
    assert [get_type(value) for value in values] == told
