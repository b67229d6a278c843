"""What is so much that it is worked on beside the event loop."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from sandbox.offload import has_many_values


@pytest.mark.parametrize(
    "value",
    [
        "x" * 300_000,
        {"content": [{"type": "text", "text": "x" * 300_000}]},
        [{"id": number, "name": "row"} for number in range(300)],
        ["x" * 5_000] * 60,
        (({"a": [None] * 600},),),
        MappingProxyType({"a": {"b": "x" * 300_000}}),
        {str(number): number / 7 for number in range(600)},
    ],
)
def test_there_are_many_values_wherever_they_are_held(value: object) -> None:
    assert has_many_values(value)
    assert has_many_values({"isError": False, "beside": [1, 2.5, None, "short"], "value": value})


@pytest.mark.parametrize("value", ["x" * 200_000, [1] * 400, {"a": [{}] * 100}, None, 7, b""])
def test_there_are_few_values_where_little_is_held(value: object) -> None:
    assert not has_many_values(value)
    assert not has_many_values({"content": [value]})


def test_there_are_many_values_sooner_where_each_is_held_against_much() -> None:
    assert has_many_values([1] * 100, 10)
    assert has_many_values([1], 2_000)
    assert not has_many_values([1] * 90, 10)
