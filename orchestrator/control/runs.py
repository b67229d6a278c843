"""Task runs on the control page: of each its steps, the calls made, time, cost and answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.control.asking import render_question
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_section,
    render_time,
)
from orchestrator.control.rooms.place import build_address
from orchestrator.views import render_task_result
from registry.jobs.jobs import JobTable
from registry.jobs.model_usage import ModelUsageTable
from registry.models import ENDED_JOBS, Job
from sandbox.wire.content import join_texts

MAX_RUNS = 10
LOOKED_AT = 50
MAX_STEPS = 20
ANSWER_LETTERS = 4_000


def render_runs(jobs: JobTable, usage: ModelUsageTable) -> str:
    """The newest task runs, newest first."""
    runs = [job for job in jobs.find(limit=LOOKED_AT) if job.kind == "do"][:MAX_RUNS]
    lines = "".join(_render_run(job, usage.sum_for_job(job.id).cost) for job in runs)
    return render_section("Runs", lines or render_empty("None yet. Say above what is to be done."))


def _render_run(job: Job, cost: float) -> str:
    task = str(job.request.get("task") or "")
    told = f"{job.updated - job.created:.1f} s"
    told += f", cost {cost:.4f}" if cost else ""
    again = (
        f'<button data-post="/jobs/{escape(job.id)}/again" id="again-{escape(job.id)}">'
        "Do it again</button>"
        if job.state in ENDED_JOBS
        else ""
    )
    return (
        f'<details id="run-{escape(job.id)}"><summary>{escape_text(task)} '
        f"{render_badge(job.state)} "
        f"<small>{render_time(job.created)}, {told}</small></summary>"
        f"{_render_steps(job)}{render_question(job) or _render_answer(job)}{again}</details>"
    )


def _render_steps(job: Job) -> str:
    """The calls that were made, which say how it was done."""
    steps = job.result.get("steps") if isinstance(job.result, Mapping) else None
    lines = [
        _render_step(step)
        for step in (steps if isinstance(steps, Sequence) else ())[:MAX_STEPS]
        if isinstance(step, Mapping) and step.get("tool")
    ]
    if lines:
        return f"<ol>{''.join(lines)}</ol>"
    events = (f"<li>{escape_text(e.stage)}: {escape_text(e.message)}</li>" for e in job.log[-10:])
    return f"<ol>{''.join(events)}</ol>"


def _render_step(step: Mapping[str, Any]) -> str:
    arguments = json.dumps(step.get("arguments") or {}, ensure_ascii=False)
    took = step.get("milliseconds")
    time = f", {took:.0f} ms" if isinstance(took, int | float) and took else ""
    call = f" <small>call {escape_text(str(step['call']))}</small>" if step.get("call") else ""
    return (
        f"<li>{escape_text(str(step.get('task', '')))} <code>{escape_text(str(step['tool']))} "
        f"{escape_text(arguments)}</code>: {escape_text(str(step.get('state', '')))}{time}{call}"
        "</li>"
    )


def _render_answer(job: Job) -> str:
    """What it came to, or how it stands."""
    if job.state != "done" or not isinstance(job.result, Mapping):
        return f"<p>{escape_text(job.message)}</p>" if job.message else ""
    text = join_texts(render_task_result(job.result).get("content"))
    shown = f"<pre>{escape_text(text, ANSWER_LETTERS)}</pre>"
    if job.result.get("state") == "pending":
        address = escape(build_address("approvals"))
        shown += f'<p><a href="{address}">Look at the request and decide it</a></p>'
    return shown
