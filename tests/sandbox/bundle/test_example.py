"""Examples as data: written, read again, and compared as JSON means it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.bundle.example import (
    AnswersInvalid,
    Example,
    is_same_value,
    parse_answers,
    parse_examples,
    render_examples,
)
from sandbox.schemas.boundary_values import build_extreme, build_malformed
from sandbox.schemas.validator import get_checker
from tests.sandbox.computing import takes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.sampled_from(
    [
        {"type": "string", "maxLength": 5},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "number"},
        {"type": "integer", "minimum": 1, "maximum": 9},
        {"type": ["array", "null"], "items": {"type": "integer"}},
        {"type": "object"},
        {},
    ]
)


@given(JSON)
def test_every_json_value_is_the_same_as_itself_read_again(value: Any) -> None:
    assert is_same_value(value, json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (1e-12, 2e-12, False),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        ([], {}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        ("1", 1, False),
        (2**64, 2**64 + 1, False),
        (10**400, 1.0, False),
    ],
)
def test_values_compare_as_json_and_fractions_nearly(one: Any, other: Any, equal: bool) -> None:
    assert is_same_value(one, other) is equal
    assert is_same_value(other, one) is equal


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(Example, st.just("t"), st.dictionaries(st.text(), JSON, max_size=2), JSON),
        max_size=3,
    )
)
def test_examples_are_read_as_they_were_written(examples: list[Example]) -> None:
    assert parse_examples(render_examples(examples)) == tuple(examples)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"cases": 7}',
        b'{"cases": [7]}',
        b'{"cases": [{"tool": "t", "arguments": {}}]}',
        b'{"cases": [{"tool": "t", "arguments": {}, "result": 1, "failure": "tool"}]}',
        b'{"cases": [{"tool": "t", "arguments": [], "result": 1}]}',
        b'{"cases": [{"tool": "t", "arguments": {}, "failure": "bug"}]}',
    ],
)
def test_what_is_no_list_of_cases_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_examples(content)


@given(SCHEMAS)
def test_extremes_are_admitted_and_malformed_arguments_are_not(schema: dict[str, Any]) -> None:
    whole = takes(value=schema, other={"type": "boolean"})
    judge = get_checker(whole)
    base = {"value": "a", "other": True}
    assert all(judge.find_problem(t.arguments) is None for t in build_extreme(whole, base, judge))
    wrong = build_malformed(whole, base, judge)
    assert all(judge.find_problem(t.arguments) for t in wrong)
    assert {"without value", "without other", "an unknown argument"} <= {t.name for t in wrong}


HEADED = {"request": "GET /x", "headers": {"X-Key": {"$any": "string"}}, "status": 200, "body": 1}


def test_the_headers_of_an_answer_are_written_and_read_again() -> None:
    example = Example("t", {}, 1, answers=parse_answers([HEADED]))
    assert parse_examples(render_examples([example])) == (example,)
    assert example.answers[0].headers == {"x-key": {"$any": "string"}}


@pytest.mark.parametrize("headers", [[], {"a b": "c"}, {"x": 1}, {"x": {"y": 1}}, {"": "c"}])
def test_headers_that_are_none_are_refused(headers: Any) -> None:
    with pytest.raises(AnswersInvalid, match="/answers/0/headers"):
        parse_answers([{**HEADED, "headers": headers}])
