"""`toolwright work`: carry out what is queued, without a client."""

from __future__ import annotations

import time

import click

from orchestrator.app import App, open_app
from orchestrator.settings import load_settings
from orchestrator.terminal import engine_option, reported, run

OPEN_JOBS = ("queued", "running")
OPEN_APPROVALS = ("approved", "claimed")


@click.command("work")
@click.option("--idle", default=30.0, show_default=True, help="Seconds without work to end after.")
@engine_option
@reported
def command(idle: float, engine: str | None) -> None:
    """Carry out queued jobs and approved writes until there are none.

    The control page starts this where no `toolwright serve` is alive.
    """
    run(_work(idle, engine))


async def _work(idle: float, engine: str | None) -> None:
    async with open_app(load_settings(engine=engine), "work", patient=True) as app:
        worked = time.monotonic()
        while time.monotonic() - worked < idle:
            if _is_open(app):
                worked = time.monotonic()
            await app.pulse.work(1.0)


def _is_open(app: App) -> bool:
    store = app.store
    jobs = any(store.jobs(state) for state in OPEN_JOBS)  # type: ignore[arg-type]
    return jobs or any(store.approvals(state) for state in OPEN_APPROVALS)  # type: ignore[arg-type]
