"""`toolwright jobs`: forge jobs and task runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from orchestrator.answers import (
    ago,
    draft_json,
    draft_line,
    job_json,
    job_line,
    model_call_line,
    spent_json,
)
from orchestrator.app import open_app
from orchestrator.commands.forge import carried_out, tell
from orchestrator.errors import OrchestratorError
from orchestrator.needs import allow as allow_needs
from orchestrator.needs import check_allowed
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import (
    ask_pin,
    engine_option,
    err,
    json_option,
    pin_option,
    print_json,
    print_table,
    reported,
    run,
    say,
)
from registry.records import Job
from registry.signing import Signer
from registry.store import Store


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="With JOB: cancel it.")
@click.option("--draft", type=int, help="With JOB: show what was handed in as its nth draft.")
@click.option("--allow", is_flag=True, help="With JOB: allow what it waits for. Asks for the PIN.")
@click.option("--resume", is_flag=True, help="With JOB: let it go on where it waits.")
@click.option(
    "--experimental",
    is_flag=True,
    help="With JOB: register its last draft though it failed; every call asks. Asks for the PIN.",
)
@pin_option
@json_option
@engine_option
@reported
def command(
    job: str | None,
    cancel: bool,
    draft: int | None,
    allow: bool,
    resume: bool,
    experimental: bool,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """List jobs and what they wait for, or show JOB with its events, its drafts and what models
    were asked for it.
    """
    settings = load_settings(engine=engine)
    if job and (allow or resume or experimental):
        signer = ask_pin(settings, pin_file) if allow or experimental else None
        tell(run(_gone_on(settings, job, signer, experimental, as_json)), as_json)
        return
    with Store.open(settings.database_url) as store:
        if job and cancel:
            store.cancel_job(job, "terminal", time.time())
        if job and draft is not None:
            print_json(draft_json(store.draft(job, draft)))
            return
        if job:
            print_json(_shown(store, job))
            return
        rows = store.jobs()
    if as_json:
        print_json([job_line(row) for row in rows])
    elif not rows:
        say("No jobs.")
    else:
        print_table(
            ("job", "kind", "state", "stage", "done", "since", ""),
            (
                (
                    row.id,
                    row.kind,
                    row.state,
                    row.stage,
                    f"{row.progress:.0%}",
                    ago(row.created),
                    row.message[:120],
                )
                for row in rows
            ),
        )


def _shown(store: Store, job: str) -> dict[str, Any]:
    told = [draft_line(row) for row in store.drafts(job)]
    asked = [model_call_line(call) for call in store.model_calls(job)]
    spent = spent_json(store.spent_by_job(job))
    return {**job_json(store.job(job)), "drafts": told, "models": {**spent, "asked": asked}}


async def _gone_on(
    settings: Settings, identity: str, signer: Signer | None, experimental: bool, quiet: bool
) -> Job:
    """The job after it went on in this process: allowed, resumed, or its last draft registered."""
    async with open_app(settings, "forge") as app:
        if experimental:
            return await carried_out(app, app.as_experimental(identity), quiet)
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
