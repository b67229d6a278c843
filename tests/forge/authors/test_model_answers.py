"""A model's text: the one JSON object in it, or what is wrong with it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.authors.json_answers import (
    MAX_TEXT,
    append_schema,
    estimate_tokens,
    parse_answer,
    resolve_token_count,
)

ANY = {"type": "object"}
CODE = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
def test_an_object_is_read_plain_and_fenced(value: dict[str, object]) -> None:
    text = json.dumps(value)
    for told in (text, f"\n {text}\n", f"```json\n{text}\n```", f"Here:\n```\n{text}\n```\nDone."):
        assert parse_answer(told, ANY) == value


def test_an_object_among_words_is_read() -> None:
    assert parse_answer('Sure! {"code": "x = {}"} Good luck', CODE) == {"code": "x = {}"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ("I cannot do that.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"code": "x', "no JSON"),
        ('{"code": "x"', "no JSON"),
        ('{"code": x}', "no JSON"),
        ('{"code": NaN}', "NaN is no JSON"),
        ('{"code": 1}', "/code"),
        ("{}", "'code' is a required property"),
        ('{"code": "x", "more": ' + "[" * 200 + "]" * 200 + "}", "deep"),
        ('{"code": ' + "[" * 100_000 + "}", "no JSON"),
        ('{"code": "' + "x" * MAX_TEXT + '"}', "longer than"),
    ],
)
def test_anything_else_is_told_what_is_wrong_with_it(text: str, problem: str) -> None:
    told = parse_answer(text, CODE)
    assert isinstance(told, str)
    assert problem in told


@given(st.text(max_size=300))
def test_no_text_breaks_the_reading(text: str) -> None:
    assert isinstance(parse_answer(text, ANY), dict | str)


@pytest.mark.parametrize("usage", [None, -1, True, "12", 1e9, 10**12, [1]])
def test_a_usage_that_cannot_be_is_estimated(usage: object) -> None:
    assert resolve_token_count(usage, "abcdef") == estimate_tokens("abcdef") == 3


def test_a_schema_is_told_where_nobody_holds_the_model_to_it() -> None:
    assert json.dumps(CODE, separators=(",", ":")) in append_schema("Write.", CODE)
