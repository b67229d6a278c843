"""What `bench.author` measures with: tasks, hidden checks, drafts and ways to break them."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from bench.author.__main__ import DRAFTS, stored
from bench.author.live import Source, measure_live, summarize_live
from bench.author.operators import OPERATORS, Operator
from bench.author.task import Check, Task
from bench.author.tasks import TASKS
from forge.drafts.brief import EXAMPLE
from tests.world.model import Said, model, said


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_has_checks_enough_of_results_that_differ(task: Task) -> None:
    assert len(task.checks) >= 20
    wanted = {repr((check.result, check.refused)) for check in task.checks}
    assert len(wanted) >= 5


def test_there_are_drafts_of_every_task_and_bad_ones_enough() -> None:
    drafts = list(stored(DRAFTS))
    assert {task.name for _, task, _ in drafts} == {task.name for task in TASKS}
    assert sum("wrong" in given for _, _, given in drafts) >= 15


def test_there_are_ways_enough_to_break_one() -> None:
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS) >= 25


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_what_an_operator_breaks_is_another_draft_whose_code_still_parses(
    operator: Operator,
) -> None:
    good = [{**EXAMPLE}, *(given for _, _, given in stored(DRAFTS) if "wrong" not in given)]
    broken = [(given, made) for given in good for made in operator.broken(given)]
    assert broken, "it finds nothing to break in any draft"
    for given, made in broken[:5]:
        assert made != given
        ast.parse(made["code"])


def test_a_check_holds_for_its_result_alone() -> None:
    check = Check("t", {}, {"number": 2})
    assert check.holds({"number": 2.0}, "")
    assert not check.holds({"number": 3}, "")
    assert not check.holds({"number": 2}, "tool")
    refused = Check("t", {}, refused=True)
    assert refused.holds(None, "arguments")
    assert not refused.holds({}, "")
    assert not refused.holds(None, "bug")


@pytest.mark.parametrize("source", ["endpoint", "sampling"])
def test_a_live_run_says_what_a_model_came_to(any_engine: str, source: Source) -> None:
    (task,) = [task for task in TASKS if task.name == "durations"]
    draft = json.loads((DRAFTS / "durations-1.json").read_text())
    specification = {key: draft[key] for key in ("tools", "cases", "tests", "why")}
    # What no test asks for, without which a specification is sent back.
    specification["cases"] += [
        {"tool": check.tool, "arguments": check.arguments, "result": check.result}
        for check in task.checks
        if not check.refused
    ]

    def answer(request: Mapping[str, Any]) -> Said:
        prompt = request["messages"][-1]["content"]
        if "no code yet" in prompt:
            return said(specification)
        if prompt.startswith("# Read a task"):
            return said({"claims": []})
        return said({"code": draft["code"], "why": "so it goes"})

    with model(answer) as here:
        given = {"OPENAI_BASE_URL": here.url, "OPENAI_MODEL": "m-1", "OPENAI_API_KEY": "k"}
        (found,) = asyncio.run(measure_live(any_engine, [task], given, source))
        assert len(here.asked) == 3
    assert found.right, found
    assert (found.drafts, found.questions, found.cost) == (1, 3, 0.0)
    # A client's model tells no tokens: they are estimated.
    assert source == "sampling" or (found.tokens_in, found.tokens_out) == (300, 30)
    assert summarize_live([found]).startswith("1 tasks: 1 registered, 1 right")
