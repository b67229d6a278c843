"""Checks on the host: safe on schemas that strangers wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchestrator.frontends.tools import TOOLS
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.quick import compile_acceptor
from sandbox.schemas.steps import MAX_ERRORS, STEPS, STEPS_PER_VALUE
from sandbox.schemas.validator import get_checker


def doubling(depth: int) -> dict[str, Any]:
    """A schema that refers twice to one that refers twice to one…"""
    twice = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(depth)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**twice, f"a{depth}": {}}}


def recursive() -> dict[str, Any]:
    again = {"$ref": "#/$defs/T"}
    return {"$ref": "#/$defs/T", "$defs": {"T": {"properties": {"p": {"allOf": [again, again]}}}}}


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"p": value}
    return value


@pytest.mark.parametrize(("schema", "instance"), [(doubling(60), {}), (recursive(), nested(60))])
def test_a_schema_that_would_take_exponential_time_is_given_up(
    schema: dict[str, Any], instance: Any
) -> None:
    problem = get_checker(schema).find_problem(instance)
    assert problem is not None
    assert "too many steps" in problem.reason


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"not": {"$ref": "#"}},
        {"if": {"type": "array"}, "else": {"$ref": "#"}},
        {"properties": {"p": True}, "allOf": [{"if": {"$ref": "#"}}]},
    ],
)
def test_a_schema_that_refers_to_itself_is_a_problem_wherever_the_recursion_ends(
    schema: dict[str, Any],
) -> None:
    """jsonschema's maps panic where it ends in them."""

    def check(frames: int) -> str:
        if frames:
            return check(frames - 1)
        problem = get_checker(schema).find_problem({"p": 1})
        assert problem is not None
        return problem.reason

    reasons = {check(frames) for frames in range(40)}
    assert reasons == {"the schema refers to itself without end"}


def test_large_answers_have_as_many_steps_as_they_need() -> None:
    item = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/item"}]}
    schema = {
        "type": "array",
        "items": item,
        "$defs": {"item": {"allOf": [{"type": "object"}, {"required": ["a"]}]}},
    }
    assert get_checker(schema).find_problem([{"a": n} for n in range(5_000)]) is None
    problem = get_checker(schema).find_problem([*({"a": n} for n in range(50)), {}])
    assert problem is not None
    assert problem.where == "/50"


CATASTROPHIC = "^(a+)+$"
HOSTILE = "a" * 10_000 + "!"


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"pattern": CATASTROPHIC}, HOSTILE),
        ({"patternProperties": {CATASTROPHIC: {}}, "additionalProperties": False}, {HOSTILE: 1}),
        ({"patternProperties": {CATASTROPHIC: {}}, "unevaluatedProperties": False}, {HOSTILE: 1}),
        ({"propertyNames": {"pattern": CATASTROPHIC}}, {HOSTILE: 1}),
    ],
)
def test_a_catastrophic_pattern_is_matched_like_any_other(
    schema: dict[str, Any], instance: Any
) -> None:
    assert get_checker(schema).find_problem(instance) is not None
    assert not DirectionalValidator({}, "request").accepts(schema, instance)


@pytest.mark.parametrize("unread", [r"^(b)\1$", "(?!a)c"])
def test_a_pattern_that_is_not_run_on_the_host_allows_what_it_might_cover(unread: str) -> None:
    covering = {"patternProperties": {unread: {"type": "null"}}}
    for schema, instance in (
        ({"pattern": unread}, "a"),
        ({**covering, "additionalProperties": False}, {"a": 1}),
        ({**covering, "unevaluatedProperties": False}, {"a": 1}),
        ({"allOf": [covering], "unevaluatedProperties": False}, {"a": 1}),
    ):
        assert get_checker(schema).find_problem(instance) is None
        assert DirectionalValidator({}, "response").accepts(schema, instance)


def test_patterns_are_matched_as_long_as_the_check_has_steps_for_them() -> None:
    text = "a" * 20_000
    patterns = [{"pattern": f"(?:ab?){{900}}c{n}"} for n in range(50)]
    assert get_checker({"anyOf": patterns[:1]}).find_problem(text) is not None
    assert get_checker({"anyOf": patterns}).find_problem(text) is None
    assert get_checker({"anyOf": patterns}).find_problem(text[:100]) is not None
    judge = DirectionalValidator({}, "request")
    assert judge.accepts({"anyOf": patterns}, text)
    assert judge.effort <= STEPS + STEPS_PER_VALUE + 1


def inner_schemas() -> st.SearchStrategy[Any]:
    leaf = st.sampled_from([True, False, {}, {"type": "integer"}, {"$ref": "#/$defs/named"}])
    return st.recursive(leaf, objects, max_leaves=8)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names, patterns = st.sampled_from(["a", "b", "ab"]), st.sampled_from(["^a", "b$", "[c-e]"])
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=2),
            "patternProperties": st.dictionaries(patterns, inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "dependentSchemas": st.dictionaries(names, inner, max_size=1),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
            "not": inner,
        },
    )


@settings(max_examples=300, deadline=None)
@given(
    inner_schemas(),
    st.dictionaries(st.sampled_from(["a", "ab", "b", "cb", "e"]), st.sampled_from([1, "x", {}])),
)
def test_properties_are_checked_as_the_standard_validator_checks_them(
    schema: Any, instance: Any
) -> None:
    named = {"properties": {"e": {"type": "string"}}, "patternProperties": {"^c": True}}
    whole = schema if isinstance(schema, bool) else {**schema, "$defs": {"named": named}}
    is_valid = Draft202012Validator(whole).is_valid(instance)
    assert (get_checker(whole).find_problem(instance) is None) is is_valid
    assert DirectionalValidator({"named": named}, "request").accepts(schema, instance) is is_valid


NUMBERS = st.sampled_from([-1, 0, 1, 2, 1.0, 1.5, 2**80])


def plain_schemas() -> st.SearchStrategy[Any]:
    """Schemas of the keywords that are read quickly, with values of the wrong kind among them."""
    limits = st.sampled_from([0, 1, 2, True])
    leaf = st.one_of(
        st.sampled_from([True, {}, {"title": "t"}, {"type": "boolean"}, {"type": "null"}]),
        st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in ("a", "b", "c", "a~1b")]),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number", ["integer", "null"]])},
            optional={"minimum": NUMBERS, "maximum": NUMBERS, "format": st.just("int32")},
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from([["integer", "string"], ["null", "boolean"], []])},
            optional={"enum": st.sampled_from([["a", 1], [1, None], [True], ["a", 1.0]])},
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["string", ["string", "number", "null"]])},
            optional={
                "x-in": st.just("query:a"),
                "minLength": limits,
                "maxLength": limits,
                "enum": st.sampled_from([["a"], ["a", None], []]),
                "pattern": st.just("^a"),
            },
        ),
    )
    return st.recursive(leaf, plain_holders, max_leaves=5)


def plain_holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b"])
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["object", ["object", "null"]])},
            optional={
                "properties": st.dictionaries(names, inner, max_size=2),
                "required": st.lists(names, max_size=2, unique=True),
                "additionalProperties": st.one_of(st.booleans(), inner),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["array", ["array", "string"]])},
            optional={"items": inner, "minItems": st.just(1), "maxItems": st.just(1)},
        ),
    )


def values() -> st.SearchStrategy[Any]:
    leaf = st.one_of(NUMBERS, st.sampled_from([True, None, "", "a", "éé", "abc"]))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=2),
            st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=2),
        ),
        max_leaves=4,
    )


@settings(max_examples=300, deadline=None)
@given(plain_schemas(), st.lists(plain_schemas(), min_size=2, max_size=2), values())
def test_a_value_is_taken_quickly_only_where_the_standard_validator_takes_it(
    schema: Any, named: list[Any], instance: Any
) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {**dict(zip("ab", named, strict=True)), "a~1b": True}}
    accept = compile_acceptor(schema)
    if accept is not None and accept(instance):
        assert Draft202012Validator(schema).is_valid(instance)


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        (next(t for t in TOOLS if t["name"] == "call_read")["inputSchema"], {"tool": "a.b"}),
        ({"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}}, {"a": 1.5}),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, ["a", "a"]),
        ({"type": "object", "properties": {"a": {"type": "string", "x-in": "path:a"}}}, {"a": "b"}),
        (
            {"type": ["object", "null"], "properties": {"a": {"type": ["array", "null"]}}},
            {"a": None},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}, "B": True},
            },
            {"a": [1], "b": []},
        ),
    ],
)
def test_a_plain_value_is_taken_quickly(schema: dict[str, Any], instance: Any) -> None:
    accept = compile_acceptor(schema)
    assert accept is not None
    assert accept(instance)


def test_a_schema_that_refers_to_itself_is_left_to_the_validator_where_it_does() -> None:
    again = {"type": "object", "properties": {"p": {"$ref": "#/$defs/T"}}}
    accept = compile_acceptor({"$ref": "#/$defs/T", "$defs": {"T": again}})
    assert accept is not None
    assert accept({})
    assert not accept({"p": {}})
    assert compile_acceptor({"$ref": "#/$defs/T", "$defs": {"T": {"$ref": "#/$defs/T"}}}) is None


def test_a_schema_that_is_nested_deeply_is_left_to_the_validator() -> None:
    schema: Any = {"type": "string"}
    for _ in range(2_000):
        schema = {"type": "array", "items": schema}
    assert compile_acceptor(schema) is None


def test_of_an_instance_that_breaks_its_schema_everywhere_the_first_errors_are_found() -> None:
    shown = []

    class Shown(str):
        def __repr__(self) -> str:
            shown.append(self)
            return "shown"

    checker = get_checker({"type": "array", "items": {"type": "integer"}})
    problem = checker.find_problem([Shown() for _ in range(10 * MAX_ERRORS)])
    assert problem is not None
    assert problem.reason == "shown is not of type 'integer'"
    assert len(shown) == MAX_ERRORS
