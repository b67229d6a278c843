from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.model import Plan, Step
from orchestrator.tasks.planning.binding import bind_steps, to_singular
from orchestrator.tasks.planning.parse import list_ready, order_steps
from orchestrator.tasks.planning.split import MAX_STEPS, plan_task

ZONES = {
    "type": "object",
    "properties": {
        "zones": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
            },
        },
        "total": {"type": "integer"},
    },
}
ZONE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "serial": {"type": "integer"},
    },
}


def needing(name: str, kind: str = "string") -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


@pytest.mark.parametrize(
    ("task", "strategy", "steps"),
    [
        ("list the zones", "single", [("list the zones", (), "", "")]),
        ("", "single", [("", (), "", "")]),
        (
            "list the zones, then list the berths",
            "sequential",
            [("list the zones", (), "", ""), ("list the berths", ("s1",), "", "")],
        ),
        (
            "list the zones; list the berths",
            "sequential",
            [("list the zones", (), "", ""), ("list the berths", (), "", "")],
        ),
        (
            "1. list the zones\n2. delete zone a\n3. list the zones",
            "sequential",
            [
                ("list the zones", (), "", ""),
                ("delete zone a", ("s1",), "", ""),
                ("list the zones", ("s2",), "", ""),
            ],
        ),
        (
            "find the zone example.org, then use its id to list the records",
            "composed",
            [("find the zone example.org", (), "", ""), ("list the records", ("s1",), "id", "")],
        ),
        (
            "find the zone example.org and use its name to look up the owner",
            "composed",
            [("find the zone example.org", (), "", ""), ("look up the owner", ("s1",), "name", "")],
        ),
        (
            "list the zones and for each list the records",
            "composed",
            [("list the zones", (), "", ""), ("list the records", ("s1",), "", "each")],
        ),
        (
            "list the zones, then for each of them, count the records",
            "composed",
            [("list the zones", (), "", ""), ("count the records", ("s1",), "", "each")],
        ),
        (
            "list the zones; show the second one",
            "composed",
            [("list the zones", (), "", ""), ("show the second one", ("s1",), "", "1")],
        ),
        (
            "list the zones; show the last one",
            "composed",
            [("list the zones", (), "", ""), ("show the last one", ("s1",), "", "-1")],
        ),
        (
            "show zone a; list its records",
            "composed",
            [("show zone a", (), "", ""), ("list its records", ("s1",), "records", "")],
        ),
        (
            "make me a tool that lists zones, then deletes them",
            "forced",
            [("make me a tool that lists zones, then deletes them", (), "", "")],
        ),
    ],
)
def test_a_task_becomes_steps(
    task: str, strategy: str, steps: list[tuple[str, tuple[str, ...], str, str]]
) -> None:
    plan = plan_task(task)
    assert plan.strategy == strategy
    assert [(s.task, s.after, s.uses, s.pick) for s in plan.steps] == steps
    assert [s.id for s in plan.steps] == [f"s{n}" for n in range(1, len(steps) + 1)]


@given(st.text())
def test_any_task_has_a_plan_that_can_be_carried_out(task: str) -> None:
    plan = plan_task(task)
    assert 1 <= len(plan.steps) <= MAX_STEPS
    assert order_steps(plan) == plan.steps
    assert list_ready(plan, frozenset())


@pytest.mark.parametrize(
    ("task", "output", "parameter", "path"),
    [
        ("show zone a, then use its id to list records", ZONE, "id", "$['id']"),
        ("show zone a, then use its id to list records", ZONE, "zone_id", "$['id']"),
        ("show zone a, then use its name to list records", ZONE, "name", "$['name']"),
        ("list zones, then for each list records", ZONES, "zone_id", "$['zones'][*]['id']"),
        ("list zones, then list records of the first one", ZONES, "zone_id", "$['zones'][0]['id']"),
        ("list zones, then list records of the last one", ZONES, "zoneId", "$['zones'][-1]['id']"),
    ],
)
def test_a_parameter_is_bound_where_name_and_type_agree(
    task: str, output: dict[str, Any], parameter: str, path: str
) -> None:
    plan = bind_steps(plan_task(task), {"s1": output}, {"s2": needing(parameter)})
    assert plan.strategy == "composed"
    assert plan.steps[1].arguments == {parameter: {"$ref": "s1", "path": path}}


@pytest.mark.parametrize(
    ("task", "output", "schema"),
    [
        ("list zones, then list records", ZONES, needing("zone_id")),
        ("list zones, then show its id", ZONES, needing("zone_id")),
        ("show zone a, then use its id to list records", ZONE, needing("id", "integer")),
        ("show zone a, then use its serial to list records", ZONE, needing("serial")),
        ("show zone a, then use its id to list records", ZONE, needing("berth_id")),
        ("show zone a; list records", ZONE, needing("id")),
        ("list zones, then for each list records", ZONES, needing("owner")),
        ("show zone a, then use its id to list records", {"type": "object"}, needing("id")),
        ("show zone a, then use its id to list records", ZONE,
         {"type": "object", "properties": {"id": {"type": "string"}}}),
    ],
)  # fmt: skip
def test_a_parameter_is_left_open_where_it_is_not_plain(
    task: str, output: dict[str, Any], schema: dict[str, Any]
) -> None:
    plan = plan_task(task)
    assert bind_steps(plan, {"s1": output}, {"s2": schema}) == plan


ROWS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"id": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("output", "noun", "parameter", "path"),
    [
        (ROWS, ("zone",), "zone_id", "$[*]['id']"),
        (ROWS, ("zone",), "zoneId", "$[*]['id']"),
        ({"type": "object", "properties": {"items": ROWS}}, ("zone",), "zone_id",
         "$['items'][*]['id']"),
        (ROWS, ("berth",), "zone_id", ""),
        (ROWS, ("loan", "of", "zone"), "zone_id", ""),
        (ROWS, (), "zone_id", ""),
        ({"type": "object", "properties": {"owners": ROWS}}, ("zone",), "zone_id", ""),
    ],
)  # fmt: skip
def test_the_id_of_a_row_is_that_of_what_its_tool_lists(
    output: dict[str, Any], noun: tuple[str, ...], parameter: str, path: str
) -> None:
    plan = plan_task("list zones, then for each list records")
    bound = bind_steps(plan, {"s1": output}, {"s2": needing(parameter)}, {"s1": noun})
    made = {parameter: {"$ref": "s1", "path": path}} if path else {}
    assert bound.steps[1].arguments == made


def test_two_results_that_agree_are_no_binding() -> None:
    steps = (Step("s1", "a"), Step("s2", "b"), Step("s3", "c", after=("s1", "s2"), uses="id"))
    plan = Plan(steps, "composed")
    assert bind_steps(plan, {"s1": ZONE, "s2": ZONE}, {"s3": needing("id")}) == plan


def test_an_argument_that_is_there_stays() -> None:
    plan = Plan((Step("s1", "a"), Step("s2", "b", arguments={"id": "x"}, after=("s1",), uses="id")))
    assert bind_steps(plan, {"s1": ZONE}, {"s2": needing("id")}) == plan


def test_all_values_of_a_list_go_into_a_list() -> None:
    schema = {
        "type": "object",
        "properties": {"zone_ids": {"type": "array", "items": {"type": "string"}}},
        "required": ["zone_ids"],
    }
    plan = plan_task("list the zones, then use their ids to list the records")
    bound = bind_steps(plan, {"s1": ZONES}, {"s2": schema})
    assert bound.steps[1].arguments == {"zone_ids": {"$ref": "s1", "path": "$['zones'][*]['id']"}}


def test_a_schema_that_refers_to_itself_is_walked_within_bounds() -> None:
    endless = {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}},
               "$ref": "#/$defs/a"}  # fmt: skip
    plan = plan_task("show zone a, then use its id to list records")
    assert bind_steps(plan, {"s1": endless}, {"s2": needing("id")}) == plan


@pytest.mark.parametrize(
    ("word", "singular"),
    [("zones", "zone"), ("entries", "entry"), ("boxes", "box"), ("status", "status"), ("id", "id")],
)
def test_nouns_in_the_singular(word: str, singular: str) -> None:
    assert to_singular(word) == singular


def test_what_is_ready_follows_from_what_is_done() -> None:
    steps = (
        Step("s1", "a"),
        Step("s2", "b"),
        Step("s3", "c", after=("s1",)),
        Step("s4", "d", arguments={"x": {"$ref": "s2", "path": "$.id"}}),
    )
    plan = Plan(steps, "composed")
    assert [s.id for s in list_ready(plan, frozenset())] == ["s1", "s2"]
    assert [s.id for s in list_ready(plan, frozenset({"s1"}))] == ["s2", "s3"]
    assert [s.id for s in list_ready(plan, frozenset({"s1", "s2"}))] == ["s3", "s4"]
    assert list_ready(plan, frozenset({"s1", "s2", "s3", "s4"})) == ()
