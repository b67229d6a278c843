"""`toolwright jobs`: list, show, cancel and resume forge jobs and task runs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.dates import format_age
from orchestrator.approvals.needs import check_allowable
from orchestrator.approvals.settling import name_state, present_to_person, settle_run
from orchestrator.cli.cost_report import print_cost
from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.job_report import print_job, report_job
from orchestrator.cli.terminal import (
    ask_pin,
    engine_option,
    json_option,
    pin_option,
    print_done,
    print_json,
    print_noted_table,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings, load_settings
from orchestrator.views.jobs import draft_line_json, encode_draft, encode_job, encode_job_line
from orchestrator.views.records import encode_model_call, encode_spent
from registry.jobs.drafts import awaits_draft
from registry.jobs.pending import read_pending
from registry.models import Job
from registry.store import Store

MAX_MESSAGE = 300


@click.command("jobs")
@click.argument("job", required=False, type=StoredId("job"))
@click.option("--cancel", is_flag=True, help="With JOB: cancel it.")
@click.option("--draft", type=int, help="With JOB: show what was handed in as its nth draft.")
@click.option("--brief", is_flag=True, help="With JOB: print the brief of the code it waits for.")
@click.option("--allow", is_flag=True, help="The same as `toolwright allow JOB`.")
@click.option("--resume", is_flag=True, help="With JOB: let it go on where it waits.")
@click.option("--cost", is_flag=True, help="What models cost: a day, a month, by model and job.")
@click.option(
    "--experimental",
    is_flag=True,
    help="With JOB: register its last draft though it failed; every call asks. Asks for the PIN.",
)
@pin_option
@json_option
@engine_option
@report_errors
def jobs_command(
    job: str | None,
    cancel: bool,
    draft: int | None,
    brief: bool,
    allow: bool,
    resume: bool,
    cost: bool,
    experimental: bool,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """List jobs and what they wait for, or show JOB with its events, its drafts and what models
    were asked for it.
    """
    of_one = cancel or draft is not None or brief or allow or resume or experimental
    if of_one and not job:
        raise click.UsageError("That option goes with a JOB: `toolwright jobs` lists the ids.")
    settings = load_settings(engine=engine)
    if job and (allow or resume or experimental):
        _go_on(settings, job, allow, experimental, pin_file, as_json)
        return
    with Store.open(settings.database_url) as store:
        if job and cancel:
            store.jobs.cancel(job, "terminal", time.time())
            if not as_json:
                print_text(f"{job} is {store.jobs.get(job).state}.")
                return
        if job and draft is not None:
            print_json(encode_draft(store.drafts.get(job, draft)))
            return
        if job and brief:
            told = _read_brief(store.jobs.get(job))
            print_done(as_json, told, job=job, brief=told)
            return
        if job and as_json:
            print_json(_load_job_details(store, job))
            return
        if job:
            drafts = [draft_line_json(row) for row in store.drafts.find(job)]
            spent = encode_spent(store.model_usage.sum_for_job(job))
            print_job(present_to_person(store.jobs.get(job), store), drafts, spent)
            return
        if cost:
            print_cost(store.model_usage, settings.of_model.budget, time.time(), as_json)
            return
        rows = [present_to_person(row, store) for row in store.jobs.find()]
    _print_jobs(rows, as_json)


@click.command("allow")
@click.argument("job", type=StoredId("job"))
@click.option("--choice", type=click.IntRange(min=1), help="The number of the service meant.")
@click.option("--digest", default="", help="Only what was shown with this digest, for scripts.")
@pin_option
@json_option
@engine_option
@report_errors
def allow_command(
    job: str,
    choice: int | None,
    digest: str,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Allow all that JOB waits for: shows it whole, asks for the PIN, and goes on with the job.

    Where it offers several services, the first is taken, or the one of --choice.
    """
    settings = load_settings(engine=engine)
    _go_on(settings, job, True, False, pin_file, as_json, digest, choice or 0)


def _go_on(
    settings: Settings,
    job: str,
    allow: bool,
    experimental: bool,
    pin_file: Path | None,
    as_json: bool,
    digest: str = "",
    choice: int = 0,
) -> None:
    # A list needs no engine and no stages, which take a second to load.
    resuming = importlib.import_module("orchestrator.cli.resume")
    shown = ""
    if allow:
        with Store.open(settings.database_url) as store:
            waiting = store.jobs.get(job)
        shown = resuming.show_needs(waiting, check_allowable(waiting))
        if digest not in ("", shown):
            raise OrchestratorError(f"job {job} needs something else than that; look at it again.")
    signer = ask_pin(settings, pin_file) if allow or experimental else None
    resumed = resuming.resume_job(settings, job, signer, experimental, as_json, shown, choice)
    report_job(run_coroutine(resumed), as_json)


def _print_jobs(rows: Sequence[Job], as_json: bool) -> None:
    if as_json:
        print_json([encode_job_line(row) for row in rows])
    elif not rows:
        print_text("No jobs.")
    else:
        heads = ("job", "kind", "state", "stage", "done", "since")
        cells = [
            (r.id, r.kind, name_state(r), r.stage, f"{r.progress:.0%}", format_age(r.created))
            for r in rows
        ]
        # What a job waited for that was cancelled is not to be done any more.
        notes = ["" if row.state == "cancelled" else row.message[:MAX_MESSAGE] for row in rows]
        print_noted_table(heads, cells, notes)


def _load_job_details(store: Store, job: str) -> dict[str, Any]:
    told = [draft_line_json(row) for row in store.drafts.find(job)]
    asked = [encode_model_call(call) for call in store.model_usage.find(job)]
    spent = encode_spent(store.model_usage.sum_for_job(job))
    shown = encode_job(settle_run(store.jobs.get(job), store))
    return {**shown, "drafts": told, "models": {**spent, "asked": asked}}


def _read_brief(job: Job) -> str:
    """The brief of a job. Raises OrchestratorError where it does not wait for a draft."""
    if not awaits_draft(job):
        raise OrchestratorError(f"job {job.id} waits for no draft, it is {job.state}.")
    pending = read_pending(job.result)
    return pending.brief if pending else ""
