"""Known workflows: the plan of an earlier run that was done, for a task of the same steps.

What is taken of it is how the steps hang together: tools, order and references. Values are those of
the task that is asked for, none of the earlier one, which may have been another session's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.tasks.model import REF, Plan
from orchestrator.tasks.planning.parse import parse_plan
from registry.models import Job

MAX_RUNS = 50
"""The newest runs that are looked through."""
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|\S*[0-9@/]\S*")


def find_known_plan(
    task: str, plan: Plan, runs: Iterable[Job], knows: Callable[[str], bool]
) -> Plan | None:
    """The plan of the newest run that did a task of the same words but for values; None where
    there is none, or one of its tools is gone (`knows`). Pure.
    """
    shape = _generalize(task)
    for run in runs:
        if _generalize(str(run.request.get("task", ""))) != shape:
            continue
        steps = _drop_lookups(_list_done(run))
        if len(steps) != len(plan.steps):
            continue
        made = parse_plan({"steps": _adapt_steps(plan, steps)})
        if isinstance(made, Plan) and all(knows(step.tool) for step in made.steps):
            return replace(made, strategy="known")
    return None


def _list_done(run: Job) -> Sequence[Mapping[str, Any]]:
    """The steps of a run that did all of them; () for any other."""
    result = run.result if run.kind == "do" and isinstance(run.result, Mapping) else {}
    steps = result.get("steps") if result.get("state") == "answered" else None
    listed = steps if isinstance(steps, list) else []
    return listed if all(step.get("state") == "done" for step in listed) else ()


def _drop_lookups(steps: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The steps without the reads that found an id, and without references to those: what a task
    names is looked up anew.
    """
    found = {step["id"] for step in steps if step.get("finds")}
    return [
        {
            **step,
            "after": [name for name in step.get("after") or () if name not in found],
            "planned": {
                name: value
                for name, value in (step.get("planned") or {}).items()
                if not (isinstance(value, Mapping) and value.get(REF) in found)
            },
        }
        for step in steps
        if step["id"] not in found
    ]


def _adapt_steps(plan: Plan, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": done["id"],
            "task": step.task,
            "tool": done["tool"],
            "after": list(done.get("after") or ()),
            "each": bool(done.get("each")),
            "arguments": _take_references(done),
        }
        for step, done in zip(plan.steps, steps, strict=True)
    ]


def _take_references(done: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were references to results of earlier steps, and no values."""
    planned = done.get("planned") or {}
    return {k: v for k, v in planned.items() if isinstance(v, Mapping) and REF in v}


def _generalize(task: str) -> str:
    """A task's words without its values: what is quoted, has a digit, is a path or an address."""
    return " ".join(_VALUE.sub("#", task.lower()).split())
