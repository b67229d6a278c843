"""What the mock stage judges values by."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.schemas.directional import Direction, DirectionalValidator


def doubling(depth: int) -> dict[str, Any]:
    """Definitions of which each refers to the next twice."""
    links = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {**links, f"d{depth}": {"type": "string"}}


@pytest.mark.parametrize("direction", ["request", "response"])
def test_schemas_that_refer_to_each_other_twice_are_given_up(direction: Direction) -> None:
    judge = DirectionalValidator(doubling(60), direction)
    assert "too many steps" in (judge.find_problem({"$ref": "#/$defs/d0"}, 5) or "")
    assert judge.accepts({"$ref": "#/$defs/d58"}, "x")


def test_one_schema_s_steps_are_not_taken_from_the_next_check() -> None:
    judge = DirectionalValidator(doubling(60), "request")
    assert not judge.accepts({"$ref": "#/$defs/d0"}, 5)
    assert judge.accepts({"$ref": "#/$defs/d50"}, "x")


def test_a_large_value_may_take_more_steps_than_a_small_one() -> None:
    judge = DirectionalValidator({"item": {"allOf": [{"type": "integer"}] * 2}}, "request")
    schema = {"type": "array", "items": {"$ref": "#/$defs/item"}}
    assert judge.accepts(schema, list(range(5_000)))
    assert not judge.accepts(schema, [*range(5_000), "x"])
