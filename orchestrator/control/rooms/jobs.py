"""Jobs with the stages they went through."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_section,
    render_time,
)
from registry.models import ENDED_JOBS, Job, JobState
from registry.store import Store

OPEN: tuple[JobState, ...] = ("queued", "running", "waiting")
ENDED_SHOWN = 20


def find_jobs(store: Store, states: Iterable[JobState]) -> list[Job]:
    """The jobs in these states, newest first."""
    jobs = [job for state in states for job in store.jobs.find(state)]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def render_jobs(store: Store) -> str:
    jobs = find_jobs(store, OPEN) + find_jobs(store, ENDED_JOBS)[:ENDED_SHOWN]
    nothing = render_empty("None yet. Have a server made:", "toolwright forge URL")
    return render_section("Jobs", "".join(map(_render_job, jobs)) or nothing)


def _render_job(job: Job) -> str:
    events = "".join(
        f"<li>{render_time(event.time)} <strong>{escape_text(event.stage)}</strong> "
        f"{escape_text(event.message)}</li>"
        for event in job.log[-20:]
    )
    asked = str(job.request.get("task") or job.request.get("source") or "")
    bar = "" if job.state in ENDED_JOBS else render_progress(job)
    return (
        f'<details id="job-{escape(job.id)}">'
        f"<summary>{escape_text(job.kind)} {escape_text(asked)} {render_badge(job.state)} {bar}"
        f"<small>{escape_text(job.stage)} {escape_text(job.message)}</small></summary>"
        f"<p><code>{escape_text(job.id)}</code>, begun {render_time(job.created)}</p>"
        f'<ol class="stages">{events or "<li>It has not begun.</li>"}</ol></details>'
    )


def render_progress(job: Job) -> str:
    return f'<progress max="1" value="{job.progress:.2f}" aria-label="progress"></progress> '
