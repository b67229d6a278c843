"""Answers that leave out what a document promises are answers all the same; wrong types are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.schemas.tolerance import relax_schema
from sandbox.schemas.validator import SchemaChecker

RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kind": {"enum": ["A", "TXT"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}


def test_a_property_that_was_promised_may_be_missing() -> None:
    assert SchemaChecker(relax_schema(RECORD)).find_problem({"name": "example.org"}) is None


def test_a_property_that_was_not_documented_may_be_there() -> None:
    assert (
        SchemaChecker(relax_schema(RECORD)).find_problem({"name": "example.org", "ttl": 60}) is None
    )


@pytest.mark.parametrize("answer", [{"name": 5}, {"kind": "MX"}, [], "text", None])
def test_a_wrong_type_or_value_is_still_a_problem(answer: object) -> None:
    assert SchemaChecker(relax_schema(RECORD)).find_problem(answer) is not None


def test_branches_that_differ_only_in_what_they_require_both_fit() -> None:
    branches = [{"required": ["a"]}, {"required": ["b"]}]
    schema = relax_schema({"type": "object", "oneOf": branches, "anyOf": [{"type": "object"}]})
    assert SchemaChecker(schema).find_problem({}) is None
    assert SchemaChecker(schema).find_problem(5) is not None


def test_a_negation_does_not_turn_into_a_refusal_of_everything() -> None:
    assert (
        SchemaChecker(relax_schema({"not": {"required": ["error"]}})).find_problem({"ok": True})
        is None
    )


schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"enum": [1, "a"]}, True]),
    lambda inner: (
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("ab"), inner),
            },
            optional={
                "required": st.lists(st.sampled_from("abc"), unique=True),
                "additionalProperties": st.just(False),
            },
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)})
    ),
    max_leaves=6,
)
answers = st.recursive(
    st.sampled_from([1, "a", "b", None, 2.5]),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner) | st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(schemas, answers)
def test_what_the_document_allows_is_never_refused(schema: bool | dict, answer: object) -> None:
    if SchemaChecker(schema).find_problem(answer) is None:
        assert SchemaChecker(relax_schema(schema)).find_problem(answer) is None
