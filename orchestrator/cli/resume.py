"""Running or resuming a job in this process, with its events printed as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.text import Text

from orchestrator.app import App
from orchestrator.approvals.needs import (
    allow_needs,
    check_allowable,
    hash_needs,
    is_allowable,
    list_need_items,
)
from orchestrator.approvals.services import choose_service
from orchestrator.approvals.text import escape_line
from orchestrator.cli.progress.job_progress import ProgressPrinter
from orchestrator.cli.questions import ask_person
from orchestrator.cli.registering import open_registering
from orchestrator.cli.terminal import ask_pin, err, is_terminal
from orchestrator.errors import OrchestratorError, WrongPin
from orchestrator.settings import Settings
from registry.models import Job
from registry.needs import AllowedNeed, OrderNeed, ServiceNeed, SuccessionNeed, TestsNeed
from registry.secrets.signing import Signer

MAX_TOLD = 200
"""Of what was allowed a moment after it was shown."""


@contextmanager
def tell_way_on(command: str, job: Job) -> Iterator[None]:
    """Say what is left of a job whose question the block asks, and how it goes on, where the person
    ends the question or types a wrong PIN.
    """
    try:
        yield
    except (click.Abort, WrongPin) as ended:
        ends = f"`toolwright jobs {job.id} --cancel` ends it"
        if isinstance(ended, click.Abort):
            # The question's line has not ended.
            err.print()
        err.print(f"Job {job.id} waits: `{command}` goes on with it, {ends}.", markup=False)
        raise


async def carry_out_job(app: App, job: Job, quiet: bool, claimed: Job | None = None) -> Job:
    """Run a job until it has ended or waits; another process may have claimed it first.
    `claimed` is the job where this process holds it already.
    """
    with ProgressPrinter(app.store, job, quiet):
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
    choice: int = 0,
) -> Job:
    """Resume a job: allow what it needs, go on with it, or register its last draft. `shown` is the
    digest of the needs that a person was shown. Raises OrchestratorError where it needs others.
    """
    async with open_registering(settings, "forge", quiet) as app:
        if experimental:
            return await carry_out_job(app, app.submissions.queue_experimental(identity), quiet)
        job = app.store.jobs.get(identity)
        if signer is not None:
            needs = check_allowable(job)
            if isinstance(needs, ServiceNeed):
                choose_service(needs, choice, job.id)
            if shown and hash_needs(needs) != shown:
                raise OrchestratorError(f"job {identity} needs something else; look at it again.")
        # Taken before it is allowed: a process without this one's endpoint would take it too.
        taken = app.store.jobs.claim_waiting(identity, app.process, time.time())
        if taken is None and job.state != "queued":
            raise OrchestratorError(f"job {identity} does not wait for anybody to resume it.")
        if signer is not None:
            _allow(app, job, signer, quiet, choice)
        return await carry_out_job(app, taken or job, quiet, taken)


async def carry_out_asking(
    app: App, job: Job, quiet: bool, pin_file: Path | None, claimed: Job | None = None
) -> Job:
    """Run a job until it has ended or waits for more than a person's yes: at a terminal, what it
    needs is asked for right there, as one question, and the same job goes on. `claimed` is the job
    where this process holds it already.
    """
    job = await carry_out_job(app, job, quiet, claimed)
    while is_terminal(quiet) and job.state == "waiting" and is_allowable(job.needs):
        with tell_way_on(f"toolwright allow {job.id}", job):
            answer = ask_person(partial(ask_needs, app.settings, job, job.needs, pin_file))
        if answer is None:
            break
        signer, choice = answer
        taken = app.store.jobs.claim_waiting(job.id, app.process, time.time())
        if taken is not None:
            _allow(app, job, signer, quiet, choice)
        job = await carry_out_job(app, job, quiet, taken)
    return job


def ask_needs(
    settings: Settings, job: Job, needs: AllowedNeed, pin_file: Path | None
) -> tuple[Signer, int] | None:
    """Show all that a job needs, ask whether it may have that, and for the PIN; with the number of
    the service that was chosen, 0 where there is no such choice. None for no.
    """
    show_needs(job, needs)
    if isinstance(needs, ServiceNeed):
        numbers = [str(number + 1) for number in range(len(needs.services))]
        asked = click.Choice([*numbers, "none"])
        chosen = click.prompt("Which one is meant?", type=asked, default="none", err=True)
        return None if chosen == "none" else (ask_pin(settings, pin_file), int(chosen))
    if not click.confirm("Allow all of this?", default=False, err=True):
        return None
    return ask_pin(settings, pin_file), 0


def show_needs(job: Job, needs: AllowedNeed) -> str:
    """Print all that a job's person would allow, an item a line; its digest."""
    what = "all of this, as one answer" if isinstance(needs, OrderNeed) else f"a {needs.kind}"
    if isinstance(needs, SuccessionNeed):
        what = (
            f"your yes to a version of {needs.server} that does other things than version "
            f"{needs.version}"
        )
    if isinstance(needs, ServiceNeed):
        what = "one of these services, or the source `none`"
    if isinstance(needs, TestsNeed):
        what = "other tests than an earlier draft had; what changed of them"
    err.print(Text(f"Job {job.id} needs {what}:", style="bold"))
    for item in list_need_items(needs):
        err.print(Text(f"  {escape_line(item)}"))
    if isinstance(needs, SuccessionNeed):
        err.print(
            f"Say no to keep version {needs.version}; `--name NAME` makes a server beside it."
        )
    return hash_needs(needs)


def _allow(app: App, job: Job, signer: Signer, quiet: bool, choice: int = 0) -> None:
    private = app.settings.of_engine.private
    told = allow_needs(app.store.grants, app.consents, job, "terminal", signer, private, choice)
    if not quiet:
        told = told if len(told) <= MAX_TOLD else "all that was shown"
        err.print(f"allowed: {told}", markup=False)
