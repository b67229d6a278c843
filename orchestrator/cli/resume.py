"""Running or resuming a job in this process, with its events printed as they come."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from orchestrator.app import App, open_app
from orchestrator.approvals.needs import allow_needs, check_allowable, hash_needs
from orchestrator.cli.terminal import err
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.models import Job
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.sanitize import clean_text

PERIOD_SECONDS = 0.05


class ProgressPrinter:
    """Context manager that prints each event of a job to stderr as it comes."""

    def __init__(self, store: Store, job: str, quiet: bool = False) -> None:
        self._store, self._job, self._quiet = store, job, quiet
        self._shown = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch_job, daemon=True)

    def __enter__(self) -> ProgressPrinter:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if not self._quiet:
            self._thread.join()
            self._print_new_events()

    def _watch_job(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            self._print_new_events()

    def _print_new_events(self) -> None:
        job = self._store.jobs.get(self._job)
        for event in job.log[self._shown :]:
            took = event.time - job.created
            err.print(f"[dim]{took:6.2f} s[/dim]  {event.stage:<9}", end=" ")
            err.print(clean_text(event.message), markup=False)
        self._shown = len(job.log)


async def carry_out_job(app: App, job: Job, quiet: bool, claimed: Job | None = None) -> Job:
    """Run a job until it has ended or waits; another process may have claimed it first.
    `claimed` is the job where this process holds it already.
    """
    with ProgressPrinter(app.store, job.id, quiet):
        if claimed is not None:
            await app.jobs.run_job(claimed)
        return await app.jobs.complete(job)


async def resume_job(
    settings: Settings,
    identity: str,
    signer: Signer | None,
    experimental: bool,
    quiet: bool,
    shown: str = "",
) -> Job:
    """Resume a job: allow what it needs, go on with it, or register its last draft. `shown` is the
    digest of the needs that a person was shown. Raises OrchestratorError where it needs others.
    """
    async with open_app(settings, "forge") as app:
        if experimental:
            return await carry_out_job(app, app.submissions.queue_experimental(identity), quiet)
        job = app.store.jobs.get(identity)
        if signer is not None:
            needs = check_allowable(job)
            if shown and hash_needs(needs) != shown:
                raise OrchestratorError(f"job {identity} needs something else; look at it again.")
        # Taken before it is allowed: a process without this one's endpoint would take it too.
        taken = app.store.jobs.claim_waiting(identity, app.process, time.time())
        if taken is None and job.state != "queued":
            raise OrchestratorError(f"job {identity} does not wait for anybody to resume it.")
        if signer is not None:
            told = allow_needs(app.store.grants, app.consents, job, "terminal", signer)
            if not quiet:
                err.print(f"allowed: {told}", markup=False)
        return await carry_out_job(app, taken or job, quiet, taken)
