"""`toolwright do`: a task in words."""

from __future__ import annotations

import time
from typing import Any

import click

from orchestrator.app import open_app
from orchestrator.progress import Progress
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import (
    FAILED,
    engine_option,
    json_option,
    parse_arguments,
    print_json,
    reported,
    run,
    say,
)
from registry.records import Job
from sandbox.content import texts


@click.command("do")
@click.argument("task")
@click.option("--tool", default="", help="Your choice among the candidates, or `none` to forge.")
@click.option("--arguments", default="{}", help="The tool's arguments, a JSON object.")
@click.option("--source", default="", help="Where the API is, if one has to be forged.")
@json_option
@engine_option
@reported
def command(
    task: str, tool: str, arguments: str, source: str, as_json: bool, engine: str | None
) -> None:
    """Do TASK: run the tool you choose, forge what is missing, or show the candidates."""
    request: dict[str, Any] = {"task": task, "arguments": parse_arguments(arguments)}
    request |= {key: value for key, value in (("tool", tool), ("source", source)) if value}
    job = run(_done(load_settings(engine=engine), request, as_json))
    if as_json:
        print_json(job.result if job.state == "done" else {"error": job.message})
    elif job.state == "done":
        say(texts(job.result["content"]))
    else:
        say(job.message, "red")
    if job.state != "done" or job.result.get("isError"):
        raise SystemExit(FAILED)


async def _done(settings: Settings, request: dict[str, Any], quiet: bool) -> Job:
    async with open_app(settings, "do") as app:
        job = app.jobs.create("do", request)
        claimed = app.store.claim_job(job.id, app.process, time.time())
        assert claimed is not None
        with Progress(app.store, job.id, quiet):
            await app.jobs.run(claimed)
        return app.store.job(job.id)
