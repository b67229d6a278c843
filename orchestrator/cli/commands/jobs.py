"""`toolwright jobs`: forge jobs and task runs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from orchestrator.answers import (
    draft_json,
    draft_line,
    job_json,
    job_line,
    model_call_line,
    spent_json,
)
from orchestrator.errors import OrchestratorError
from orchestrator.jobreport import tell
from orchestrator.moments import ago
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.settings import load_settings
from orchestrator.terminal import (
    engine_option,
    json_option,
    print_json,
    print_table,
    reported,
    run,
    say,
)
from registry.drafts import awaits_draft
from registry.records import Job
from registry.store import Store


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="With JOB: cancel it.")
@click.option("--draft", type=int, help="With JOB: show what was handed in as its nth draft.")
@click.option("--brief", is_flag=True, help="With JOB: print what it waits for, for who writes.")
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
    brief: bool,
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
        # A list needs no engine and no stages, which take a second to load.
        resuming = importlib.import_module("orchestrator.resuming")
        tell(run(resuming.gone_on(settings, job, signer, experimental, as_json)), as_json)
        return
    with Store.open(settings.database_url) as store:
        if job and cancel:
            store.cancel_job(job, "terminal", time.time())
        if job and draft is not None:
            print_json(draft_json(store.draft(job, draft)))
            return
        if job and brief:
            say(_brief(store.job(job)))
            return
        if job:
            print_json(_shown(store, job))
            return
        rows = store.jobs()
    _print(rows, as_json)


def _print(rows: Sequence[Job], as_json: bool) -> None:
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


def _brief(job: Job) -> str:
    """Raises OrchestratorError where it waits for nobody's draft."""
    if not awaits_draft(job):
        raise OrchestratorError(f"job {job.id} waits for no draft, it is {job.state}.")
    return str(job.result["brief"])
