"""Questions of runs: short, and said once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.results.shape import count_tokens
from orchestrator.tasks.model import Question
from orchestrator.tasks.run.questions import (
    build_choice,
    build_missing,
    build_plan_question,
    encode_question,
)
from orchestrator.views import render_task_result

MANY = {f"argument_{n}": {"type": "integer", "description": "d" * 300} for n in range(200)}
SCHEMA = {"type": "object", "properties": MANY, "required": ["argument_199"]}
CANDIDATES: list[dict[str, Any]] = [
    {
        "tool": f"server_{n}.tool",
        "call_with": "call_read",
        "server": "A server with a title",
        "trust": "standard",
        "description": "long " * 500,
        "inputSchema": SCHEMA,
    }
    for n in range(5)
]
STEPS = [{"id": f"s{n}", "task": "do it " * 600, "after": []} for n in range(10)]


@pytest.mark.parametrize(
    "question",
    [
        build_choice("s1", 0, "find it " * 400, CANDIDATES),
        build_missing("s1", 0, "a.b", SCHEMA, {}, ["argument_199"], ""),
        build_plan_question(0, STEPS, {f"s{n}": CANDIDATES[:3] for n in range(10)}),
    ],
    ids=["choice", "missing", "plan"],
)
def test_a_question_is_given_to_clients_in_at_most_1500_tokens(question: Question) -> None:
    told = {"state": "asking", "run": "0" * 16, **encode_question(question, "0" * 16)}
    shown = render_task_result(told)["structuredContent"]
    assert count_tokens(json.dumps(shown, ensure_ascii=False)) <= 1500


def test_what_is_required_of_a_tool_is_shown_of_it_however_much_else_it_takes() -> None:
    shown = build_missing("s1", 0, "a.b", SCHEMA, {}, ["argument_199"], "").shown
    assert shown["inputSchema"]["properties"]["argument_199"] == {"type": "integer"}
    assert shown["inputSchema"]["required"] == ["argument_199"]


@pytest.mark.parametrize("task", ["what is it?", "list them.", "do it!", "list them"])
def test_a_tasks_own_marks_are_not_doubled(task: str) -> None:
    asked = build_choice("s1", 0, task, CANDIDATES[:1]).text
    assert asked.startswith(f"Which tool does \u201c{task.rstrip('?.!')}\u201d? One of ")
