"""Task runs on the control page, as a thread: what was asked, each step with its call, what the run
asks back, and the answer; of each the time and the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.approvals.settling import WAITS_FOR_YOU, name_state, name_step, present_to_person
from orchestrator.control.answering import render_question
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_button,
    render_empty,
    render_section,
    render_time,
)
from orchestrator.control.rooms.jobs import render_cancel, render_state
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.values import render_answer, render_compact
from orchestrator.views import render_task_result
from registry.jobs.jobs import awaits_answer
from registry.models import ENDED_JOBS, Job
from registry.store import Store

MAX_RUNS = 10
LOOKED_AT = 50
MAX_STEPS = 20
MAX_EVENTS = 10
ARGUMENTS = 200
ANSWER_LETTERS = 4_000


def render_runs(store: Store) -> str:
    """The newest task runs, newest first. The first one and those that have not ended are open."""
    runs = [job for job in store.jobs.find(limit=LOOKED_AT) if job.kind == "do"][:MAX_RUNS]
    lines = "".join(
        _render_run(
            present_to_person(job, store),
            store.model_usage.sum_for_job(job.id).cost,
            is_open=number == 0,
        )
        for number, job in enumerate(runs)
    )
    return render_section("Thread", lines or render_empty("Nothing yet. Say above what to do."))


def _render_run(job: Job, cost: float, *, is_open: bool) -> str:
    task = str(job.request.get("task") or "")
    ended = job.state in ENDED_JOBS
    told = f"{job.updated - job.created:.1f} s" if ended else ""
    told += f", cost {cost:.4f}" if cost else ""
    shown = " open" if is_open or not ended else ""
    return (
        f'<details class="run" id="run-{escape(job.id)}"{shown}><summary>'
        f"<strong>{escape_text(task)}</strong> {render_state(job)} "
        f"<small>{render_time(job.created)}{f', {told}' if told else ''}</small></summary>"
        f"{_render_steps(job)}{_render_end(job)}"
        f'<div class="actions">{_render_buttons(job)}</div></details>'
    )


def _render_buttons(job: Job) -> str:
    if job.state in ENDED_JOBS:
        return render_button("Do it again", f"/jobs/{job.id}/again", f"again-{job.id}", "small")
    return render_cancel(job)


def _render_steps(job: Job) -> str:
    """The calls that were made, which say how it was done; else how far it came."""
    steps = job.result.get("steps") if isinstance(job.result, Mapping) else None
    lines = [
        _render_step(step)
        for step in (steps if isinstance(steps, Sequence) else ())[:MAX_STEPS]
        if isinstance(step, Mapping) and step.get("tool")
    ]
    if lines:
        return f'<ol class="steps">{"".join(lines)}</ol>'
    if awaits_answer(job):
        # Its last event is the question, which stands in the form.
        return ""
    events = [
        f"<li><strong>{escape_text(event.stage)}</strong> {escape_text(event.message)}</li>"
        for event in job.log[-MAX_EVENTS:]
        if event.message
    ]
    return f'<ol class="steps">{"".join(events)}</ol>' if events else ""


def _render_step(step: Mapping[str, Any]) -> str:
    took = step.get("milliseconds")
    time = f", {took:.0f} ms" if isinstance(took, int | float) and took else ""
    given = step.get("arguments") or {}
    arguments = f" <small>{render_compact(given, ARGUMENTS)}</small>" if given else ""
    state = str(step.get("state", ""))
    return (
        f"<li>{escape_text(str(step.get('task', '')))} {_link_tool(str(step['tool']))}{arguments} "
        f"{render_badge(name_step(state), state) if state else ''}<small>{time}</small>"
        f"{_link_call(step)}</li>"
    )


def _link_tool(name: str) -> str:
    server, _, tool = name.partition(".")
    address = Place("servers", server, {"tool": tool}).build_address()
    return f'<a href="{escape(address)}"><code>{escape_text(name)}</code></a>'


def _link_call(step: Mapping[str, Any]) -> str:
    call = str(step.get("call") or "")
    if not call:
        return ""
    return f' <a href="{escape(build_address("calls", call))}"><small>its call</small></a>'


def _render_end(job: Job) -> str:
    """What it came to, what it asks, or how it stands."""
    if awaits_answer(job):
        return render_question(job)
    if job.state != "done" or not isinstance(job.result, Mapping):
        return f"<p>{escape_text(job.message)}</p>" if job.message else ""
    if _is_without_tool(job.result):
        return render_empty(NO_TOOL, "toolwright forge URL")
    told = render_task_result(job.result, to_person=True)
    shown = render_answer(told, f"run-{job.id}", ANSWER_LETTERS)
    if name_state(job) == WAITS_FOR_YOU:
        address = escape(build_address("approvals"))
        shown += f'<p><a href="{address}">Look at the request and decide it</a></p>'
    return shown


NO_TOOL = "No registered server can do this, and nothing was done. Have one made of an API:"


def _is_without_tool(result: Mapping[str, Any]) -> bool:
    """Whether a run ended because no registered tool, and no known API, fits its task."""
    offered = any(result.get(name) for name in ("candidates", "services", "steps", "nothing"))
    return result.get("state") == "suggested" and not offered
