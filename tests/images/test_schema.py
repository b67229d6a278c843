"""The runtime's validator against jsonschema, and its own bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from toolwright.keywords import equal
from toolwright.schema import Schema, first_problem

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, -2.0, 0.5, 2.5]),
    st.text("ab", max_size=3),
)
NAMES = st.sampled_from(["a", "b", "c", "ab"])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)


VALUES = st.recursive(SCALARS, containers, max_leaves=8)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
SMALL = st.integers(0, 3)
BOUNDS = st.sampled_from([-2, 0, 0.5, 1, 2.0])
PATTERNS = st.sampled_from(["a", "^b", "b$", "^$", "(", "a|b"])
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, max_size=3),
    "const": VALUES,
    "minimum": BOUNDS,
    "maximum": BOUNDS,
    "exclusiveMinimum": BOUNDS,
    "exclusiveMaximum": BOUNDS,
    "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": PATTERNS.filter(lambda pattern: pattern != "("),
    "minItems": SMALL,
    "maxItems": SMALL,
    "uniqueItems": st.booleans(),
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "required": st.lists(NAMES, max_size=2),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
    "format": st.just("email"),
    "x-unknown": VALUES,
    "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#/$defs/x~1y%25"]),
}


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    keywords = {
        **LEAVES,
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=2),
        "additionalProperties": inner,
        "propertyNames": inner,
        "prefixItems": several,
        "items": inner,
        "contains": inner,
        "minContains": SMALL,
        "maxContains": SMALL,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
    }
    return _subset(keywords)


def _subset(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({n: keywords[n] for n in chosen}))


PLAIN = {name: strategy for name, strategy in LEAVES.items() if name != "$ref"}
DEFINITION = _subset(PLAIN) | st.booleans()
SCHEMAS = st.recursive(_subset(LEAVES) | st.booleans(), nested, max_leaves=6)


@settings(max_examples=600, deadline=None)
@given(SCHEMAS, VALUES, DEFINITION, DEFINITION)
def test_it_agrees_with_jsonschema(schema: Any, value: Any, first: Any, second: Any) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"a": first, "b": second, "x/y%": first}}
    expected = Draft202012Validator(schema).is_valid(value)
    prepared = Schema(schema)
    for _ in range(2):
        assert (prepared.first_problem(value) is None) == expected


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=4), DEFINITION)
def test_what_it_says_of_a_value_is_the_same_after_others(
    schema: Any, values: list[Any], definition: Any
) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"a": definition, "x/y%": schema}}
    prepared = Schema(schema)
    for value in values:
        assert prepared.first_problem(value) == first_problem(schema, value)


@given(VALUES, VALUES)
def test_equality_is_json_s(left: Any, right: Any) -> None:
    assert equal(left, left)
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert equal(left, right) or not same
    assert not equal(True, 1)
    assert not equal([0], [False])
    assert equal({"a": 1}, {"a": 1.0})


@pytest.mark.parametrize(
    ("schema", "value", "where", "reason"),
    [
        ({"type": "integer"}, "x", "", "'x' is not of type integer"),
        ({"type": ["integer", "null"]}, True, "", "true is not of type integer or null"),
        ({"properties": {"a/b~c": {"type": "null"}}}, {"a/b~c": 1}, "/a~1b~0c", "type null"),
        ({"items": {"required": ["id"]}}, [{"id": 1}, {}], "/1", "'id' is missing"),
        ({"additionalProperties": False}, {"x": 1}, "/x", "not a known property"),
        ({"enum": [1, "a", None]}, 2, "", "2 is none of 1, 'a', null"),
        ({"anyOf": [{"type": "null"}, {"required": ["k"]}]}, {}, "", "is not of type null"),
        (
            {"anyOf": [{"type": "null"}, {"properties": {"k": {"type": "null"}}}]},
            {"k": 1},
            "/k",
            "is not of type null",
        ),
        ({"uniqueItems": True}, [1, 2, 1.0], "/2", "repeats item 0"),
        ({"maxLength": 2}, "x" * 500, "", "…"),
    ],
)
def test_a_problem_says_where_and_why(schema: Any, value: Any, where: str, reason: str) -> None:
    problem = first_problem(schema, value)
    assert problem is not None
    assert problem[0] == where
    assert reason in problem[1]
    assert len(problem[1]) < 300


def test_a_decimal_is_a_multiple_although_its_double_is_not() -> None:
    assert first_problem({"multipleOf": 0.01}, 19.99) is None
    assert first_problem({"multipleOf": 0.01}, 19.995) is not None


@pytest.mark.parametrize(
    ("factor", "value"),
    [
        (2.0, 10**10 + 1),
        (2.0, 2**64 + 1),
        (1e20, 0.5),
        (2**64, 1.5),
        (3.0, 1e20),
        (0.01, 5e8 + 0.5001),
    ],
)
def test_what_is_nearly_a_multiple_is_none_however_large_or_small(factor: Any, value: Any) -> None:
    assert first_problem({"multipleOf": factor}, value) is not None


@pytest.mark.parametrize(
    ("factor", "value"),
    [(0.1, 1e22), (1e-300, 1e300), (2.0, 10**400), (1e20, 3e20), (0.5, -2.5), (1e-7, -0.0)],
)
def test_a_multiple_is_one_however_large_or_small(factor: Any, value: Any) -> None:
    assert first_problem({"multipleOf": factor}, value) is None


def test_integers_beyond_doubles_are_compared_exactly() -> None:
    assert first_problem({"maximum": 2**63 - 1}, 2**63) is not None
    assert first_problem({"multipleOf": 2, "type": "integer"}, 2**80 + 1) is not None


def test_a_pattern_that_python_cannot_read_says_nothing() -> None:
    assert first_problem({"pattern": r"^\p{L}+$"}, "x") is None


def test_a_recursive_schema_follows_the_value() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["n"]}
    assert first_problem(tree, {"n": 1, "child": {"n": 2}}) is None
    assert first_problem(tree, {"n": 1, "child": {}}) == ("/child", "'n' is missing")


def exponential(depth: int, keyword: str) -> dict[str, Any]:
    rules: dict[str, Any] = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**rules, f"d{depth}": keyword == "allOf"}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, 1),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, 1),
        ({"$ref": "#/$defs/absent"}, 1),
        ({"$ref": "https://elsewhere.test/schema"}, 1),
        ({"$ref": 5}, 1),
        ([], 1),
        ({"properties": []}, {"a": 1}),
        ({"properties": {"a": 5}}, {"a": 1}),
        ({"items": "x"}, [1]),
        ({"minimum": "x"}, 1),
        ({"multipleOf": 0}, 1.5),
        ({"required": 5}, {}),
        ({"type": 5}, 1),
        ({"pattern": 5}, "x"),
        ({"type": "integer"}, float("inf")),
        ({"type": "object", "properties": []}, {"a": 1}),
        ({"anyOf": 5}, 1),
        ({"enum": {"a": 1}}, 1),
        ({"allOf": "x"}, 1),
        ({"prefixItems": 5}, [1]),
        ({"patternProperties": 0}, {"a": 1}),
        ({"contains": True, "maxContains": None}, [1]),
        ({"pattern": "x"}, "y" * 100_000),
    ],
)
def test_what_cannot_be_checked_is_a_problem_and_not_a_success(schema: Any, value: Any) -> None:
    assert first_problem(schema, value, steps=10_000) is not None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": [], "required": 5, "minProperties": "x"}, "x"),
        ({"properties": {"a": 5, "b": {"$ref": "#/absent"}}}, {"c": 1}),
        ({"items": "x"}, []),
        ({"prefixItems": [True, 5]}, [1]),
        ({"anyOf": [{"type": "string"}, 5]}, "x"),
        ({"": 5, "$ref": "#/$defs/a", "$defs": {"a": {}, "b": {"$ref": 5}}}, 1),
    ],
)
def test_what_is_malformed_where_no_value_reaches_is_no_problem(schema: Any, value: Any) -> None:
    assert first_problem(schema, value) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (exponential(40, "anyOf"), 1),
        (exponential(40, "allOf"), 1),
        (exponential(40, "oneOf"), 1),
        ({"items": {"type": "integer"}}, [1] * 20_000),
        ({"allOf": [{"items": {"type": "integer"}}] * 300}, [1] * 100),
        ({"items": {"properties": {"a": {}, "b": {}}}}, [{"a": 1, "b": 1}] * 5_000),
        ({"additionalProperties": {"type": "integer"}}, {str(n): n for n in range(20_000)}),
        ({"anyOf": [False, {"items": {"anyOf": [{"type": "integer"}]}}]}, [1] * 6_000),
    ],
)
def test_a_check_ends_after_so_many_steps(schema: Any, value: Any) -> None:
    reason = "cannot be checked: the schema takes too many steps"
    assert first_problem(schema, value, steps=10_000) == ("", reason)


def test_a_schema_that_leads_back_to_itself_nests_too_deeply() -> None:
    for keyword in ("allOf", "anyOf", "oneOf"):
        problem = first_problem({keyword: [{"$ref": "#"}]}, 1)
        assert problem == ("", "cannot be checked: the schema nests too deeply")


def test_a_value_as_deep_as_a_result_may_be_is_checked() -> None:
    value: Any = 1
    for _ in range(100):
        value = {"next": value}
    schema = {
        "properties": {"next": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}},
        "required": ["next"],
    }
    assert first_problem(schema, value) is None
