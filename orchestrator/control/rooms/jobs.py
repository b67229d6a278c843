"""Jobs with the stages they went through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.approvals.settling import (
    ASKS_YOU,
    SENDING,
    UNSENT,
    WAITS_FOR_YOU,
    name_state,
    present_to_person,
)
from orchestrator.control.rooms.place import build_address
from orchestrator.control.texts import ShownText, cut_text
from registry.jobs.jobs import awaits_answer
from registry.models import ENDED_JOBS, Job, JobState
from registry.store import Store

OPEN: tuple[JobState, ...] = ("queued", "running", "waiting")
ENDED_SHOWN = 20
EVENTS_SHOWN = 20


@dataclass(frozen=True)
class ShownState:
    """A job's state as a word, and the class of its colour."""

    word: str
    kind: str = ""


@dataclass(frozen=True)
class ShownEvent:
    time: float
    stage: ShownText
    message: ShownText


@dataclass(frozen=True)
class ShownJob:
    """A job; one that has not ended is open, so that its stages are seen as they come. `answer` is
    where it is answered, where it asks, `progress` a share where it is under way.
    """

    id: str
    kind: ShownText
    asked: ShownText
    state: ShownState
    progress: float | None
    created: float
    told: ShownText
    events: tuple[ShownEvent, ...]
    answer: str
    has_ended: bool


def find_jobs(store: Store, states: Iterable[JobState]) -> list[Job]:
    """The jobs in these states, newest first."""
    jobs = [present_to_person(job, store) for state in states for job in store.jobs.find(state)]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def view_jobs(store: Store) -> tuple[ShownJob, ...]:
    """The jobs that have not ended, and the newest that have."""
    jobs = find_jobs(store, OPEN) + find_jobs(store, ENDED_JOBS)[:ENDED_SHOWN]
    return tuple(map(_view_job, jobs))


def _view_job(job: Job) -> ShownJob:
    ended, asks = job.state in ENDED_JOBS, awaits_answer(job)
    return ShownJob(
        job.id,
        cut_text(job.kind),
        describe_job(job),
        show_state(job),
        None if ended or asks else job.progress,
        job.created,
        cut_text(job.message if ended and job.state != "cancelled" else ""),
        tuple(
            ShownEvent(event.time, cut_text(event.stage), cut_text(event.message))
            for event in job.log[-EVENTS_SHOWN:]
        ),
        build_address("ask") if asks else "",
        ended,
    )


def describe_job(job: Job) -> ShownText:
    """What a job was asked for."""
    return cut_text(str(job.request.get("task") or job.request.get("source") or ""))


def show_state(job: Job) -> ShownState:
    name = name_state(job)
    return ShownState(name, "waiting" if name in (ASKS_YOU, WAITS_FOR_YOU, SENDING, UNSENT) else "")
