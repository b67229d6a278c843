"""Jobs with the stages they went through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.approvals.needs import is_allowable
from orchestrator.approvals.settling import (
    ASKS_YOU,
    FROZEN,
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
from registry.needs import DecisionNeed
from registry.store import Store

OPEN: tuple[JobState, ...] = ("queued", "running", "waiting")
ENDED_SHOWN = 20
EVENTS_SHOWN = 20
MAX_WAIT = 1_000
QUEUED = "It waits for a process that takes it up; that takes some seconds."
UNDECIDED = ("queued", "waiting")


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
    """A job; one that has not ended is open, so that its stages are seen as they come. `waits` says
    what for, `answer` is where it is answered, where it asks, and `decides` where it is decided
    what it waits for; `progress` is a share where it is under way.
    """

    id: str
    kind: ShownText
    asked: ShownText
    state: ShownState
    progress: float | None
    created: float
    told: ShownText
    waits: ShownText
    events: tuple[ShownEvent, ...]
    answer: str
    decides: str
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
        job.progress if job.state == "running" else None,
        job.created,
        cut_text(job.message if ended and job.state != "cancelled" else ""),
        cut_text("" if asks or job.state not in UNDECIDED else describe_standing(job), MAX_WAIT),
        tuple(
            ShownEvent(event.time, cut_text(event.stage), cut_text(event.message))
            for event in job.log[-EVENTS_SHOWN:]
        ),
        build_address("ask") if asks else "",
        build_address("approvals") if not ended and _is_decided_by_person(job) else "",
        ended,
    )


def _is_decided_by_person(job: Job) -> bool:
    return is_allowable(job.needs) or isinstance(job.needs, DecisionNeed)


def describe_standing(job: Job) -> str:
    """What a job that does not run waits for, as the terminal says it."""
    if job.state == "queued":
        return FROZEN if job.message == FROZEN else QUEUED
    return job.message


def describe_job(job: Job) -> ShownText:
    """What a job was asked for."""
    return cut_text(str(job.request.get("task") or job.request.get("source") or ""))


def show_state(job: Job) -> ShownState:
    name = name_state(job)
    return ShownState(name, "waiting" if name in (ASKS_YOU, WAITS_FOR_YOU, SENDING, UNSENT) else "")
