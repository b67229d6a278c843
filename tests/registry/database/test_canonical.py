"""The canonical JSON text of values, on which digests and signatures stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.database.canonical import to_canonical_json

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(1e-6, 1e18)
    | st.text()
    | st.text(st.characters(max_codepoint=127))
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def write(value: Any) -> str:
    """As RFC 8259 is written by the standard library."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@given(VALUES | st.lists(PLAIN) | st.dictionaries(st.text(), PLAIN))
def test_a_value_has_the_text_that_the_standard_library_writes(value: Any) -> None:
    assert to_canonical_json(value) == write(value)


@pytest.mark.parametrize(
    "value",
    [
        [1e16, 1e15, 1e-4, 9.9e-5, -0.0, -1.5, 0.0],
        {"b": "\x7f", "a": "\u2028"},
        ["\ud800", "\x00\x1f/<"],
        [2**63, 2**64, -(2**63) - 1, True],
        {1: "a"},
        [],
        {},
        "",
        [(1, 2)],
    ],
)
def test_what_two_writers_write_differently_is_written_as_ever(value: Any) -> None:
    assert to_canonical_json(value) == write(value)


@pytest.mark.parametrize("value", [[float("nan")], {"a": float("inf")}, [-float("inf")]])
def test_a_number_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_canonical_json(value)
