"""`toolwright do`: run a task given in words."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from orchestrator.app import App
from orchestrator.approvals.settling import settle_run
from orchestrator.cli.answers import print_answer
from orchestrator.cli.job_report import report_job
from orchestrator.cli.questions import ask_person, ask_question
from orchestrator.cli.registering import open_registering
from orchestrator.cli.resume import carry_out_asking, tell_way_on
from orchestrator.cli.terminal import (
    FAILED,
    engine_option,
    err,
    is_terminal,
    json_option,
    parse_arguments,
    pin_option,
    print_json,
    print_note,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.settings import Settings, load_settings
from orchestrator.tasks.answering import MAX_ANSWER
from orchestrator.views.task_results import render_task_result
from registry.jobs.jobs import awaits_answer
from registry.models import Job
from sandbox.sanitize import clean_text


@click.command("do")
@click.argument("task", required=False, default="")
@click.option("--tool", default="", help="Your choice among the candidates, or `none` to forge.")
@click.option("--arguments", default="{}", help="The tool's arguments, a JSON object.")
@click.option("--source", default="", help="Where the API is, if one has to be forged.")
@click.option("--run", default="", help="A run that asked something, instead of a task.")
@click.option(
    "--answer",
    default="",
    help="The answer to what the run asked, a JSON object; `-` reads it from standard input.",
)
@pin_option
@json_option
@engine_option
@report_errors
def do_command(
    task: str,
    tool: str,
    arguments: str,
    source: str,
    run: str,
    answer: str,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Do TASK: find the tool, ask what is not clear, forge what is missing, and answer.

    At a terminal it asks here. Elsewhere it prints the question; --run with --answer answers it.
    Where code is needed the job waits for it, as with `toolwright forge`.
    """
    if bool(task) == bool(run):
        raise click.UsageError("Give a TASK, or --run with --answer.")
    request: dict[str, Any] = {"task": task, "arguments": parse_arguments(arguments)}
    request["files"] = "typed"
    request |= {key: value for key, value in (("tool", tool), ("source", source)) if value}
    answer = sys.stdin.read(MAX_ANSWER) if answer == "-" else answer
    given = dict(parse_arguments(answer)) if answer else None
    settings = load_settings(engine=engine)
    job = run_coroutine(_run_task(settings, request, run, given, pin_file, as_json))
    _report_run(job, as_json)


NO_TOOL = (
    "No registered server can do this, and nothing was done. `toolwright forge {} --source URL` "
    "makes one of an API's description; without --source the code has to be written."
)


def is_without_tool(result: Mapping[str, Any] | None) -> bool:
    """Whether a run ended because no registered tool, and no known API, fits its task."""
    ended = result or {}
    offered = any(ended.get(name) for name in ("candidates", "services", "steps", "nothing"))
    return ended.get("state") == "suggested" and not offered


def _report_run(job: Job, as_json: bool) -> None:
    if job.state == "waiting":
        report_job(job, as_json)
    done = job.state == "done"
    result = render_task_result(job.result, to_person=not as_json) if done else None
    if as_json:
        print_json(result or {"error": job.message})
    elif result and is_without_tool(job.result):
        print_text(NO_TOOL.format(shlex.quote(str(job.request.get("task", ""))[:200])), "red")
    elif result and job.result.get("beside") and "answers" in result.get("structuredContent", {}):
        _print_answers(result, len(job.result["beside"]), has_note="reading" in job.result)
    elif result:
        print_answer(result)
    else:
        print_text(job.message, "red")
    if result is None or result.get("isError"):
        raise SystemExit(FAILED)


def _print_answers(result: Mapping[str, Any], count: int, *, has_note: bool) -> None:
    """Print the answers of several steps, each under its words; the note is the last one's."""
    answers = result["structuredContent"]["answers"]
    for each in answers:
        print_text(f"{each['task']}:", "bold")
        print_answer({"content": [], "structuredContent": {"result": each["answer"]}})
        if each is not answers[-1] and "page" in each:
            print_note(each["page"])
    if has_note:
        print_note(result["content"][count]["text"])


async def _run_task(
    settings: Settings,
    request: dict[str, Any],
    run: str,
    answer: dict[str, Any] | None,
    pin_file: Path | None,
    quiet: bool,
) -> Job:
    async with open_registering(settings, "do", quiet) as app:
        claimed = None
        if not run:
            app.kill_switch.raise_if_engaged()
            job = claimed = app.jobs.take_job("do", request)
        elif answer is not None:
            job = _take_answer(app, run, answer)
        else:
            job = app.store.jobs.get(run)
        job = await carry_out_asking(app, job, quiet, pin_file, claimed)
        while is_terminal(quiet) and awaits_answer(job):
            with tell_way_on(f"toolwright do --run {job.id}", job):
                said = ask_person(partial(ask_question, job))
            if said is None:
                break
            job = await carry_out_asking(app, _retake(app, job, said), quiet, pin_file)
        return settle_run(job, app.store)


def _take_answer(app: App, run: str, answer: dict[str, Any]) -> Job:
    """The run with its answer. Raises click.UsageError with what is wrong with that."""
    taken = app.answering.take_answer(run, answer, "terminal")
    if isinstance(taken, tuple):
        problems = "; ".join(f"{problem.where}: {problem.reason}" for problem in taken)
        raise click.UsageError(f"This is no answer, and nothing was done: {problems}")
    return taken


def _retake(app: App, job: Job, said: dict[str, Any]) -> Job:
    """The run with what a person said, or as it was, after telling what is wrong with that."""
    taken = app.answering.take_answer(job.id, said, "terminal")
    if isinstance(taken, Job):
        return taken
    for problem in taken:
        err.print(clean_text(f"{problem.where}: {problem.reason}"), style="yellow", markup=False)
    return job
