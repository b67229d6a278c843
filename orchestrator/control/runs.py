"""Task runs on the control page, as a thread: what was asked, each step with its call, what the run
asks back, and the answer; of each the time and the cost.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.approvals.settling import WAITS_FOR_YOU, name_state, name_step, present_to_person
from orchestrator.control.answering import ShownQuestion, show_question
from orchestrator.control.clicks import SuggestedService, name_clicks_in, split_services
from orchestrator.control.rooms.approvals import ShownNeed, show_need
from orchestrator.control.rooms.calls import RefusedHost, show_refused_host
from orchestrator.control.rooms.jobs import ShownState, describe_standing, show_state
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.control.values import ShownAnswer, show_answer, show_compact
from orchestrator.views.task_results import render_task_result
from registry.errors import RowNotFound
from registry.jobs.jobs import awaits_answer
from registry.models import ENDED_JOBS, Job
from registry.store import Store

MAX_RUNS = 10
LOOKED_AT = 50
MAX_STEPS = 20
MAX_EVENTS = 10
MAX_STATE = 40
ARGUMENTS = 200
MAX_COMMAND = 2_000
ANSWER_LETTERS = 4_000
UNANSWERED = "It asked something and ended before it was answered. Do it again to answer."
CANCELLED = "It was cancelled."
NOT_DONE = "not done"
THE_REST = "what was left after the write that you decided"


@dataclass(frozen=True)
class RunStep:
    """A step with the tool that it called, and the address of the call ("" where there is none).
    `took` may be "".
    """

    task: ShownText
    tool: ShownText
    tool_address: str
    arguments: ShownText
    state: ShownState | None
    took: str
    call: str


@dataclass(frozen=True)
class RunEvent:
    stage: ShownText
    message: ShownText


@dataclass(frozen=True)
class RunEnd:
    """What a run came to, what it asks, or how it stands: one of these. `need` comes with
    what is told of it; `lacks_tool` is whether no tool fits, `services` are then public APIs that
    may, and `make` leads to where a server is made; `approvals` leads to the write that
    waits, "" where none does; `refused` is the host that it did not reach.
    """

    question: ShownQuestion | None = None
    told: ShownText | str = ""
    need: ShownNeed | None = None
    lacks_tool: bool = False
    services: tuple[SuggestedService, ...] = ()
    make: str = build_address("servers")
    answer: ShownAnswer | None = None
    approvals: str = ""
    refused: RefusedHost | None = None


@dataclass(frozen=True)
class ShownRun:
    """A run. `part` says which part of the task it does where another run did the one before, ""
    for all of it. `facts` are its time and its cost; `events` say how far it came where no step
    does; `commands` do at the terminal what it did.
    """

    id: str
    task: ShownText
    part: str
    state: ShownState
    created: float
    facts: str
    is_open: bool
    has_ended: bool
    steps: tuple[RunStep, ...]
    events: tuple[RunEvent, ...]
    end: RunEnd
    commands: tuple[str, ...]


def view_runs(store: Store, allowed: Collection[str] = ()) -> tuple[ShownRun, ...]:
    """The newest task runs, newest first, given the hosts that are `allowed` by now. The first one
    and those that have not ended are open.
    """
    runs = [job for job in store.jobs.find(limit=LOOKED_AT) if job.kind == "do"][:MAX_RUNS]
    return tuple(
        _show_run(
            present_to_person(job, store),
            store.model_usage.sum_for_job(job.id).cost,
            store,
            _find_refused_host(job, store, allowed),
            is_first=number == 0,
        )
        for number, job in enumerate(runs)
    )


def _find_refused_host(job: Job, store: Store, allowed: Collection[str]) -> RefusedHost | None:
    """The host that a step's call did not reach, the last one of a run that has ended."""
    failed = (str(step.get("call")) for step in iterate_steps(job) if step.get("state") == "failed")
    if job.state not in ENDED_JOBS or not (call := next(iter((*failed,)[::-1]), "")):
        return None
    try:
        return show_refused_host(store.calls.get(call), allowed, job.id)
    except RowNotFound:
        return None


def _show_run(
    job: Job, cost: float, store: Store, refused: RefusedHost | None, *, is_first: bool
) -> ShownRun:
    ended, steps = job.state in ENDED_JOBS, _list_steps(job)
    took = f", {job.updated - job.created:.1f} s" if ended else ""
    return ShownRun(
        job.id,
        cut_text(str(job.request.get("task") or "")),
        THE_REST if job.request.get("continues") else "",
        show_state(job),
        job.created,
        f"{took}{f', cost {cost:.4f}' if cost else ''}",
        is_first or not ended,
        ended,
        steps,
        () if steps else _list_events(job),
        replace(_show_end(job, store), refused=refused),
        _list_commands(job) if ended else (),
    )


def _list_steps(job: Job) -> tuple[RunStep, ...]:
    """The calls that were made, which say how it was done."""
    return tuple(_show_step(step, job.state in ENDED_JOBS) for step in iterate_steps(job))


def iterate_steps(job: Job) -> Iterator[Mapping[str, Any]]:
    """The steps of a run that have a tool, of its first MAX_STEPS."""
    steps = job.result.get("steps") if isinstance(job.result, Mapping) else None
    for step in (steps if isinstance(steps, Sequence) else ())[:MAX_STEPS]:
        if isinstance(step, Mapping) and step.get("tool"):
            yield step


def _list_commands(job: Job) -> tuple[str, ...]:
    """A command for each step that called something, as it was called. It is plain ASCII, so that
    what is copied is what is seen.
    """
    commands = (
        shlex.join(
            ["toolwright", "call", str(step["tool"]), json.dumps(step.get("arguments") or {})]
        )
        for step in iterate_steps(job)
        if step.get("call") or step.get("state") == "pending"
    )
    return tuple(each for each in commands if len(each) <= MAX_COMMAND and each.isascii())


def _list_events(job: Job) -> tuple[RunEvent, ...]:
    if awaits_answer(job) or job.state == "cancelled":
        # Its last event is the question, which stands in the form.
        return ()
    return tuple(
        RunEvent(cut_text(event.stage), cut_text(event.message))
        for event in job.log[-MAX_EVENTS:]
        if event.message
    )


def _show_step(step: Mapping[str, Any], has_ended: bool) -> RunStep:
    took, tool, state = step.get("milliseconds"), str(step["tool"]), str(step.get("state", ""))
    given, call = step.get("arguments") or {}, str(step.get("call") or "")
    server, _, name = tool.partition(".")
    return RunStep(
        cut_text(str(step.get("task", ""))),
        cut_text(tool),
        Place("servers", server, {"tool": name}).build_address(),
        show_compact(given, ARGUMENTS) if given else cut_text(""),
        _show_step_state(state, has_ended),
        f", {took:.0f} ms" if isinstance(took, int | float) and took else "",
        build_address("calls", call) if call else "",
    )


def _show_step_state(state: str, has_ended: bool) -> ShownState | None:
    """How a step stands; nothing waits in a run that has ended but what a person decides."""
    if has_ended and state == "waiting":
        return ShownState(NOT_DONE)
    return ShownState(cut_text(name_step(state), MAX_STATE), state) if state else None


def _show_end(job: Job, store: Store) -> RunEnd:
    if awaits_answer(job):
        return RunEnd(question=show_question(job, store=store))
    if not isinstance(job.result, Mapping) or job.state != "done":
        return _show_standing(job)
    if job.result.get("state") == "asking":
        return RunEnd(told=UNANSWERED)
    if _is_without_tool(job.result):
        _, services = split_services(map(str, job.result.get("services") or ()))
        return RunEnd(lacks_tool=True, services=services)
    told = _name_clicks(render_task_result(job.result, to_person=True), job.result)
    answer = show_answer(told, f"run-{job.id}", ANSWER_LETTERS)
    waits = name_state(job) == WAITS_FOR_YOU
    return RunEnd(answer=answer, approvals=build_address("approvals") if waits else "")


def _show_standing(job: Job) -> RunEnd:
    """How a run stands that came to nothing yet, or never did."""
    if job.state == "cancelled":
        return RunEnd(told=CANCELLED)
    need = show_need(job) if job.state == "waiting" else None
    # What is needed stands with its button, without the command that allows it.
    told = describe_standing(job) if need is None else ""
    return RunEnd(told=cut_text(told), need=need)


def _name_clicks(told: dict[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What a run came to, with what to press on the page. What an API answered is as it was."""
    answered = result.get("state") in ("called", "answered") and not told.get("isError")
    # The note of a tool that was given up is the last text.
    last = len(told.get("content") or ()) - bool(result.get("given_up"))
    return name_clicks_in(told, last if answered else 0)


def _is_without_tool(result: Mapping[str, Any]) -> bool:
    """Whether a run ended because no registered tool, and no known API, fits its task."""
    offered = any(result.get(name) for name in ("candidates", "steps", "nothing"))
    return result.get("state") == "suggested" and not offered
