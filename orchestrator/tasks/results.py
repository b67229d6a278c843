"""Results of task runs as their jobs keep them: plain JSON values that say in `state` what came.

`orchestrator.views.task_results.render_task_result` shows them to clients. The states are
`suggested`, `called`, `pending`, `refused`, `misnamed` and `wanting`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from orchestrator.calls import Pending, RefusedCall, Reply
from orchestrator.gateway.exchange_json import pending_json
from orchestrator.tasks.suggestions import Suggestion
from sandbox.bundle.model import ToolDefinition

MAX_READ = 2_000

TaskResult = dict[str, Any]
Given = Literal["", "some", "all"]
"""How many of a call's arguments were given, and not read out of the task."""


def build_suggestions(
    found: Mapping[str, Sequence[Suggestion]], services: Sequence[str] = ()
) -> TaskResult:
    """The tools that fit the steps of a task, which somebody has to choose from; where there are
    none, the lines that say which `services` could be forged.
    """
    steps = [
        {"step": step, "candidates": [each.to_json() for each in fitting]}
        for step, fitting in found.items()
    ]
    if not any(step["candidates"] for step in steps):
        return {"state": "suggested", "candidates": [], "services": list(services)}
    more = {"steps": steps} if len(steps) > 1 else {}
    return {"state": "suggested", "candidates": steps[0]["candidates"], **more}


def build_call_result(reply: Reply) -> TaskResult:
    """What a call came to."""
    if isinstance(reply, RefusedCall):
        return {"state": "refused", "tool": reply.call.name, "reason": reply.reason}
    if isinstance(reply, Pending):
        return pending_json(reply.approval, reply.reason)
    failure = reply.outcome.failure
    return {
        "state": "called",
        "call": reply.invocation,
        "trust": reply.standing.level,
        "rule": reply.rule,
        "cause": reply.cause,
        "result": dict(reply.outcome.delivered),
        "failure": failure and vars(failure),
    }


def build_unknown_tool(tool: str) -> TaskResult:
    """A tool was named that can be none."""
    return {"state": "misnamed", "tool": tool}


def build_nothing(candidates: Sequence[Mapping[str, Any]], reasons: Sequence[str]) -> TaskResult:
    """The words ask for nothing that could be done; `reasons` are the decision's."""
    shown = [dict(each) for each in candidates]
    return {"state": "suggested", "candidates": shown, "nothing": list(reasons)}


def build_missing_arguments(name: str, tool: ToolDefinition, problem: str) -> TaskResult:
    """A tool needs arguments that nobody gave; `problem` is why the task does not say them."""
    schema = dict(tool.input_schema)
    return {"state": "wanting", "tool": name, "problem": problem, "inputSchema": schema}


def add_reading(
    result: TaskResult,
    tool: str,
    model: str,
    arguments: Mapping[str, Any],
    given: Given = "",
    named: str = "",
    page: str = "",
) -> TaskResult:
    """The result of a call whose arguments a model read out of the task: whoever asked in words is
    to see what became of them. `given` is how many of them whoever asked gave, `named` which id was
    looked up by what name, `page` what has to be said of a list.
    """
    read = json.dumps(arguments, ensure_ascii=False)[:MAX_READ]
    notes = {name: note for name, note in (("named", named), ("page", page)) if note}
    told = {"tool": tool, "model": model, "arguments": read, **notes}
    return {**result, "reading": {**told, "given": given} if given else told}


def add_escalation(result: TaskResult, tool: str, failure: str, attempts: int) -> TaskResult:
    """The result of a call that a person has to look into."""
    return {**result, "given_up": {"tool": tool, "failure": failure, "attempts": attempts}}
