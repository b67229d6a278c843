"""Arguments of a run's step out of the results of the steps before it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.run.filling import bind_results
from orchestrator.tasks.run.state import StepState
from sandbox.bundle.model import ToolDefinition

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}


def tool(*required: str) -> ToolDefinition:
    takes = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in required},
        "required": [*required],
    }
    answer = {"type": "object", "properties": {"body": NAMED}}
    return ToolDefinition("called", "", takes, answer, "read")


def bound(wanted: str, uses: str, *tasks: str) -> dict[str, Any]:
    """The arguments of a step that needs `wanted`, after steps of these tasks."""
    before = [StepState(id=f"s{number}", task=task) for number, task in enumerate(tasks, 1)]
    step = StepState(
        id="s9",
        task="use it to list the records",
        tool="zones.called",
        after=[each["id"] for each in before],
        uses=uses,
    )
    return dict(bind_results(step, tool(wanted), [(each, tool()) for each in before]))


@pytest.mark.parametrize("wanted", ["name", "zone", "zone_name"])
def test_the_name_in_the_result_of_the_step_about_a_zone_is_that_of_the_zone(wanted: str) -> None:
    assert bound(wanted, "name", "show the zone") == {wanted: {"$ref": "s1", "path": "$['name']"}}


def test_of_two_results_that_of_the_step_about_a_zone_is_taken() -> None:
    arguments = bound("zone", "name", "show the owner", "show the zone")
    assert arguments == {"zone": {"$ref": "s2", "path": "$['name']"}}


@pytest.mark.parametrize(
    ("wanted", "uses", "tasks"),
    [
        ("zone", "name", ("show the owner",)),
        ("berth", "", ("show the zone",)),
        ("name", "name", ("show the zone", "show the owner")),
        ("zone", "name", ()),
    ],
)
def test_what_no_one_result_plainly_has_is_left_open(
    wanted: str, uses: str, tasks: tuple[str, ...]
) -> None:
    assert bound(wanted, uses, *tasks) == {}
