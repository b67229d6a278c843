"""Samples are instances of their schema, recognisable, and made within a budget."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.regex import AWKWARD
from sandbox.schemas.samples import Sampler, Unsatisfiable

TREE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
}


def sampler(seed: int = 0, direction: Any = "response", **definitions: Any) -> Sampler:
    return Sampler(DirectionalValidator(definitions, direction), seed)


def leaf_schemas() -> st.SearchStrategy[dict[str, Any]]:
    low = st.integers(0, 20)
    return st.one_of(
        st.builds(lambda n: {"type": "integer", "minimum": n, "maximum": n + 7}, low),
        st.builds(lambda n: {"type": "number", "exclusiveMinimum": n}, low),
        st.builds(lambda n: {"type": "integer", "multipleOf": n + 1, "minimum": 3}, low),
        st.builds(lambda n: {"type": "string", "minLength": n, "maxLength": n + 9}, low),
        st.sampled_from(
            [
                {"type": "string", "pattern": "^[A-Z]{2}-\\d{1,4}(x|y)?$"},
                {"type": "string", "format": "uuid"},
                {"type": "string", "format": "byte"},
                {"enum": ["a", 7, None, {"k": [1]}]},
                {"const": 3.5},
                {"type": ["null", "boolean"]},
                {},
                True,
                {"$ref": "#/$defs/Tree"},
            ]
        ),
    )


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["p", "q", "r", "s"]), inner, max_size=3)
    return st.one_of(
        st.builds(
            lambda props, rest: {
                "type": "object",
                "properties": props,
                "required": sorted(props)[:2],
                "additionalProperties": rest,
            },
            named,
            st.booleans(),
        ),
        st.builds(
            lambda item, low, unique: {
                "type": "array",
                "items": item,
                "minItems": low,
                "uniqueItems": unique,
            },
            inner,
            st.integers(0, 3),
            st.booleans(),
        ),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"oneOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"allOf": [one, two]}, inner, inner),
        st.builds(lambda one: {"not": one}, inner),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(leaf_schemas(), composed, max_leaves=6), st.integers(0, 5))
def test_a_sample_is_an_instance_or_there_is_none(schema: Any, seed: int) -> None:
    oracle = schema if isinstance(schema, bool) else {**schema, "$defs": {"Tree": TREE}}
    for variant in ("minimal", "full"):
        try:
            value = sampler(seed, Tree=TREE).make_sample(schema, variant)
        except Unsatisfiable:
            continue
        Draft202012Validator(oracle).validate(value)


def test_the_same_seed_makes_the_same_sample() -> None:
    assert sampler(3, Tree=TREE).make_sample(TREE) == sampler(3, Tree=TREE).make_sample(TREE)
    assert sampler(3, Tree=TREE).make_sample(TREE) != sampler(4, Tree=TREE).make_sample(TREE)


def test_a_minimal_sample_has_what_is_required_and_a_full_one_the_rest() -> None:
    assert sampler(Tree=TREE).make_sample(TREE, "minimal").keys() == {"name"}
    assert sampler(Tree=TREE).make_sample(TREE, "full").keys() == {"name", "children"}


def test_leaves_differ_from_each_other() -> None:
    schema = {"type": "array", "minItems": 20, "items": {"type": "string"}}
    sample = sampler().make_sample(schema)
    assert len(set(sample)) == 20
    assert min(map(len, sample)) >= 6


def test_properties_that_do_not_travel_in_a_direction_are_left_out() -> None:
    schema = {
        "type": "object",
        "required": ["id", "secret"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "secret": {"type": "string", "writeOnly": True},
        },
    }
    assert sampler(direction="request").make_sample(schema).keys() == {"secret"}
    assert sampler(direction="response").make_sample(schema).keys() == {"id"}


def test_awkward_characters_stand_only_where_they_are_asked_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    sample = sampler().make_sample(schema, "full", {"a": AWKWARD})
    assert sample["a"].endswith(AWKWARD)
    assert sample["b"].isalnum()


@pytest.mark.parametrize(
    "expression",
    [
        "^[a-z0-9_-]{3,16}$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^(?:GET|PUT)$",
        "^https?:\\/\\/.+",
        r"^[^\s@]+@[^\s@]+\.[^\s@]+$",
        "^#[0-9a-fA-F]{6}$",
        r"^v\d+(\.\d+)*$",
        "^(?=.*[A-Z]).{8,}$",
        r"^\+?[1-9]\d{1,14}$",
        "[A-Z]",
        r"^arn:aws:[a-z]+:\w*:(?<id>\d{12})$",
    ],
)
def test_strings_match_the_expressions_that_documents_use(expression: str) -> None:
    value = sampler().make_sample({"type": "string", "pattern": expression})
    assert re.search(expression.replace("(?<id>", "(?P<id>"), value)


def test_length_and_pattern_are_met_together() -> None:
    value = sampler().make_sample({"type": "string", "pattern": "^[a-f]+$", "minLength": 30})
    assert len(value) >= 30


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (False, "false"),
        ({"$ref": "#/$defs/Gone"}, "leads nowhere"),
        ({"$ref": "#/$defs/Loop"}, "circle"),
        ({"type": "array", "minItems": 10**9}, "minItems"),
        ({"type": "string", "minLength": 10**9}, "no string"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "greater than"),
        ({"type": "string", "maxLength": 3, "format": "uuid"}, "no string"),
        ({"type": "object", "required": 7}, "malformed"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "false"),
    ],
)
def test_what_cannot_be_sampled_is_told(schema: Any, told: str) -> None:
    with pytest.raises(Unsatisfiable, match=told):
        sampler(Loop={"$ref": "#/$defs/Loop"}).make_sample(schema)


def test_a_schema_that_requires_itself_ends() -> None:
    endless = {
        "type": "object",
        "required": ["next"],
        "properties": {"next": {"$ref": "#/$defs/E"}},
    }
    with pytest.raises(Unsatisfiable):
        sampler(E=endless).make_sample({"$ref": "#/$defs/E"})


def test_a_wide_schema_stays_within_its_budget() -> None:
    wide: dict[str, Any] = {
        "type": "object",
        "properties": {f"p{n}": {"$ref": "#/$defs/W"} for n in range(40)},
    }
    sample = sampler(W=wide).make_sample({"$ref": "#/$defs/W"})
    assert len(repr(sample)) < 20_000


def test_branches_are_tried_until_one_fits() -> None:
    schema = {
        "oneOf": [{"type": "integer", "minimum": 3, "maximum": 2}, {"const": "second"}],
    }
    assert sampler().make_sample(schema) == "second"


def test_a_judge_tells_where_and_why() -> None:
    judge = DirectionalValidator({"Tree": TREE}, "response")
    problem = judge.find_problem({"$ref": "#/$defs/Tree"}, {"name": "a", "children": [{"name": 1}]})
    assert problem == "/children/0/name: 1 is not of type 'string'"
