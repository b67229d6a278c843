from __future__ import annotations

import json
from typing import Any

import pytest

from forge.schemas.projection import Direction, Projection, loosen_schema

BIG = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(200)}}
SCHEMAS: dict[str, Any] = {
    "Big": BIG,
    "Level": {"type": "string", "enum": ["low", "high"], "description": "How much."},
    "Code": {"type": "string", "minLength": 2, "enum": [f"code {at}" for at in range(40)]},
    "Choice": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Big"}]},
}


def select(*properties: str, limit: int = 300) -> Any:
    parts = {name: {"$ref": f"#/$defs/{name}"} for name in properties}
    requests = Projection(SCHEMAS, "request")
    chosen = requests.select_schemas(
        requests.project_roots([{"type": "object", "properties": parts}]), limit
    )
    (root,) = chosen.schemas
    assert isinstance(root, dict)
    return root["properties"], chosen


@pytest.mark.parametrize("value", ["plain", "café", 'a "b" \\ \n\x01', 2**70, [1, True, None, {}]])
def test_a_schema_takes_as_many_characters_as_its_json_with_escapes(value: Any) -> None:
    requests = Projection({}, "request")
    root = {"const": value, "type": "string"}
    size = requests.measure_selection(requests.project_roots([root]), 8_000)
    assert size == len(json.dumps([root], separators=(",", ":")))


def test_what_does_not_fit_keeps_its_type() -> None:
    properties, chosen = select("Big")
    assert properties["Big"] == {"type": "object"}
    assert not chosen.whole
    assert chosen.defs == {}


def test_a_small_choice_that_does_not_fit_is_kept_as_it_is() -> None:
    properties, _ = select("Big", "Level", limit=130)
    assert properties["Level"] == {"type": "string", "enum": ["low", "high"]}


def test_of_a_long_choice_that_does_not_fit_only_the_list_goes() -> None:
    properties, _ = select("Big", "Code", limit=130)
    assert properties["Code"] == {"type": "string", "minLength": 2}


def test_a_choice_between_parts_that_do_not_fit_keeps_their_types() -> None:
    properties, _ = select("Choice", "Big", limit=120)
    assert properties["Choice"] == {"type": ["string", "object"]}


def test_an_object_that_does_not_fit_keeps_what_it_cannot_do_without() -> None:
    needed = {"type": "object", "required": ["p1"], "properties": {**BIG["properties"]}}
    requests = Projection({"Big": needed}, "request")
    chosen = requests.select_schemas(requests.project_roots([{"$ref": "#/$defs/Big"}]), 200)
    assert chosen.schemas == (
        {"type": "object", "required": ["p1"], "properties": {"p1": {"type": "string"}}},
    )


def test_a_list_that_does_not_fit_keeps_how_many_it_takes() -> None:
    many = {"type": "array", "items": BIG, "minItems": 1, "maxItems": 250, "uniqueItems": True}
    chosen = {}
    directions: tuple[Direction, ...] = ("request", "response")
    for direction in directions:
        made = Projection({"Many": many}, direction)
        roots = made.project_roots([{"$ref": "#/$defs/Many"}])
        (chosen[direction],) = made.select_schemas(roots, 120).schemas
    counts = {"minItems": 1, "maxItems": 250, "uniqueItems": True}
    assert chosen == {"request": {"type": "array", **counts}, "response": {"type": "array"}}


def test_alternatives_that_were_loosened_may_overlap() -> None:
    strict = {"oneOf": [{"$ref": "#/$defs/Big"}, {"type": "string"}]}
    loose = loosen_schema({"oneOf": [{"type": "object"}, {"type": "string"}]}, strict)
    assert loose == {"anyOf": [{"type": "object"}, {"type": "string"}]}


@pytest.mark.parametrize("key", ["not", "if"])
def test_what_a_loosened_part_would_refuse_is_dropped(key: str) -> None:
    assert loosen_schema({key: True, "then": False}, {key: {"type": "string"}}).keys() <= {"then"}


def test_alternatives_that_were_kept_stay_exclusive() -> None:
    strict = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert loosen_schema(dict(strict), strict) == strict
