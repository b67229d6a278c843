"""5.0 is an integer to JSON Schema, and to the code of a tool that asked for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolwright.wholes import whole

from tests.images.conftest import Start
from tests.images.host import definition

INTEGER = {"type": "integer"}
ROWS = {"type": "array", "items": {"type": "object", "properties": {"n": INTEGER}}}


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (INTEGER, 5.0, "5"),
        (INTEGER, -0.0, "0"),
        ({"type": ["integer", "null"]}, 5.0, "5"),
        ({"type": ["integer", "number"]}, 5.0, "5.0"),
        ({"type": "number"}, 5.0, "5.0"),
        ({}, 5.0, "5.0"),
        (True, 5.0, "5.0"),
        (INTEGER, 5.5, "5.5"),
        (INTEGER, 2.0**60, "1.152921504606847e+18"),
        (INTEGER, float("inf"), "Infinity"),
        ({"type": "array", "items": INTEGER}, [1.0, 2, "3"], '[1, 2, "3"]'),
        ({"type": "array", "items": {"type": "string"}}, [1.0], "[1.0]"),
        (ROWS, [{"n": 1.0, "m": 1.0}], '[{"n": 1, "m": 1.0}]'),
        ({"properties": {"rows": ROWS}}, {"rows": [{"n": 2.0}]}, '{"rows": [{"n": 2}]}'),
        ({"properties": {"n": INTEGER}}, [1.0], "[1.0]"),
        ({"type": 7, "properties": 7, "items": 7}, {"n": [1.0]}, '{"n": [1.0]}'),
    ],
)
def test_only_what_is_said_to_be_an_integer_becomes_one(
    schema: Any, value: Any, wanted: str
) -> None:
    assert json.dumps(whole(schema, value)) == wanted


@given(st.recursive(st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=10))
def test_no_value_is_changed_by_it(value: Any) -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(4):
        schema = {**schema, "items": schema}
    assert whole(schema, value) == value


def test_nesting_without_end_is_left_as_it_came() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    schema["items"] = schema
    value: Any = 1.0
    for _ in range(5_000):
        value = [value]
    assert whole(schema, value) is not None


def test_a_tool_gets_the_integer_that_its_schema_asks_for(start: Start) -> None:
    host = start()
    counting = definition(
        "first", input_schema={"type": "object", "properties": {"limit": {"type": "integer"}}}
    )
    host.serve_bundle(
        "from toolwright import tool\n\n\n@tool\ndef first(limit):\n"
        "    return {'letters': 'abc'[:limit]}\n",
        counting,
    )
    assert host.call("first", limit=2.0)["structuredContent"] == {"letters": "ab"}
