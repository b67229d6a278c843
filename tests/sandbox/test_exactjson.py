"""Parsing JSON without losing integers beyond 64 bits, also in long texts."""

from __future__ import annotations

import json

import pytest

from sandbox import exactjson

LONG = 2**70


@pytest.mark.parametrize("number", [LONG, -LONG, 2**64, -(2**63) - 1, 10**19])
def test_a_long_integer_is_kept_wherever_it_stands_in_a_long_text(number: int) -> None:
    for before in (*range(40), 9_999):
        text = json.dumps({"a": "x" * before, "n": number, "z": "y" * 6_000})
        assert exactjson.loads(text.encode())["n"] == number, before


def test_a_long_text_of_short_numbers_is_read_as_it_is() -> None:
    value = {"items": [[i, i / 3, str(i) * 3] for i in range(3_000)]}
    assert exactjson.loads(json.dumps(value).encode()) == value
