"""Checks on the host: safe on schemas that strangers wrote."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.validation import checker


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
    problem = checker(schema).problem(instance)
    assert problem is not None
    assert "too many steps" in problem.reason


def test_large_answers_have_as_many_steps_as_they_need() -> None:
    item = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/item"}]}
    schema = {
        "type": "array",
        "items": item,
        "$defs": {"item": {"allOf": [{"type": "object"}, {"required": ["a"]}]}},
    }
    assert checker(schema).problem([{"a": n} for n in range(5_000)]) is None
    problem = checker(schema).problem([*({"a": n} for n in range(50)), {}])
    assert problem is not None
    assert problem.where == "/50"
