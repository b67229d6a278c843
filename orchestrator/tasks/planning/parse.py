"""A model's plan at the border: its JSON becomes a `Plan`, or located problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from orchestrator.tasks.model import Plan, Step, Strategy
from orchestrator.tasks.planning.references import (
    ReferenceCode,
    check_references,
    find_references,
)
from orchestrator.tasks.planning.split import MAX_STEPS
from sandbox import exactjson

MAX_TEXT = 4_000
MAX_BYTES = 64 * 1024
# r1, r2… name results that a session keeps.
_ID = re.compile(r"(?!r[0-9]+\Z)[A-Za-z][A-Za-z0-9_]{0,19}\Z")
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,39}\.[A-Za-z0-9_.-]{1,128}\Z")

ANSWER: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_STEPS,
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "s1, s2, ..."},
                    "task": {"type": "string", "description": "what this step does, in words"},
                    "tool": {"type": "string", "description": "server.tool, if it is known"},
                    "arguments": {
                        "type": "object",
                        "description": 'values, or {"$ref": "s1", "path": "$.zones[0].id"}',
                    },
                    "after": {"type": "array", "items": {"type": "string"}},
                    "each": {"type": "boolean", "description": "one call for each value of a path"},
                },
                "required": ["id", "task"],
            },
        }
    },
    "required": ["steps"],
}
"""The JSON schema of a plan, for an endpoint and for a client's model."""

PlanCode = Literal[
    "not_an_object",
    "no_steps",
    "too_many_steps",
    "too_large",
    "bad_step",
    "bad_id",
    "same_id",
    "no_task",
    "task_too_long",
    "bad_tool",
    "bad_arguments",
    "bad_after",
    "unknown_step",
    "cycle",
]


@dataclass(frozen=True)
class PlanProblem:
    """What is wrong with a plan: a JSON pointer into it, a code, and the name that it is about."""

    where: str
    code: PlanCode | ReferenceCode
    name: str = ""


def parse_plan(value: Any) -> Plan | tuple[PlanProblem, ...]:
    """A plan in the form of `ANSWER`, its steps in an order in which each follows those that it
    needs; or what is wrong with it.
    """
    listed = value.get("steps") if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        return (PlanProblem("", "not_an_object" if listed is None else "no_steps"),)
    if not listed:
        return (PlanProblem("/steps", "no_steps"),)
    if len(listed) > MAX_STEPS:
        return (PlanProblem("/steps", "too_many_steps", str(len(listed))),)
    if not _is_small(listed):
        return (PlanProblem("/steps", "too_large"),)
    problems = [p for at, step in enumerate(listed) for p in _check_step(f"/steps/{at}", step)]
    if problems:
        return tuple(problems)
    problems = [*_check_ids(listed)]
    if problems:
        return tuple(problems)
    return _order_parsed(tuple(map(_build_step, listed)))


def _is_small(value: Any) -> bool:
    try:
        return len(exactjson.dumps(value)) <= MAX_BYTES
    except (TypeError, ValueError, RecursionError):
        return False


def _check_step(where: str, step: Any) -> Iterator[PlanProblem]:
    if not isinstance(step, Mapping):
        yield PlanProblem(where, "bad_step")
        return
    name, task, tool = step.get("id"), step.get("task"), step.get("tool") or ""
    if not isinstance(name, str) or not _ID.match(name):
        yield PlanProblem(f"{where}/id", "bad_id", str(name)[:40])
    if not isinstance(task, str) or not task.strip():
        yield PlanProblem(f"{where}/task", "no_task")
    elif len(task) > MAX_TEXT:
        yield PlanProblem(f"{where}/task", "task_too_long")
    if not isinstance(tool, str) or (tool and not _TOOL.match(tool)):
        yield PlanProblem(f"{where}/tool", "bad_tool", str(tool)[:80])
    arguments, after = step.get("arguments"), step.get("after")
    if arguments is not None and not isinstance(arguments, Mapping):
        yield PlanProblem(f"{where}/arguments", "bad_arguments")
    named = isinstance(after, list) and all(isinstance(each, str) for each in after)
    if after is not None and not named:
        yield PlanProblem(f"{where}/after", "bad_after")
    if not isinstance(step.get("each", False), bool):
        yield PlanProblem(f"{where}/each", "bad_step")


def _check_ids(listed: Sequence[Mapping[str, Any]]) -> Iterator[PlanProblem]:
    known: set[str] = set()
    for at, step in enumerate(listed):
        if step["id"] in known:
            yield PlanProblem(f"/steps/{at}/id", "same_id", step["id"])
        known.add(step["id"])
    for at, step in enumerate(listed):
        others = frozenset(known - {step["id"]})
        for number, name in enumerate(step.get("after") or ()):
            if name not in others:
                yield PlanProblem(f"/steps/{at}/after/{number}", "unknown_step", name[:40])
        for found in check_references(step.get("arguments") or {}, others):
            where = f"/steps/{at}/arguments{found.where}"
            yield PlanProblem(where, found.code, found.step[:40])


def _build_step(step: Mapping[str, Any]) -> Step:
    arguments = dict(step.get("arguments") or {})
    needed = (*(step.get("after") or ()), *(each.step for each in find_references(arguments)))
    return Step(
        id=step["id"],
        task=step["task"].strip(),
        tool=step.get("tool") or "",
        arguments=arguments,
        after=tuple(dict.fromkeys(needed)),
        pick="each" if step.get("each") else "",
    )


def _order_parsed(steps: tuple[Step, ...]) -> Plan | tuple[PlanProblem, ...]:
    plan = Plan(steps, _find_strategy(steps))
    ordered = order_steps(plan)
    if len(ordered) == len(steps):
        return replace(plan, steps=ordered)
    done = {step.id for step in ordered}
    return tuple(
        PlanProblem(f"/steps/{at}/after", "cycle", step.id)
        for at, step in enumerate(steps)
        if step.id not in done
    )


def _find_strategy(steps: tuple[Step, ...]) -> Strategy:
    if len(steps) == 1:
        return "single"
    passes = any(find_references(step.arguments) for step in steps)
    return "composed" if passes else "sequential"


def order_steps(plan: Plan) -> tuple[Step, ...]:
    """The steps, each behind those that it needs, otherwise as they are listed; without those that
    wait for each other.
    """
    ordered: dict[str, Step] = {}
    for _ in plan.steps:
        ready = next(
            (s for s in plan.steps if s.id not in ordered and {*list_needs(s)} <= ordered.keys()),
            None,
        )
        if ready is None:
            break
        ordered[ready.id] = ready
    return tuple(ordered.values())


def list_ready(plan: Plan, done: frozenset[str]) -> tuple[Step, ...]:
    """The steps that may run at once: not done, and all that they need is."""
    return tuple(s for s in plan.steps if s.id not in done and {*list_needs(s)} <= done)


def list_needs(step: Step) -> tuple[str, ...]:
    """The steps whose results a step needs, or behind which it comes."""
    named = (each.step for each in find_references(step.arguments))
    return tuple(dict.fromkeys((*step.after, *named)))
