"""Jobs and their drafts as JSON values and as MCP tool results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.approvals.needs import show_need
from orchestrator.results.shape import cut_bytes, cut_sample, cut_text, measure_json
from orchestrator.views.results import Result, build_answer, build_refusal
from orchestrator.views.task_results import render_task_result
from registry.jobs.drafts import MAX_DRAFTS, awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.jobs.pending import PendingForge, draft_line, read_pending
from registry.models import DraftRow, Job, JobEvent
from sandbox.bundle.report import to_json as report_json

if TYPE_CHECKING:
    # It stands on jsonschema, which `toolwright show` and `logs` start without.
    from sandbox.schemas.validator import SchemaViolation

MAX_EVENTS, EVENT_BYTES, EVENT_MESSAGE_BYTES = 50, 3_000, 300
"""What is shown of a job's events: how many, their bytes together, and those of one's message."""
MESSAGE_BYTES = 4_000
"""What is shown of a job's message."""
MAX_CAME = 1_500
"""The bytes of what its task came to that a forge's answer has."""
MAX_NAMED = 20
"""The tools of a new server that are named at once."""
BRIEF_AGAIN = "it was told with the first answer; `status` with brief=compute, http or composite"


def encode_job(job: Job) -> dict[str, Any]:
    """A job as clients and scripts see it; the events are its latest, at most MAX_EVENTS of them
    and EVENT_BYTES together, the message has at most MESSAGE_BYTES.
    """
    return {
        "job": job.id,
        "kind": job.kind,
        "state": job.state,
        "stage": job.stage,
        "progress": job.progress,
        "message": cut_bytes(job.message, MESSAGE_BYTES),
        "result": _strip_derived(job),
        # How often a process took it up: after a wait, a hand-in, or the end of another process.
        "taken_up": job.attempt,
        "needs": show_need(job.needs, job.id) or _show_author_need(job),
        "created": job.created,
        "updated": job.updated,
        "events": _encode_events(job.log),
    }


def _encode_events(log: Sequence[JobEvent]) -> list[list[Any]]:
    """The latest events that fit, oldest first; a long message is cut."""
    told: list[list[Any]] = []
    room = EVENT_BYTES
    for event in reversed(log[-MAX_EVENTS:]):
        row = [event.time, event.stage, cut_bytes(event.message, EVENT_MESSAGE_BYTES)]
        room -= measure_json(row)
        if room < 0:
            break
        told.append(row)
    return told[::-1]


def _show_author_need(job: Job) -> dict[str, Any]:
    return encode_draft_need(job) if awaits_draft(job) else {}


def _strip_derived(job: Job) -> Any:
    """A job's result without what only the job itself reads again."""
    if not isinstance(job.result, dict):
        return job.result
    if _has_run(job):
        return render_task_result(job.result)
    return {key: value for key, value in job.result.items() if key != "derived"}


def _has_run(job: Job) -> bool:
    """Whether a job is a task run with a result to show."""
    return job.kind == "do" and job.state == "done" and isinstance(job.result, dict)


def encode_job_line(job: Job) -> dict[str, Any]:
    """A job in a list: without the brief, which only its client reads."""
    told = encode_job(job)
    if awaits_answer(job):
        return {**told, "result": {"state": "asking"}}
    if not awaits_draft(job):
        return told
    pending = read_pending(job.result) or PendingForge()
    return {**told, "result": {"waits_for": pending.waits_for or "draft"}}


def build_job_result(job: Job) -> Result:
    """A job as `status` shows it. A task run that has ended shows what it came to, a job that waits
    for code its brief as text.
    """
    if _has_run(job) or awaits_answer(job):
        return render_task_result(job.result)
    if not awaits_draft(job):
        if job.kind == "forge" and job.state == "done" and "server" in job.result:
            told = build_forge_result(job)
            return {**told, "structuredContent": encode_job(job)}
        waits = job.kind == "do" and job.state == "waiting"
        return build_answer(encode_job(job), job.message if waits else "")
    pending = read_pending(job.result) or PendingForge()
    code = pending.waits_for != "document"
    head = f"Job {job.id} waits for code: {job.message}" if code else f"Job {job.id} {job.message}"
    # Who handed nothing in yet was told nothing: a model's drafts came before.
    if not any(line.author == "client" for line in pending.drafts):
        if pending.diagnosis:
            head = f"Job {job.id}: {job.message}\nMend it and `submit`, or write it anew."
        return build_answer(encode_waiting(job), f"{head}\n\n{pending.brief}")
    head = f"Job {job.id}: {job.message}"
    if pending.diagnosis:
        left = MAX_DRAFTS - len(pending.drafts)
        head += f"\nMend it and `submit` again, job={job.id}; {left} drafts are left."
        if "[suite]" in pending.diagnosis:
            head += " A test that you change is shown to a person before the server is registered."
    return build_answer(encode_waiting(job, brief=BRIEF_AGAIN), head)


def build_forge_result(job: Job) -> Result:
    """What a forge came to, for who waited for it: in a sentence, and without the events."""
    if awaits_draft(job):
        return build_job_result(job)
    told = {name: part for name, part in encode_job(job).items() if name != "events"}
    done = job.result if job.state == "done" and isinstance(job.result, Mapping) else {}
    if "server" not in done:
        return build_answer(told, job.message or f"The job is {job.state}.")
    tools = [str(name) for name in done.get("tools") or ()]
    told["result"] = {**told["result"], "tools": tools[:MAX_NAMED]}
    for name in ("problems", "learned"):
        told["result"][name] = [
            str(line)[:200] for line in (done.get(name) or ())[: MAX_NAMED // 4]
        ]
    named = ", ".join(tools[:MAX_NAMED])
    count = int(done.get("tool_count", len(tools)))
    more = f" and {count - MAX_NAMED} more, which `find` shows" if count > MAX_NAMED else ""
    same = "Registered before, and nothing changed." if done.get("unchanged") else "Registered."
    text = (
        f"{job.message or same} Its tools: {named}{more}. Reads are called with "
        "`call_read`, what writes with `call_write`."
    )
    if isinstance(came := done.get("task"), Mapping):
        told["result"]["task"] = _cut_came(came)
        # Which tools fit the task is said already: those of the new server.
        if came.get("state") != "suggested" or "nothing" in came:
            blocks = render_task_result(came)["content"]
            lines = "\n".join(block.get("text", "") for block in blocks)
            text += f"\nWhat the task came to: {cut_text(lines, MAX_CAME)}"
    if wanted := done.get("credentials"):
        text += (
            " A person has to set these credentials, of those with `instead` any one: "
            f"{json.dumps(wanted)[:600]}"
        )
    return build_answer(told, text)


def _cut_came(came: Mapping[str, Any]) -> dict[str, Any]:
    """What a forge's task came to: a large answer by its beginning."""
    if measure_json(came) <= MAX_CAME:
        return dict(came)
    head = {name: came[name] for name in ("state", "approval", "call") if name in came}
    rest = {name: part for name, part in came.items() if name not in head and name != "steps"}
    return {**head, "cut": True, "sample": cut_sample(rest, MAX_CAME)}


def encode_waiting(job: Job, brief: str = "") -> dict[str, Any]:
    """A job that waits for code, as its author is shown it: without the list of what happened, and
    with `brief` in place of the brief where that was told before.
    """
    told = encode_job(job)
    result = {k: value for k, value in told["result"].items() if value or k == "diagnosis"}
    result |= {"brief": brief} if brief else {}
    # A draft's line says what its author wrote; the diagnosis stands in the message too.
    if "drafts" in result:
        kept = ("number", "verdict")
        result["drafts"] = [{key: line[key] for key in kept} for line in result["drafts"]]
    told = {key: value for key, value in told.items() if key != "events"}
    return {**told, "result": result}


def draft_line_json(draft: DraftRow) -> dict[str, Any]:
    """A draft in a list."""
    return vars(draft_line(draft))


def encode_draft(draft: DraftRow) -> dict[str, Any]:
    """A draft with what was handed in, what the stages found, and what its author was told."""
    return {
        **draft_line_json(draft),
        "job": draft.job,
        "created": draft.created,
        "content": draft.content,
        "diagnosis": draft.diagnosis,
        "reports": [report_json(report) for report in draft.reports],
    }


def encode_draft_need(job: Job) -> dict[str, Any]:
    """What a job that waits for its author needs, in the form of a person's needs."""
    pending = read_pending(job.result) or PendingForge()
    what = "the API's description" if pending.waits_for == "document" else "the server's code"
    return {
        "kind": pending.waits_for or "draft",
        "what": what,
        "how": f"`submit` with job={job.id}",
    }


def build_draft_refusal(problems: Iterable[SchemaViolation]) -> Result:
    """The refusal of what is no draft: nothing was kept of it."""
    located = [{"pointer": problem.where, "reason": problem.reason} for problem in problems]
    lines = "\n".join(f"{item['pointer']}: {item['reason']}" for item in located)
    return build_refusal(f"This is no draft, nothing was kept:\n{lines}", problems=located)
