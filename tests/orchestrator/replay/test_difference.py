"""The first place where two answers part ways, by its JSON pointer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.replay.rerun import ReplayDifference, find_difference

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "got", "difference"),
    [
        ({"a": 1}, {"a": 2}, ("/a", "1", "2")),
        ({"a": 1}, {"a": 1.0}, ("/a", "1", "1.0")),
        ({"a": 1}, {"a": True}, ("/a", "1", "true")),
        ({"a": 0.0}, {"a": -0.0}, ("/a", "0.0", "-0.0")),
        ({"a": None}, {}, ("/a", "null", "nothing")),
        ({}, {"a": None}, ("/a", "nothing", "null")),
        ([1, 2], [1], ("/1", "2", "nothing")),
        ([1], [1, []], ("/1", "nothing", "[]")),
        ({"b": 1, "a": [{"c": 1}]}, {"b": 2, "a": [{"c": 2}]}, ("/a/0/c", "1", "2")),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ("/a~1b/~0", "1", "2")),
        ([], {}, ("", "[]", "{}")),
        ("ab", "ac", ("", '"ab"', '"ac"')),
    ],
)
def test_the_first_difference_is_named(expected: Any, got: Any, difference: Any) -> None:
    assert find_difference(expected, got) == ReplayDifference(*difference)


def test_a_long_value_is_shortened() -> None:
    found = find_difference("a" * 10_000, "b")
    assert found is not None
    assert len(found.expected) < 350
    assert found.expected.endswith("(10002 characters)")


@given(values)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert find_difference(value, value) is None


@given(values, values)
def test_a_difference_is_found_in_either_direction(one: Any, other: Any) -> None:
    there, back = find_difference(one, other), find_difference(other, one)
    assert (there and (there.where, there.got, there.expected)) == (
        back and (back.where, back.expected, back.got)
    )
