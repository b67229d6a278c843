from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.model import Plan, Step
from orchestrator.tasks.planning.parse import ANSWER, PlanProblem, list_needs, parse_plan
from sandbox.schemas.validator import get_checker

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=15,
)  # fmt: skip


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "task": f"do {name}", **more}


def problems(*steps: Any) -> tuple[PlanProblem, ...]:
    found = parse_plan({"steps": [*steps]})
    assert isinstance(found, tuple)
    return found


def test_a_plan_is_read_with_its_steps_in_order() -> None:
    found = parse_plan(
        {
            "steps": [
                step("s3", after=["s2"], tool="dns.list_records", each=True,
                     arguments={"zone": {"$ref": "s1", "path": "$.zones[*].id"}}),
                step("s2"),
                step("s1", tool="dns.list_zones", arguments={}),
            ]
        }
    )  # fmt: skip
    assert isinstance(found, Plan)
    assert found.strategy == "composed"
    assert [s.id for s in found.steps] == ["s2", "s1", "s3"]
    last = found.steps[-1]
    assert last == Step(
        "s3",
        "do s3",
        "dns.list_records",
        {"zone": {"$ref": "s1", "path": "$.zones[*].id"}},
        ("s2", "s1"),
        pick="each",
    )
    assert list_needs(last) == ("s2", "s1")


def test_plans_without_data_flow_are_single_or_sequential() -> None:
    one, two = parse_plan({"steps": [step("a")]}), parse_plan({"steps": [step("a"), step("b")]})
    assert isinstance(one, Plan)
    assert isinstance(two, Plan)
    assert (one.strategy, two.strategy) == ("single", "sequential")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([step("a", after=["a"])], [("/steps/0/after/0", "unknown_step")]),
        ([step("a", after=["b"])], [("/steps/0/after/0", "unknown_step")]),
        (
            [step("a", after=["b"]), step("b", after=["a"])],
            [("/steps/0/after", "cycle"), ("/steps/1/after", "cycle")],
        ),
        (
            [step("a"), step("b", arguments={"x": {"$ref": "c"}}), step("c", after=["b"])],
            [("/steps/1/after", "cycle"), ("/steps/2/after", "cycle")],
        ),
        ([step("a"), step("a")], [("/steps/1/id", "same_id")]),
        ([step("a b")], [("/steps/0/id", "bad_id")]),
        ([{"task": "x"}], [("/steps/0/id", "bad_id")]),
        ([{"id": "a"}], [("/steps/0/task", "no_task")]),
        ([step("a", task="  ")], [("/steps/0/task", "no_task")]),
        ([step("a", task="x" * 4_001)], [("/steps/0/task", "task_too_long")]),
        ([step("a", tool="no tool")], [("/steps/0/tool", "bad_tool")]),
        ([step("a", tool=7)], [("/steps/0/tool", "bad_tool")]),
        ([step("a", arguments=[1])], [("/steps/0/arguments", "bad_arguments")]),
        ([step("a", after="b")], [("/steps/0/after", "bad_after")]),
        ([step("a", after=[1])], [("/steps/0/after", "bad_after")]),
        ([step("a", each="yes")], [("/steps/0/each", "bad_step")]),
        (["list zones"], [("/steps/0", "bad_step")]),
        (
            [step("a", arguments={"x": [{"$ref": "z"}]})],
            [("/steps/0/arguments/x/0", "unknown_step")],
        ),
        (
            [step("a"), step("b", arguments={"x": {"$ref": "a", "path": "$..id"}})],
            [("/steps/1/arguments/x", "unbounded_path")],
        ),
        (
            [step("a"), step("b", arguments={"x": {"$ref": "a", "path": "id"}})],
            [("/steps/1/arguments/x", "bad_path")],
        ),
        ([step(f"s{n}") for n in range(11)], [("/steps", "too_many_steps")]),
        ([step("a", arguments={"x": "y" * 70_000})], [("/steps", "too_large")]),
        ([], [("/steps", "no_steps")]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_is_located(
    steps: list[Any], expected: list[tuple[str, str]]
) -> None:
    assert [(each.where, each.code) for each in problems(*steps)] == expected


def test_ten_steps_are_a_plan() -> None:
    assert isinstance(parse_plan({"steps": [step(f"s{n}") for n in range(10)]}), Plan)


@pytest.mark.parametrize("value", [None, [], "steps", 7, {}, {"steps": "a"}, {"steps": {}}])
def test_what_is_no_plan_is_told(value: Any) -> None:
    assert isinstance(parse_plan(value), tuple)


@given(JSON)
def test_any_value_is_a_plan_or_has_problems(value: Any) -> None:
    for each in (value, {"steps": value}, {"steps": [value]}):
        found = parse_plan(each)
        assert isinstance(found, Plan) or found
        if isinstance(found, Plan):
            assert get_checker(ANSWER).find_problem(each) is None


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=10))
def test_steps_follow_those_that_they_need_or_there_is_a_cycle(needed: list[list[int]]) -> None:
    names = [f"s{n}" for n in range(len(needed))]
    steps = [
        step(name, after=[f"s{n}" for n in after if n < len(needed) and f"s{n}" != name])
        for name, after in zip(names, needed, strict=True)
    ]
    found = parse_plan({"steps": steps})
    if isinstance(found, Plan):
        places = {s.id: at for at, s in enumerate(found.steps)}
        assert len(places) == len(steps)
        assert all(places[a] < places[s.id] for s in found.steps for a in s.after)
    else:
        assert {each.code for each in found} == {"cycle"}
