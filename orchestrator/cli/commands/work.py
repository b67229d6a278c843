"""`toolwright work`: run queued jobs and approved writes without a client."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from orchestrator.app import App, open_app
from orchestrator.approvals.sending import render_outcome
from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.terminal import (
    FAILED,
    engine_option,
    json_option,
    print_done,
    report_errors,
    run_coroutine,
)
from orchestrator.settings import Settings, load_settings
from registry.models import Job

OPEN_JOBS = ("queued", "running")
OPEN_APPROVALS = ("approved", "claimed", "sending")


@click.command("work")
@click.option("--idle", default=30.0, show_default=True, help="Seconds without work to end after.")
@click.option(
    "--approval",
    type=StoredId("approval"),
    metavar="ID",
    help="Send this one approved write and end. Whoever approves has that done where nothing else "
    "runs.",
)
@json_option
@engine_option
@report_errors
def work_command(idle: float, approval: str | None, as_json: bool, engine: str | None) -> None:
    """Carry out queued jobs and approved writes until there are none.

    The control page starts this where no `toolwright serve` is alive.
    """
    settings = load_settings(engine=engine)
    if approval:
        run_coroutine(_send_one(settings, approval, as_json))
        return
    ended = run_coroutine(_work_until_idle(settings, idle))
    told = [f"{job.kind} {job.id}: {job.state}: {job.message}" for job in ended]
    jobs = [{"job": job.id, "kind": job.kind, "state": job.state} for job in ended]
    message = "\n".join([*told, f"No work came for {idle:g} s."])
    print_done(as_json, message, idle=idle, jobs=jobs)


async def _send_one(settings: Settings, approval: str, as_json: bool) -> None:
    # Its own kind: it takes up no jobs, and is no worker that others may count on.
    async with open_app(replace(settings, spares=0), "send") as app:
        await app.approved.carry_out_one(approval)
        ended = app.store.approvals.get(approval)
    told = f"{ended.id}: {render_outcome(ended)}"
    print_done(as_json, told, approval=ended.id, state=ended.state, outcome=ended.outcome)
    if ended.state != "done":
        raise SystemExit(FAILED)


async def _work_until_idle(settings: Settings, idle: float) -> tuple[Job, ...]:
    """Work, and what became of the jobs that went on meanwhile, the first first."""
    async with open_app(settings, "work", patient=True) as app:
        worked, since = time.monotonic(), time.time()
        while True:
            # Asked last before it ends: what came during the last wait was begun already.
            if _has_open_work(app):
                worked = time.monotonic()
            elif time.monotonic() - worked >= idle:
                jobs = reversed(app.store.jobs.find())
                return tuple(job for job in jobs if job.attempt and job.updated >= since)
            await app.pulse.wait_for_work(1.0)


def _has_open_work(app: App) -> bool:
    store = app.store
    jobs = any(store.jobs.find(state) for state in OPEN_JOBS)  # type: ignore[arg-type]
    return jobs or any(store.approvals.find(state) for state in OPEN_APPROVALS)  # type: ignore[arg-type]
