from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from forge.schemas.concise import PROSE_BUDGET, SchemaShortener


def arguments(properties: dict[str, Any], **defs: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"type": "object", "properties": properties}
    return {**root, "$defs": defs} if defs else root


def link(name: str, **notes: Any) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", **notes}


NAME = {"type": "object", "properties": {"first": {"type": "string"}}, "required": ["first"]}
NODE = {"type": "object", "properties": {"next": link("Node")}}


def test_a_definition_that_is_used_once_stands_in_its_place() -> None:
    made = SchemaShortener().shorten_schema(
        arguments({"a": link("Name", description="Whose.")}, Name=NAME)
    )
    assert "$defs" not in made
    assert made["properties"]["a"] == {**NAME, "description": "Whose."}


def test_a_definition_that_is_used_twice_or_recursive_stays() -> None:
    twice = SchemaShortener().shorten_schema(
        arguments({"a": link("Name"), "b": link("Name")}, Name=NAME)
    )
    assert twice["$defs"] == {"Name": NAME}
    recursive = SchemaShortener().shorten_schema(arguments({"a": link("Node")}, Node=NODE))
    assert recursive["$defs"] == {"Node": NODE}


def test_a_constraint_beside_a_reference_keeps_it_a_reference() -> None:
    bounded = link("Name", minProperties=1)
    assert (
        SchemaShortener().shorten_schema(arguments({"a": bounded}, Name=NAME))["properties"]["a"]
        == bounded
    )


def test_a_property_called_title_or_examples_is_no_note() -> None:
    held = {"title": {"type": "string"}, "examples": {"type": "string"}}
    assert SchemaShortener().shorten_schema(arguments(held))["properties"] == held


def test_short_prose_stays_whole_and_much_of_it_keeps_its_first_sentences() -> None:
    told = "Which one it is. " + "And a lot more about it. " * 10
    few = SchemaShortener().shorten_schema(arguments({"a": {"description": told[:200]}}))
    assert few["properties"]["a"]["description"] == told[:200]
    many = SchemaShortener().shorten_schema(
        arguments({f"a{at}": {"description": told} for at in range(30)})
    )
    assert {p["description"] for p in many["properties"].values()} == {"Which one it is."}


def test_the_longest_prose_is_bounded() -> None:
    properties = {f"a{at}": {"description": "word " * 60} for at in range(100)}
    made = SchemaShortener().shorten_schema(arguments(properties))
    assert len(json.dumps(made)) < 100 * 100
    assert len(json.dumps(made)) > PROSE_BUDGET


SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": "string"}, {"type": "integer", "minimum": 3}, link("A"), link("B"), link("C")]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda parts, title: {"type": "object", "title": title, "properties": parts},
            st.dictionaries(st.sampled_from(["a", "b", "title"]), inner, max_size=3),
            st.text(max_size=5),
        ),
        st.builds(lambda part: {"type": "array", "items": part}, inner),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.one_of(st.integers(0, 5), st.sampled_from(["x", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["a", "b", "title"]), inner, max_size=2),
    ),
    max_leaves=6,
)
OBJECTS = st.builds(
    lambda parts: {"type": "object", "properties": parts},
    st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS, max_size=2),
)


@settings(max_examples=150, deadline=None)
@given(OBJECTS, OBJECTS, OBJECTS, SCHEMAS, VALUES)
def test_what_is_valid_and_what_is_not_does_not_change(
    a: Any, b: Any, c: Any, argument: Any, value: Any
) -> None:
    root = arguments({"x": argument}, A=a, B=b, C=c)
    made = SchemaShortener().shorten_schema(root)
    Draft202012Validator.check_schema(made)
    instance = {"x": value}
    try:
        before = Draft202012Validator(root).is_valid(instance)
    except RecursionError:
        return
    assert Draft202012Validator(made).is_valid(instance) == before


@pytest.mark.parametrize("limit", [1, 30])
def test_a_long_chain_of_definitions_ends_as_references(limit: int) -> None:
    defs = {
        f"D{at}": {"type": "object", "properties": {"d": link(f"D{at + 1}")}} for at in range(limit)
    }
    defs[f"D{limit}"] = {"type": "string"}
    made = SchemaShortener().shorten_schema(arguments({"a": link("D0")}, **defs))
    Draft202012Validator.check_schema(made)
    wanted = {name.removeprefix("#/$defs/") for name in _links(made)}
    assert wanted <= made.get("$defs", {}).keys()


def _links(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for part in value.values() for found in _links(part)]
    return [found for part in value for found in _links(part)] if isinstance(value, list) else []
