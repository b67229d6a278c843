"""`toolwright work`: run queued jobs and approved writes without a client."""

from __future__ import annotations

import time

import click

from orchestrator.app import App, open_app
from orchestrator.cli.terminal import engine_option, report_errors, run_coroutine
from orchestrator.settings import load_settings

OPEN_JOBS = ("queued", "running")
OPEN_APPROVALS = ("approved", "claimed", "sending")


@click.command("work")
@click.option("--idle", default=30.0, show_default=True, help="Seconds without work to end after.")
@engine_option
@report_errors
def work_command(idle: float, engine: str | None) -> None:
    """Carry out queued jobs and approved writes until there are none.

    The control page starts this where no `toolwright serve` is alive.
    """
    run_coroutine(_work_until_idle(idle, engine))


async def _work_until_idle(idle: float, engine: str | None) -> None:
    async with open_app(load_settings(engine=engine), "work", patient=True) as app:
        worked = time.monotonic()
        while time.monotonic() - worked < idle:
            if _has_open_work(app):
                worked = time.monotonic()
            await app.pulse.wait_for_work(1.0)


def _has_open_work(app: App) -> bool:
    store = app.store
    jobs = any(store.jobs.find(state) for state in OPEN_JOBS)  # type: ignore[arg-type]
    return jobs or any(store.approvals.find(state) for state in OPEN_APPROVALS)  # type: ignore[arg-type]
