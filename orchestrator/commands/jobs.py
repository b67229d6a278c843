"""`toolwright jobs`: forge jobs and task runs."""

from __future__ import annotations

import time

import click

from orchestrator.answers import ago, draft_json, draft_line, job_json, job_line
from orchestrator.settings import load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.store import Store


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--cancel", is_flag=True, help="With JOB: cancel it.")
@click.option("--draft", type=int, help="With JOB: show the code handed in as its nth draft.")
@json_option
@reported
def command(job: str | None, cancel: bool, draft: int | None, as_json: bool) -> None:
    """List jobs and what they wait for, or show JOB with its events."""
    with Store.open(load_settings().database_url) as store:
        if job and cancel:
            store.cancel_job(job, "terminal", time.time())
        if job and draft is not None:
            print_json(draft_json(store.draft(job, draft)))
            return
        if job:
            told = [draft_line(row) for row in store.drafts(job)]
            print_json({**job_json(store.job(job)), "drafts": told})
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
