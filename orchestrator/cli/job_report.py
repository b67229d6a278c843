"""Jobs that forge, and task runs, as the terminal shows how they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forge.text import render_count, shorten_text
from orchestrator.approvals.dates import format_age
from orchestrator.approvals.needs import is_allowable, render_way, show_need
from orchestrator.approvals.settling import FOR_CLIENTS, name_state
from orchestrator.cli.answers import print_answer
from orchestrator.cli.next_steps import render_answer_command
from orchestrator.cli.terminal import FAILED, WAITING, print_json, print_table, print_text
from orchestrator.views.task_results import render_task_result
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.jobs.pending import PendingForge, read_pending
from registry.models import Job
from registry.needs import DecisionNeed, EngineNeed, UnfreezeNeed

MAX_EVENTS, MAX_TOLD = 20, 300
"""Of a job that is shown: its latest events, and the letters of one's message."""


def report_job(job: Job, as_json: bool, with_brief: bool = False) -> None:
    """Print how a forge job or a task run stands, and leave with the status that says so."""
    has_run = job.kind == "do" and job.state == "done"
    result = render_task_result(job.result, to_person=not as_json) if has_run else job.result
    if as_json:
        needs = {"needs": show_need(job.needs, job.id)} if job.needs else {}
        told = {"job": job.id, "state": job.state, "message": job.message, "result": result}
        print_json({**told, **needs})
    else:
        print_standing(job, with_brief)
    if job.state != "done":
        held = job.state == "waiting" or isinstance(job.result, dict)
        raise SystemExit(WAITING if held else FAILED)
    if has_run and result.get("isError"):
        raise SystemExit(FAILED)


def print_standing(job: Job, with_brief: bool = False) -> None:
    """Print how a forge job or a task run stands, and what lets it go on."""
    if job.kind == "do" and job.state == "done":
        print_answer(render_task_result(job.result, to_person=True))
    elif job.kind == "forge" and job.state == "done":
        _print_server(job.result)
    elif awaits_answer(job):
        command = render_answer_command(job)
        print_text(f"{job.message}\nTo go on, for example:\n- {command}", "yellow")
        print_text(f"- or end it: toolwright jobs {job.id} --cancel", "yellow")
    elif job.state == "waiting":
        if with_brief and awaits_draft(job):
            print_text(f"{_pending(job).brief}\n")
        print_text(f"{_describe_wait(job)}\nTo go on:", "yellow")
        for way in _list_ways(job):
            print_text(f"- {way}", "yellow")
    else:
        print_text(job.message, "" if job.state == "done" else "red")


def print_job(job: Job, drafts: Sequence[Mapping[str, Any]], spent: Mapping[str, Any]) -> None:
    """Print a settled job with its events, its drafts and what models were asked for it."""
    asked = str(job.request.get("task") or job.request.get("source") or "")
    state = name_state(job)
    print_text(f"{job.kind} {job.id}: {state}, begun {format_age(job.created)}", "bold")
    if asked:
        print_text(shorten_text(" ".join(asked.split()), MAX_TOLD))
    events = [(format_age(e.time), e.stage, e.message[:MAX_TOLD]) for e in job.log[-MAX_EVENTS:]]
    if events:
        print_table(("when", "stage", "what"), events)
    for draft in drafts:
        author = draft["model"] or draft["author"]
        print_text(
            f"draft {draft['number']} by {author}: {draft['verdict']} {draft['why']}".strip()
        )
    if spent["questions"]:
        questions = render_count(spent["questions"], "question")
        print_text(
            f"models: {questions}, {spent['tokens_in']} tokens in, {spent['tokens_out']} out"
        )
    if job.state == "cancelled":
        return
    print_standing(job)


def _describe_wait(job: Job) -> str:
    """What a job waits for, without the command that a line of its own has."""
    if job.needs is None:
        return FOR_CLIENTS.sub("", job.message) if awaits_draft(job) else job.message
    said, colon, way = job.message.rpartition(f": {render_way(job.needs, job.id)}")
    return f"{said}." if colon and not way.strip(" ();") else job.message


def _list_ways(job: Job) -> Iterator[str]:
    """The ways in which a person can let a waiting job go on."""
    resume = f"toolwright jobs {job.id} --resume"
    if job.needs is not None:
        way = render_way(job.needs, job.id)
        if isinstance(job.needs, DecisionNeed):
            yield way
        else:
            yield f"allow it: {way}" if is_allowable(job.needs) else f"{way}, then {resume}"
    if not awaits_draft(job):
        return
    brief = f"toolwright jobs {job.id} --brief"
    yield f"write it yourself: {brief} says what is wanted; toolwright submit {job.id} FILE"
    if not isinstance(job.needs, UnfreezeNeed | EngineNeed) and not _is_client_written(job):
        yield f"have a model write it: set OPENAI_MODEL (docs/authors.md), then {resume}"
    yield f"let an MCP client's model write it: have it ask `status` with job={job.id}"
    yield f"or end it: toolwright jobs {job.id} --cancel"


def _is_client_written(job: Job) -> bool:
    """Whether no model would be asked for it: a client began, or was chosen."""
    drafts = _pending(job).drafts
    return job.request.get("author") == "client" or any(d.author == "client" for d in drafts)


def _pending(job: Job) -> PendingForge:
    return read_pending(job.result) or PendingForge()


def _print_server(result: dict[str, Any]) -> None:
    same = " as before; nothing changed" if result.get("unchanged") else ""
    print_text(
        f"{result['server']} version {result['version']} is {result['state']}{same}.", "bold green"
    )
    count = result.get("tool_count", len(result["tools"]))
    print_text(f"{render_count(count, 'tool')}; try: toolwright show {result['server']}")
    came = result.get("task")
    if came and came["state"] in ("answered", "pending"):
        print_answer(render_task_result(came, to_person=True))
    elif came:
        print_text(
            "The task is not done yet. `toolwright do TASK` does it, and asks what is not clear."
        )
    for problem in result["problems"]:
        print_text(f"note: {problem}", "yellow")
    for wanted in result.get("credentials", ()):
        verb = "wants" if wanted["required"] else "takes"
        instead = " or ".join(wanted.get("instead", ()))
        print_text(
            f"it {verb} {wanted['name']}{f' (or {instead})' if instead else ''}, "
            f"{wanted['place']}, for {render_count(wanted['tools'], 'tool')}: {wanted['how']}",
            "yellow",
        )
        if wanted["says"]:
            print_text(f"  its description says: “{wanted['says']}”")
