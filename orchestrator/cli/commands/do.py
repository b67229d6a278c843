"""`toolwright do`: run a task given in words."""

from __future__ import annotations

from typing import Any

import click

from orchestrator.app import open_app
from orchestrator.cli.answers import print_answer
from orchestrator.cli.job_report import report_job
from orchestrator.cli.resume import carry_out_job
from orchestrator.cli.terminal import (
    FAILED,
    engine_option,
    json_option,
    parse_arguments,
    print_json,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.settings import Settings, load_settings
from orchestrator.views import render_task_result
from registry.models import Job


@click.command("do")
@click.argument("task")
@click.option("--tool", default="", help="Your choice among the candidates, or `none` to forge.")
@click.option("--arguments", default="{}", help="The tool's arguments, a JSON object.")
@click.option("--source", default="", help="Where the API is, if one has to be forged.")
@json_option
@engine_option
@report_errors
def do_command(
    task: str, tool: str, arguments: str, source: str, as_json: bool, engine: str | None
) -> None:
    """Do TASK: run the tool you choose, forge what is missing, or show the candidates.

    Where code is needed it waits for that, as `toolwright forge` does.
    """
    request: dict[str, Any] = {"task": task, "arguments": parse_arguments(arguments)}
    request["files"] = "typed"
    request |= {key: value for key, value in (("tool", tool), ("source", source)) if value}
    job = run_coroutine(_run_task(load_settings(engine=engine), request, as_json))
    if job.state == "waiting":
        report_job(job, as_json)
    result = render_task_result(job.result) if job.state == "done" else None
    if as_json:
        print_json(result or {"error": job.message})
    elif result:
        print_answer(result)
    else:
        print_text(job.message, "red")
    if result is None or result.get("isError"):
        raise SystemExit(FAILED)


async def _run_task(settings: Settings, request: dict[str, Any], quiet: bool) -> Job:
    async with open_app(settings, "do") as app:
        return await carry_out_job(app, app.jobs.create_job("do", request), quiet)
