"""The outcome of a run, as its job keeps it: plain JSON values that say in `state` what came.

The states are those of `orchestrator.tasks.results`, `asking` (a question is open), `answered` (the
steps that words asked for are done) and `escalated` (a person has to look into it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.results.shape import cut_sample, cut_text, measure_json, write_json
from orchestrator.tasks.planning.references import find_references
from orchestrator.tasks.results import MAX_READ, Given, TaskResult, add_reading
from orchestrator.tasks.run.flow import holds_reference
from orchestrator.tasks.run.state import RunState, StepState
from orchestrator.tasks.run.thinking import CLIENT, RULES

MAX_STEP_RESULT = 20_000
MAX_ANSWER = 700_000
"""The most bytes of an answer's JSON with which a run is kept: its row takes 1 MiB, with steps."""
MAX_SAMPLE = 16_000
MAX_ORIGIN = 600
PERSONS = frozenset({"terminal", "page"})
"""Who answers a run as a person (`registry.jobs.jobs.JobTable.answer`)."""


def build_outcome(state: RunState, next_run: str = "") -> TaskResult:
    """What a run ends with: the answer of its last step, or of the one that ended it. `beside` are
    other steps whose answers were asked for.
    """
    last = _find_telling(state)
    reply = last.get("reply") or {}
    value: TaskResult = {
        **reply,
        "strategy": state.get("strategy", "single"),
        "steps": list_steps(state),
        **_bound_answer(reply.get("result")),
    }
    if last.get("end") == "done" and last.get("choice") != "given":
        value["state"] = "answered"
    if state.get("forged"):
        value["forged"] = list(state["forged"])
    left = [s["task"] for s in state["steps"].values() if not s.get("end")]
    if left and last.get("end") != "done":
        value["left"] = left
    if next_run:
        value["next"] = next_run
    if beside := _list_beside(state, last):
        value["beside"] = beside
    if last.get("read_by") and last.get("tool"):
        told = last.get("resolved") or {}
        given = _count_given(last, told)
        more = (last.get("named", ""), last.get("page", ""))
        value = add_reading(value, last["tool"], find_reader(last), told, given, *more)
    return value


def _list_beside(state: RunState, last: StepState) -> list[str]:
    """The steps of this run whose answers are of use by themselves: no other step goes on with
    them.
    """
    steps = list(state["steps"].values())
    used = {each.step for step in steps for each in find_references(step.get("arguments") or {})}
    return [
        step["id"]
        for step in steps
        if step.get("end") == "done"
        and step["id"] not in {*used, last["id"]}
        and not (step.get("finds") or step.get("told"))
        and (step.get("reply") or {}).get("result") is not None
    ]


def _bound_answer(result: Any) -> dict[str, Any]:
    """A reply's answer as a run is kept with it: a small one under `answer` too, of one that is too
    large its beginning, as a row that does not take it would lose all of the run.
    """
    size = measure_json(result)
    if size <= MAX_STEP_RESULT:
        return {"answer": result}
    if size <= MAX_ANSWER or not isinstance(result, Mapping):
        return {"result": result}
    value = result.get("structuredContent")
    sample = cut_sample(result.get("content") if value is None else value, MAX_SAMPLE)
    note = (
        f"The answer is too large to be kept with a task ({size:,} bytes); this is its beginning. "
        "Ask for less, such as a page or a filter; a read can be called itself, which gives it all."
    )
    told = (note, cut_text(write_json(sample), MAX_SAMPLE))
    kept = {
        "content": [{"type": "text", "text": text} for text in told],
        "structuredContent": {"cut": True, "sample": sample},
    }
    return {"result": {**kept, **({"isError": True} if result.get("isError") else {})}}


def find_reader(step: StepState) -> str:
    """Who read a step's arguments: rules, where whoever asked chose the tool alone."""
    read_by, origins = step.get("read_by", ""), step.get("origins") or {}
    by_rules = set(origins.values()) & {"task", "default", "example", "memory"}
    return RULES if read_by == CLIENT and by_rules else read_by


def explain_arguments(step: StepState, *, by_person: bool) -> str:
    """Where the arguments of a call come from, for who decides on it; "" where they were given with
    the task. `by_person`: a person gave every answer, and no client's model.
    """
    reader = find_reader(step)
    if not reader:
        return ""
    arguments = step.get("resolved") or {}
    given, origins = _find_given(step, arguments), step.get("origins") or {}
    if not given:
        return f"arguments read out of the task by {reader}"
    told = f"with the arguments {'that you gave' if by_person else 'that were given'}"
    read = [name for name in arguments if name not in given and origins.get(name) != "step"]
    taken = [name for name in arguments if origins.get(name) == "step"]
    more = [
        f"read out of the task by {reader}: {', '.join(read)}" if read else "",
        f"taken from an earlier step: {', '.join(taken)}" if taken else "",
    ]
    return "; ".join(filter(None, (told, *more)))[:MAX_ORIGIN]


def is_answered_by_person(request: Mapping[str, Any]) -> bool:
    """Whether a person at the terminal or on the page gave every answer that a job got."""
    by = request.get("answered_by")
    return isinstance(by, list) and bool(by) and PERSONS.issuperset(map(str, by))


def _find_given(step: StepState, arguments: Mapping[str, Any]) -> frozenset[str]:
    """The arguments that whoever asked gave."""
    origins = step.get("origins") or {}
    given = {"given", "model"} if step.get("read_by") == CLIENT else {"given"}
    return frozenset(name for name in arguments if origins.get(name) in given)


def _count_given(step: StepState, arguments: Mapping[str, Any]) -> Given:
    """How many of the arguments whoever asked gave."""
    given = _find_given(step, arguments)
    if not given:
        return ""
    return "all" if given >= arguments.keys() else "some"


def list_steps(state: RunState) -> list[dict[str, Any]]:
    """The steps as a result tells of them, in order."""
    return [_describe_step(step) for step in (state.get("steps") or {}).values()]


def list_progress(state: RunState) -> list[dict[str, Any]]:
    """How the steps stand, beside a question: without what they came to."""
    return [
        {"id": step["id"], "tool": step.get("tool", ""), "state": step.get("end", "waiting")}
        for step in (state.get("steps") or {}).values()
    ]


def _describe_step(step: StepState) -> dict[str, Any]:
    reply = step.get("reply") or {}
    result = reply.get("result")
    text = json.dumps(result, ensure_ascii=False)
    small = len(text) <= MAX_STEP_RESULT
    told = {
        "id": step["id"],
        "task": step["task"],
        "after": list(step.get("after") or []),
        "each": step.get("pick") == "each",
        "tool": step.get("tool", ""),
        "arguments": step.get("resolved", step.get("arguments", {})),
        "origins": step.get("origins", {}),
        "call": step.get("call", ""),
        "state": step.get("end", "waiting"),
        "trust": step.get("trust", ""),
        "milliseconds": step.get("milliseconds", 0.0),
    }
    if holds_reference(step.get("arguments")):
        told["planned"] = step["arguments"]
    if step.get("page"):
        told["page"] = step["page"]
    if step.get("finds"):
        told["finds"] = step["finds"]
    if result is None:
        return told
    return {**told, **({"result": result} if small else {"summary": text[:MAX_READ]})}


def _find_telling(state: RunState) -> StepState:
    """The step whose reply is told: the one that ended the run, else the last that is done."""
    steps = list(state["steps"].values())
    ended = [step for step in steps if step.get("end") in ("pending", "failed", "refused")]
    done = [step for step in steps if step.get("end") == "done"]
    return (ended or done[-1:] or steps)[0]
