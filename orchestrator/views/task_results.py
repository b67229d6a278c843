"""Results of task runs as MCP tool results, in words for a model or for a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.results.shape import cut_text
from orchestrator.views.replies import (
    build_called_result,
    render_pending,
    render_pending_to_person,
)
from orchestrator.views.results import Result, build_answer, build_refusal, build_text_block
from registry.jobs.jobs import awaits_answer
from registry.models import Job
from sandbox.session.interface import Failure

if TYPE_CHECKING:
    # It stands on jsonschema, which `toolwright show` and `logs` start without.
    from sandbox.schemas.validator import SchemaViolation


MAX_BESIDE, MAX_GIVEN = 4_000, 400
"""Letters of what an earlier step answered, and of what it was called with."""


def render_task_result(value: Mapping[str, Any], *, to_person: bool = False) -> Result:
    """What a task run came to, of what its job keeps (`orchestrator.tasks.results`), in words for
    a model, or for the person who reads them.
    """
    noted = ("reading", "given_up", "beside")
    bare = {name: part for name, part in value.items() if name not in noted}
    state = str(value.get("state"))
    told = _TOLD_TO_PERSONS.get(state) if to_person else None
    result = (told or _TASK_RESULTS.get(state, build_answer))(bare)
    if reading := value.get("reading"):
        note = _render_reading(reading, state)
        result["content"] = [build_text_block(note), *result.get("content", [])]
    if value.get("beside"):
        _add_beside(result, value)
    if lost := value.get("given_up"):
        note = f"{lost['tool']} failed ({lost['failure']}) after {lost['attempts']} attempts; "
        note += "" if to_person else "a person should look at it: "
        note += "`toolwright show` and `toolwright logs`" + (" tell more." if to_person else ".")
        result["content"] = [*result.get("content", []), build_text_block(note)]
    return result


def _add_beside(result: Result, value: Mapping[str, Any]) -> None:
    """Put what other steps answered before the answer of the last: each of them was asked for."""
    steps = [step for step in value["steps"] if step["id"] in value["beside"]]
    told = [build_text_block(f"{step['task']}: {_render_step(step)}") for step in steps]
    result["content"] = [*told, *result.get("content", [])]
    if value.get("state") in ("called", "answered") and not result.get("isError"):
        ended = [step for step in value["steps"] if step not in steps and "result" in step][-1:]
        result["structuredContent"] = {"answers": [_encode_step(step) for step in steps + ended]}


def _encode_step(step: Mapping[str, Any]) -> dict[str, Any]:
    came = step["result"] if "result" in step else step.get("summary", "")
    content = came.get("structuredContent", came) if isinstance(came, Mapping) else came
    body = content["body"] if isinstance(content, Mapping) and "body" in content else content
    page = {"page": step["page"]} if step.get("page") else {}
    return {"task": step["task"], "tool": step["tool"], "answer": body, **page}


def _render_step(step: Mapping[str, Any]) -> str:
    given = json.dumps(step["arguments"], ensure_ascii=False)
    named = f" with {cut_text(given, MAX_GIVEN)}" if step["arguments"] else ""
    answer = json.dumps(_encode_step(step)["answer"], ensure_ascii=False)
    page = f" {step['page']}" if step.get("page") else ""
    return f"{step['tool']}{named} answered {cut_text(answer, MAX_BESIDE)}{page}"


def _render_reading(reading: Mapping[str, Any], state: str) -> str:
    """With what a tool was called, or would be: what waits or was refused was not called."""
    done = _CALLED.get(state, "was to be called")
    page = f" {reading['page']}" if reading.get("page") else ""
    if reading["arguments"] == "{}":
        return f"{reading['tool']} {done} without arguments.{page}"
    named = f" ({reading['named']})" if reading.get("named") else ""
    told = f"{reading['tool']} {done} with {_tell_reader(reading)}: {reading['arguments']}{named}"
    return f"{told}.{page}" if page else told


_CALLED: Mapping[str, str] = {
    "called": "was called",
    "answered": "was called",
    "pending": "is to be called",
}


def _tell_reader(reading: Mapping[str, Any]) -> str:
    """Whose arguments they are: read out of the task, or given by whoever answered."""
    if reading.get("given") == "all":
        return "the arguments given"
    more = " and the answer given" if reading.get("given") else ""
    return f"what {reading['model']} read out of the task{more}"


def list_called_tools(value: Any) -> tuple[str, ...]:
    """The tools (`server.tool`) that a task run called, in their order, of what its job keeps."""
    steps = value.get("steps") if isinstance(value, Mapping) else None
    listed = [step for step in steps or () if isinstance(step, Mapping)]
    return tuple(str(step["tool"]) for step in listed if step.get("tool"))


def _build_suggested_result(value: Mapping[str, Any]) -> Result:
    if "nothing" in value:
        pointing = "deictic" in value["nothing"]
        return build_answer(dict(value), _NOTHING_MEANT if pointing else _NOTHING_ASKED)
    shown = {"candidates": value["candidates"], "none": "forge"}
    if "steps" in value:
        shown["steps"] = value["steps"]
    services = value.get("services") or ()
    if services:
        shown["services"] = services
    told = "\n".join((_NOTHING_CAN, *([_MAY_BE_MADE] if services else ()), *services))
    return build_answer(shown, "" if value["candidates"] or "steps" in value else told)


def _restore_called_result(value: Mapping[str, Any]) -> Result:
    names = ("call", "trust", "rule", "cause")
    failure = Failure(**value["failure"]) if value["failure"] else None
    meta = {name: value[name] for name in names if value[name]}
    return build_called_result(value["result"], failure, meta)


def _build_refused_result(value: Mapping[str, Any]) -> Result:
    return build_refusal(f"{value['tool']}: {value['reason']}", state="refused")


def _build_misnamed_result(value: Mapping[str, Any]) -> Result:
    return build_refusal(f"{value['tool']!r} is not of the form server.tool")


def _build_wanting_result(value: Mapping[str, Any]) -> Result:
    text = f"{value['tool']} needs arguments, and {value['problem']} Give them in `arguments`."
    return build_refusal(text, inputSchema=value["inputSchema"])


_NOTHING_ASKED = (
    "The words ask for nothing that a tool could do, and nothing was done. To have something done, "
    "say what; or choose a tool with `tool`."
)
_NOTHING_MEANT = (
    "It is not clear what the words point at, and nothing was done. Say by its name or id what is "
    "meant; with `session` the same as before, words can point at that session's answers."
)
_NOTHING_CAN = (
    "No registered server can do this. Call `do` again with tool=none and a source (the API's URL "
    "or host; without one it asks for code), or call `forge`."
)
_MAY_BE_MADE = "Of the public APIs that are known, one of these may be meant:"


def _build_asking_result(value: Mapping[str, Any]) -> Result:
    return build_answer(value, render_question(value))


def render_question(value: Mapping[str, Any]) -> str:
    """A question and how it is answered, in one sentence each."""
    answer = json.dumps(value["answer_with"], ensure_ascii=False)
    text = str(value["question"]["text"])
    between = "\n" if "\n" in text else " "
    return f"{text}{between}To go on, call `do` with {answer}"


_TASK_RESULTS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "suggested": _build_suggested_result,
    "called": _restore_called_result,
    "answered": _restore_called_result,
    "asking": _build_asking_result,
    "pending": render_pending,
    "refused": _build_refused_result,
    "misnamed": _build_misnamed_result,
    "wanting": _build_wanting_result,
}


def _tell_suggested(value: Mapping[str, Any]) -> Result:
    if "nothing" in value:
        pointing = "deictic" in value["nothing"]
        return build_answer(dict(value), _NOTHING_MEANT_BY if pointing else _NOTHING_ASKED_OF_YOU)
    return _build_suggested_result(value)


def _tell_wanting(value: Mapping[str, Any]) -> Result:
    return build_refusal(
        f"{value['tool']} needs arguments, and {value['problem']}", inputSchema=value["inputSchema"]
    )


_NOTHING_MEANT_BY = (
    "It is not clear what the words point at, and nothing was done. Say by its name or number what "
    "is meant."
)
_NOTHING_ASKED_OF_YOU = (
    "The words ask for nothing that a tool could do, and nothing was done. Say what is to be done."
)
_TOLD_TO_PERSONS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "suggested": _tell_suggested,
    "pending": render_pending_to_person,
    "wanting": _tell_wanting,
}
"""Where the words for a model speak of its tools, or of the person as somebody else."""


def build_answer_refusal(problems: Iterable[SchemaViolation], job: Job) -> Result:
    """The refusal of what does not answer a run's question, which stays as it is."""
    located = [{"pointer": problem.where, "reason": problem.reason} for problem in problems]
    lines = "; ".join(f"{item['pointer']}: {item['reason']}" for item in located)
    asked = dict(job.result) if awaits_answer(job) else {"run": job.id}
    text = f"This is no answer, and nothing was done: {lines}"
    if awaits_answer(job):
        text = f"{text}\n{render_question(asked)}"
    return {**build_refusal(text, problems=located, **asked)}
