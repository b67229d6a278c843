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


@pytest.mark.parametrize(
    "written",
    [rb'"\ud800"', rb'{"\udfff": 1}', rb'"\ud800\u0041"', b'"\xed\xa0\x80"', b'\xef\xbb\xbf"a"'],
)
@pytest.mark.parametrize("number", [1, LONG])
def test_a_text_that_is_no_unicode_is_refused_with_a_long_integer_as_without(
    written: bytes, number: int
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        exactjson.loads(b"[%b, %d]" % (written, number))


def test_a_surrogate_pair_beside_a_long_integer_is_one_character() -> None:
    assert exactjson.loads(rb'["\ud83d\ude00", %d]' % LONG) == ["\U0001f600", LONG]
