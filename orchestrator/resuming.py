"""Carrying a job out in the process of a command, from its start or from where it waited."""

from __future__ import annotations

import time

from orchestrator.app import App, open_app
from orchestrator.errors import OrchestratorError
from orchestrator.needs import allow as allow_needs
from orchestrator.needs import check_allowed
from orchestrator.progress import Progress
from orchestrator.settings import Settings
from orchestrator.terminal import err
from registry.records import Job
from registry.signing import Signer


async def carried_out(app: App, job: Job, quiet: bool, claimed: Job | None = None) -> Job:
    """The job when it has ended or waits, carried out by this process or by one that was faster.
    `claimed` is the job where this process holds it already.
    """
    claimed = claimed or app.store.claim_job(job.id, app.process, time.time())
    with Progress(app.store, job.id, quiet):
        if claimed is not None:
            await app.jobs.run(claimed)
        while app.store.job(job.id).state in ("queued", "running"):
            await app.pulse.changed()
    return app.store.job(job.id)


async def gone_on(
    settings: Settings, identity: str, signer: Signer | None, experimental: bool, quiet: bool
) -> Job:
    """The job after it went on: allowed, resumed, or its last draft registered."""
    async with open_app(settings, "forge") as app:
        if experimental:
            return await carried_out(app, app.submissions.as_experimental(identity), quiet)
        job = app.store.job(identity)
        if signer is not None:
            check_allowed(job)
        # Taken before it is allowed: a process without this one's endpoint would take it too.
        taken = app.store.take_job(identity, app.process, time.time())
        if taken is None and job.state != "queued":
            raise OrchestratorError(f"job {identity} does not wait for anybody to resume it.")
        if signer is not None:
            told = allow_needs(app.store, app.consents, job, "terminal", signer)
            if not quiet:
                err.print(f"allowed: {told}", markup=False)
        return await carried_out(app, taken or job, quiet, taken)
