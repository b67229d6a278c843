"""Jobs with the stages they went through."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from orchestrator.approvals.settling import (
    ASKS_YOU,
    SENDING,
    UNSENT,
    WAITS_FOR_YOU,
    name_state,
    present_to_person,
)
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_button,
    render_empty,
    render_section,
    render_time,
)
from orchestrator.control.rooms.place import build_address
from registry.jobs.jobs import awaits_answer
from registry.models import ENDED_JOBS, Job, JobState
from registry.store import Store

OPEN: tuple[JobState, ...] = ("queued", "running", "waiting")
ENDED_SHOWN = 20


def find_jobs(store: Store, states: Iterable[JobState]) -> list[Job]:
    """The jobs in these states, newest first."""
    jobs = [present_to_person(job, store) for state in states for job in store.jobs.find(state)]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def render_jobs(store: Store) -> str:
    jobs = find_jobs(store, OPEN) + find_jobs(store, ENDED_JOBS)[:ENDED_SHOWN]
    nothing = render_empty("None yet. Have a server made:", "toolwright forge URL")
    return render_section("Jobs", "".join(map(_render_job, jobs)) or nothing)


def _render_job(job: Job) -> str:
    """A job; one that has not ended is open, so that its stages are seen as they come."""
    ended = job.state in ENDED_JOBS
    events = "".join(
        f"<li>{render_time(event.time)} <strong>{escape_text(event.stage)}</strong> "
        f"{escape_text(event.message)}</li>"
        for event in job.log[-20:]
    )
    asked = str(job.request.get("task") or job.request.get("source") or "")
    told = job.message if ended else ""
    asks = awaits_answer(job)
    answer = f'<a class="button" href="{build_address("ask")}">Answer it</a>' if asks else ""
    return (
        f'<details class="job" id="job-{escape(job.id)}"{"" if ended else " open"}>'
        f'<summary><span class="kind">{escape_text(job.kind)}</span> '
        f"<strong>{escape_text(asked)}</strong> {render_state(job)} "
        f"{'' if ended or asks else render_progress(job)}<small>{render_time(job.created)} "
        f"{escape_text(told)}</small></summary>"
        f'<ol class="stages">{events or "<li>It has not begun.</li>"}</ol>'
        f'<div class="actions">{answer}{"" if ended else render_cancel(job)}'
        f"<small><code>{escape_text(job.id)}</code></small></div></details>"
    )


def render_progress(job: Job) -> str:
    return f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress> '


def render_state(job: Job) -> str:
    """A job's state as a coloured word."""
    name = name_state(job)
    return render_badge(
        name, "waiting" if name in (ASKS_YOU, WAITS_FOR_YOU, SENDING, UNSENT) else name
    )


def render_cancel(job: Job) -> str:
    """The button that ends a job that has not ended."""
    path, id = f"/jobs/{job.id}/cancel", f"cancel-{job.id}"
    return render_button("Cancel", path, id, "quiet small")
