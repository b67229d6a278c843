"""A widened schema has lost nothing but the refusal of the types that were added."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.stages.probe.strictness import is_as_strict

THING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "state": {"type": "string", "enum": ["on", "off"]},
        "kind": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "inner": {"$ref": "#/$defs/Thing"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
BEFORE = {"type": "array", "items": {"$ref": "#/$defs/Thing"}, "$defs": {"Thing": THING}}


def after(**fields: Any) -> dict[str, Any]:
    thing = {**THING, "properties": {**THING["properties"], **fields}}
    return {"type": "array", "items": thing, "$defs": {"Thing": THING}}


@pytest.mark.parametrize(
    "schema",
    [
        BEFORE,
        after(),
        after(name={"type": ["string", "null"]}),
        after(state={"anyOf": [THING["properties"]["state"], {"type": ["null"]}]}),
        after(kind={"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": ["string"]}]}),
        after(labels={"type": "object", "additionalProperties": {"type": ["string", "null"]}}),
        after(more={}),
    ],
)
def test_types_may_be_added(schema: Any) -> None:
    assert is_as_strict(BEFORE, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "array", "items": {"type": "object"}},
        {"type": "array", "items": {"$ref": "#/$defs/Gone"}},
        {**BEFORE, "$defs": {"Thing": {}}},
        after(name={}),
        after(name=True),
        after(name={"type": ["string", "object"]}),
        after(state={"anyOf": [THING["properties"]["state"], {}]}),
        after(state={"anyOf": [{}, {"type": ["null"]}]}),
        after(kind={"anyOf": [{"type": "integer"}]}),
        after(inner={}),
        after(labels={"type": "object"}),
    ],
)
def test_nothing_may_be_lost(schema: Any) -> None:
    assert not is_as_strict(BEFORE, schema)
