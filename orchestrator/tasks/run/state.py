"""The state of a task run as its checkpoints keep it: plain JSON values, a step by its id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypedDict

from orchestrator.calls import split_tool_name
from orchestrator.tasks.model import Plan, Step

MAX_STEPS = 10
MAX_CALLS = 30
"""Calls that a run and those before it, which it continues, may make in all."""
MAX_TOKENS = 60_000
"""Tokens that a run may ask a model for; what its job may cost is bounded besides."""

Choice = Literal["given", "act", "confirm", "choose", "adapt", "forge"]
StepEnd = Literal["done", "failed", "pending", "refused"]


class StepState(TypedDict, total=False):
    """One step. `tool` is `server.tool` once it is known, `choice` how it came to be: `given` by
    whoever asked, else as it was decided. `arguments` may hold references, `resolved` are those
    that are sent, `each` those of every call where a step makes one for each value; `doubts` say
    why a reading has to be shown first. `taken` are the arguments whose values are of earlier
    answers of the session, with the servers that gave those and their places. `read_by` is who
    read them out of the task, "" where whoever asked gave tool and arguments. `shown`: a
    confirmation showed the call. `failed_tool` was tried for it before. `looks_up`: an id that the
    task says by a name may be looked up unasked; `found_by` is the step that finds it, `finds` the
    one that a lookup is for, `named` says what was looked up. `repeats`: its arguments
    are those of an earlier call. `page` is what has to be said of a list that it answered.
    `told`: an earlier run told its answer. `spared`: its call leaves out what its description
    requires, since the words ask for all; `insists`: the API would not have that. `end` is how it
    ended.
    """

    id: str
    task: str
    after: list[str]
    uses: str
    pick: str
    each: list[dict[str, Any]]
    doubts: list[str]
    tool: str
    choice: Choice
    candidates: list[dict[str, Any]]
    arguments: dict[str, Any]
    resolved: dict[str, Any]
    origins: dict[str, str]
    taken: dict[str, dict[str, list[str]]]
    evidence: dict[str, str]
    missing: list[str]
    reasons: list[str]
    server: str
    extended: bool
    failed_tool: str
    looks_up: bool
    found_by: str
    finds: str
    named: str
    page: str
    told: bool
    repeats: bool
    spared: bool
    insists: bool
    read_by: str
    why: str
    shown: bool
    ready: bool
    rounds: int
    made: list[str]
    attempts: int
    repairs: int
    version: int
    failure: str
    status: int | None
    end: StepEnd
    call: str
    trust: str
    milliseconds: float
    reply: dict[str, Any]


class RunState(TypedDict, total=False):
    """One run. `current` is the step that is prepared, `wave` are those that are carried out side
    by side, `calls` counts calls, `forged` are the servers made, `made` is one that was made for
    the task just before, `result` is what the run ends with. The rest is as the job's request says.
    """

    task: str
    tool: str
    arguments: dict[str, Any]
    source: str
    reason: str
    session: str
    continues: str
    approval: str
    made: str
    strategy: str
    steps: dict[str, StepState]
    current: str
    wave: list[str]
    calls: int
    forged: list[str]
    adapted: list[str]
    replanned: bool
    result: dict[str, Any]


REQUESTED = (
    "task",
    "tool",
    "arguments",
    "source",
    "reason",
    "session",
    "continues",
    "approval",
    "made",
)
"""What of a job's request a run begins with."""


def build_steps(plan: Plan) -> dict[str, StepState]:
    """A plan's steps at their beginning, in its order."""
    return {step.id: _begin_step(step) for step in plan.steps[:MAX_STEPS]}


def _begin_step(step: Step) -> StepState:
    begun: StepState = {
        "id": step.id,
        "task": step.task,
        "after": list(step.after),
        "uses": step.uses,
        "pick": step.pick,
        "tool": step.tool,
        "arguments": dict(step.arguments),
    }
    return begun


def get_step(state: RunState) -> StepState:
    """The step that is prepared."""
    return state["steps"][state["current"]]


def change_step(state: RunState, identity: str, **changes: Any) -> dict[str, StepState]:
    """The steps, with one of them changed."""
    changed: Any = {**state["steps"][identity], **changes}
    return {**state["steps"], identity: changed}


def find_ready(state: RunState) -> Iterator[StepState]:
    """The steps that nothing stands before any more and that are not prepared, in order."""
    steps = state["steps"]
    for step in steps.values():
        waits = any(steps[before].get("end") != "done" for before in step["after"])
        if not step.get("end") and not step.get("ready") and not waits:
            yield step


def list_results(state: RunState) -> Mapping[str, Any]:
    """What the steps that are done came to, by id: what `extract_value` takes of each."""
    return {
        step["id"]: extract_value(step["reply"].get("result") or {})
        for step in state["steps"].values()
        if step.get("end") == "done" and step.get("reply")
    }


def extract_value(result: Mapping[str, Any]) -> Any:
    """What of a tool's result a reference points into: its body where an API answered."""
    content = result.get("structuredContent")
    if isinstance(content, Mapping) and "body" in content:
        return content["body"]
    return content if content is not None else result.get("content")


def get_server(tool: str) -> str:
    """The server of a `server.tool`, "" for none."""
    parts = split_tool_name(tool)
    return parts[0] if parts else ""
