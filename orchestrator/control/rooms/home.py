"""The first room: what waits, what runs, and the last day at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forge.text import inflect
from orchestrator.control.charts import HourChart, draw_hours
from orchestrator.control.rooms.approvals import find_waiting_jobs
from orchestrator.control.rooms.jobs import describe_job, find_jobs
from orchestrator.control.rooms.place import ROOMS, Place, build_address
from orchestrator.control.texts import ShownText, cut_text
from registry.calls.invocations import COUNTED
from registry.jobs.jobs import awaits_client
from registry.models import Job
from registry.processes import ProcessTable
from registry.store import Store

HOURS = 24
RECENT = 50


@dataclass(frozen=True)
class RoomLink:
    """A link of the navigation; `waiting` is how much waits there."""

    address: str
    title: str
    is_here: bool
    waiting: int


@dataclass(frozen=True)
class ShownFreeze:
    """Whether everything is frozen, since when (epoch seconds), by whom and why; and whether there
    is no PIN yet, so that nothing can be decided.
    """

    lacks_pin: bool
    frozen: bool
    since: float
    by: ShownText
    reason: ShownText


@dataclass(frozen=True)
class ActiveWrite:
    tool: ShownText
    started: float


@dataclass(frozen=True)
class ActiveJob:
    """A job that is queued or runs; `progress` is a share."""

    kind: ShownText
    asked: ShownText
    stage: ShownText
    message: ShownText
    progress: float


@dataclass(frozen=True)
class ActiveProcess:
    kind: ShownText
    pid: int
    started: float


@dataclass(frozen=True)
class Activity:
    """What runs."""

    writes: tuple[ActiveWrite, ...]
    jobs: tuple[ActiveJob, ...]
    processes: tuple[ActiveProcess, ...]


@dataclass(frozen=True)
class DayFigure:
    figure: str
    told: str
    address: str


@dataclass(frozen=True)
class DaySummary:
    """The last 24 hours; `chart` is None where nothing was called."""

    figures: tuple[DayFigure, ...]
    chart: HourChart | None


def view_navigation(store: Store, place: Place) -> tuple[RoomLink, ...]:
    """Links to the rooms; how much waits stands beside Approvals."""
    jobs = [job for job in find_waiting_jobs(store) if not awaits_client(job)]
    count = len(store.approvals.find_ids("pending")) + len(jobs)
    return list_room_links(place, count)


def list_room_links(place: Place, waiting: int = 0) -> tuple[RoomLink, ...]:
    return tuple(
        RoomLink(
            build_address(room), title, room == place.room, waiting if room == "approvals" else 0
        )
        for room, title in ROOMS.items()
    )


def view_freeze(processes: ProcessTable, lacks_pin: bool = False) -> ShownFreeze:
    state = processes.get_freeze()
    return ShownFreeze(
        lacks_pin, state.frozen, state.since, cut_text(state.by), cut_text(state.reason)
    )


def view_activity(store: Store) -> Activity:
    return Activity(
        tuple(
            ActiveWrite(cut_text(f"{call.entry}.{call.tool}"), call.started)
            for call in store.calls.find(limit=RECENT)
            if call.state == "intended"
        ),
        tuple(_view_job(job) for job in find_jobs(store, ("queued", "running"))),
        tuple(
            ActiveProcess(cut_text(process.kind), process.pid, process.started)
            for process in store.processes.find()
        ),
    )


def _view_job(job: Job) -> ActiveJob:
    return ActiveJob(
        cut_text(job.kind),
        describe_job(job),
        cut_text(job.stage),
        cut_text(job.message),
        job.progress,
    )


def view_day(store: Store, now: float) -> DaySummary:
    """The calls of the last 24 hours by the hour, and what is registered."""
    since = (now // 3600 + 1 - HOURS) * 3600
    counts = store.calls.count_by_hour(since)
    good, bad = sum(each.succeeded for each in counts), sum(each.failed for each in counts)
    chart = draw_hours(counts, since, HOURS) if good + bad else None
    return DaySummary(tuple(_list_figures(store, good, bad)), chart)


def _list_figures(store: Store, good: int, bad: int) -> Iterator[DayFigure]:
    more = "+" if good + bad >= COUNTED else ""
    calls, place = build_address("calls"), build_address("servers")
    yield DayFigure(f"{good + bad:,}{more}", inflect(good + bad, "call"), calls)
    yield DayFigure(
        f"{bad:,}{more}", "failed, also by callers' mistakes", f"{calls}?outcome=failed"
    )
    servers = store.servers.find_summaries()
    trusted = sum(server.standing.level == "trusted" for server in servers)
    held = sum(server.state == "quarantined" for server in servers)
    yield DayFigure(str(len(servers)), inflect(len(servers), "server"), place)
    yield DayFigure(str(trusted), "trusted", place)
    yield DayFigure(str(held), "stopped", place)
