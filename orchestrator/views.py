"""MCP tool results and JSON values that clients, scripts and the page are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.approvals.needs import show_need
from orchestrator.approvals.preview import find_changes
from orchestrator.approvals.text import MAX_SHOWN_BODY as MAX_SHOWN_BODY
from orchestrator.approvals.text import hash_approval, render_glance
from orchestrator.calls import Done, Pending, RefusedCall, Reply
from orchestrator.gateway.exchange_json import encode_request, pending_json
from orchestrator.results.shape import cut_bytes, cut_sample, cut_text, measure_json
from registry.health.causes import find_cause
from registry.jobs.drafts import MAX_DRAFTS, awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.jobs.model_usage import ModelCall, ModelUsage
from registry.jobs.pending import PendingForge, draft_line, read_pending
from registry.models import Approval, DraftRow, Invocation, Job, JobEvent
from sandbox import exactjson
from sandbox.bundle.report import to_json as report_json
from sandbox.session.interface import Failure

if TYPE_CHECKING:
    # It stands on jsonschema, which `toolwright show` and `logs` start without.
    from sandbox.schemas.validator import SchemaViolation

Result = dict[str, Any]
MAX_EVENTS, EVENT_BYTES, EVENT_MESSAGE_BYTES = 50, 3_000, 300
"""What is shown of a job's events: how many, their bytes together, and those of one's message."""
MESSAGE_BYTES = 4_000
"""What is shown of a job's message."""
_ASK_STATUS = "then ask `status`"
_SENT_THERE = "which sends it and shows its answer there: do not call for it again"


def round_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its figures to four digits behind the point."""
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in record.items()
    }


def build_answer(value: Mapping[str, Any], text: str = "") -> Result:
    """A successful result: the value, and for a model a text (the value as JSON by default)."""
    content = text or exactjson.dumps(value).decode()
    return {"content": [{"type": "text", "text": content}], "structuredContent": dict(value)}


def build_refusal(reason: str, **more: Any) -> Result:
    """A failed result that a model can read."""
    return {
        "isError": True,
        "content": [{"type": "text", "text": reason}],
        "structuredContent": {"error": reason, **more},
    }


def build_reply_result(reply: Reply, has_status: bool = True) -> Result:
    """A call's reply: the server's own result where it ran, else what has to happen first.
    `has_status` says whether who called has the tool `status` as well.
    """
    if isinstance(reply, RefusedCall):
        return build_refusal(f"{reply.call.name}: {reply.reason}", state="refused")
    if isinstance(reply, Pending):
        why = ". ".join(filter(None, (reply.reason, reply.claims)))
        return _pending_answer(pending_json(reply.approval, why), has_status)
    return _build_done_result(reply)


def build_pending_result(approval: Approval, reason: str) -> Result:
    """What waits for a person, and how that is decided."""
    return _pending_answer(pending_json(approval, reason))


def _pending_answer(value: Mapping[str, Any], has_status: bool = True) -> Result:
    if _is_approved(value):
        return _tell_sending(value)
    approval = value["approval"]
    after = _ASK_STATUS if has_status else _SENT_THERE
    text = (
        f"Nothing was sent ({value['why']}). A person has to approve this exact request "
        f"(approval {approval}):\n{_render_request(value)}\nTell the user that `toolwright approve "
        f"{approval}` or the control page decides it, {after}.{_render_next(value)}"
    )
    return build_answer(value, text)


def _render_request(value: Mapping[str, Any]) -> str:
    return f"{value['request']['method']} {value['request']['url']}"


def _render_next(value: Mapping[str, Any]) -> str:
    return f" Then run {value['next']} goes on with what is left." if value.get("next") else ""


def _is_approved(value: Mapping[str, Any]) -> bool:
    """Whether a request that waited was approved since (`orchestrator.approvals.settling`)."""
    return str(value.get("approval_state", "pending")) != "pending"


def _tell_sending(value: Mapping[str, Any]) -> Result:
    approval = value["approval"]
    stands = "it is being sent"
    if value.get("approval_state") == "approved":
        stands = f"it is not sent yet, and `toolwright work --approval {approval}` sends it"
    text = f"A person approved this request (approval {approval}); {stands}:"
    return build_answer(value, f"{text}\n{_render_request(value)}{_render_next(value)}")


def _tell_pending(value: Mapping[str, Any]) -> Result:
    if _is_approved(value):
        return _tell_sending(value)
    approval = value["approval"]
    text = (
        f"Nothing was sent ({value['why']}). This exact request waits for your decision "
        f"(approval {approval}):\n{_render_request(value)}\n`toolwright approve {approval}` or the "
        f"control page decides it.{_render_next(value)}"
    )
    return build_answer(value, text)


def _build_done_result(done: Done) -> Result:
    meta = {"call": done.invocation, "trust": done.standing.level}
    if done.rule:
        meta["rule"] = done.rule
    if done.cause:
        meta["cause"] = done.cause
    return _called_result(
        done.outcome.delivered if done.outcome.difference else done.outcome.result,
        done.outcome.failure,
        meta,
    )


def _called_result(
    given: Mapping[str, Any], failure: Failure | None, meta: Mapping[str, Any]
) -> Result:
    """What a server answered, as a failure where it breaks its schema."""
    result = dict(given)
    if failure and not result.get("isError"):
        note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
        result["isError"] = True
        result["content"] = [_text(note), *result["content"]]
    result["_meta"] = {**(result.get("_meta") or {}), "toolwright": dict(meta)}
    return result


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def render_task_result(value: Mapping[str, Any], *, to_person: bool = False) -> Result:
    """What a task run came to, of what its job keeps (`orchestrator.tasks.results`), in words for
    a model, or for the person who reads them.
    """
    bare = {name: part for name, part in value.items() if name not in ("reading", "given_up")}
    state = str(value.get("state"))
    told = _TOLD_TO_PERSONS.get(state) if to_person else None
    result = (told or _TASK_RESULTS.get(state, build_answer))(bare)
    if reading := value.get("reading"):
        note = _render_reading(reading, state)
        result["content"] = [_text(note), *result.get("content", [])]
    if lost := value.get("given_up"):
        note = f"{lost['tool']} failed ({lost['failure']}) after {lost['attempts']} attempts; "
        note += "" if to_person else "a person should look at it: "
        note += "`toolwright show` and `toolwright logs`" + (" tell more." if to_person else ".")
        result["content"] = [*result.get("content", []), _text(note)]
    return result


def _render_reading(reading: Mapping[str, Any], state: str) -> str:
    """With what a tool was called, or would be: what waits or was refused was not called."""
    done = _CALLED.get(state, "was to be called")
    if reading["arguments"] == "{}":
        return f"{reading['tool']} {done} without arguments."
    named = f" ({reading['named']})" if reading.get("named") else ""
    return f"{reading['tool']} {done} with {_tell_reader(reading)}: {reading['arguments']}{named}"


_CALLED: Mapping[str, str] = {
    "called": "was called",
    "answered": "was called",
    "pending": "is to be called",
}


def _tell_reader(reading: Mapping[str, Any]) -> str:
    """Whose arguments they are: read out of the task, or given by whoever answered."""
    if reading.get("given") == "all":
        return "the arguments given"
    more = " and the answer given" if reading.get("given") else ""
    return f"what {reading['model']} read out of the task{more}"


def list_called_tools(value: Any) -> tuple[str, ...]:
    """The tools (`server.tool`) that a task run called, in their order, of what its job keeps."""
    steps = value.get("steps") if isinstance(value, Mapping) else None
    listed = [step for step in steps or () if isinstance(step, Mapping)]
    return tuple(str(step["tool"]) for step in listed if step.get("tool"))


def _suggested_result(value: Mapping[str, Any]) -> Result:
    if "nothing" in value:
        pointing = "deictic" in value["nothing"]
        return build_answer(dict(value), _NOTHING_MEANT if pointing else _NOTHING_ASKED)
    shown = {"candidates": value["candidates"], "none": "forge"}
    if "steps" in value:
        shown["steps"] = value["steps"]
    services = value.get("services") or ()
    if services:
        shown["services"] = services
    told = "\n".join((_NOTHING_CAN, *([_MAY_BE_MADE] if services else ()), *services))
    return build_answer(shown, "" if value["candidates"] or "steps" in value else told)


def _called_before(value: Mapping[str, Any]) -> Result:
    names = ("call", "trust", "rule", "cause")
    failure = Failure(**value["failure"]) if value["failure"] else None
    meta = {name: value[name] for name in names if value[name]}
    return _called_result(value["result"], failure, meta)


def _refused_result(value: Mapping[str, Any]) -> Result:
    return build_refusal(f"{value['tool']}: {value['reason']}", state="refused")


def _misnamed_result(value: Mapping[str, Any]) -> Result:
    return build_refusal(f"{value['tool']!r} is not of the form server.tool")


def _wanting_result(value: Mapping[str, Any]) -> Result:
    text = f"{value['tool']} needs arguments, and {value['problem']} Give them in `arguments`."
    return build_refusal(text, inputSchema=value["inputSchema"])


_NOTHING_ASKED = (
    "The words ask for nothing that a tool could do, and nothing was done. To have something done, "
    "say what; or choose a tool with `tool`."
)
_NOTHING_MEANT = (
    "It is not clear what the words point at, and nothing was done. Say by its name or id what is "
    "meant; with `session` the same as before, words can point at that session's answers."
)
_NOTHING_CAN = (
    "No registered server can do this. Call `do` again with tool=none and a source (the API's URL "
    "or host; without one it asks for code), or call `forge`."
)
_MAY_BE_MADE = "Of the public APIs that are known, one of these may be meant:"


def _asking_result(value: Mapping[str, Any]) -> Result:
    return build_answer(value, _render_question(value))


def _render_question(value: Mapping[str, Any]) -> str:
    """A question and how it is answered, in one sentence each."""
    answer = json.dumps(value["answer_with"], ensure_ascii=False)
    text = str(value["question"]["text"])
    between = "\n" if "\n" in text else " "
    return f"{text}{between}To go on, call `do` with {answer}"


_TASK_RESULTS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "suggested": _suggested_result,
    "called": _called_before,
    "answered": _called_before,
    "asking": _asking_result,
    "pending": _pending_answer,
    "refused": _refused_result,
    "misnamed": _misnamed_result,
    "wanting": _wanting_result,
}


def _tell_suggested(value: Mapping[str, Any]) -> Result:
    if "nothing" in value:
        pointing = "deictic" in value["nothing"]
        return build_answer(dict(value), _NOTHING_MEANT_BY if pointing else _NOTHING_ASKED_OF_YOU)
    return _suggested_result(value)


def _tell_wanting(value: Mapping[str, Any]) -> Result:
    return build_refusal(
        f"{value['tool']} needs arguments, and {value['problem']}", inputSchema=value["inputSchema"]
    )


_NOTHING_MEANT_BY = (
    "It is not clear what the words point at, and nothing was done. Say by its name or number what "
    "is meant."
)
_NOTHING_ASKED_OF_YOU = (
    "The words ask for nothing that a tool could do, and nothing was done. Say what is to be done."
)
_TOLD_TO_PERSONS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "suggested": _tell_suggested,
    "pending": _tell_pending,
    "wanting": _tell_wanting,
}
"""Where the words for a model speak of its tools, or of the person as somebody else."""


def build_running_result(call: str, identity: str) -> Result:
    """The handle of a call that takes longer than a client waits."""
    value = {"state": "running", "call": identity}
    return build_answer(value, f"{call} still runs. Ask `status` with call={identity}.")


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


def draft_line_json(draft: DraftRow) -> dict[str, Any]:
    """A draft in a list."""
    return vars(draft_line(draft))


def encode_spent(spent: ModelUsage) -> dict[str, Any]:
    """What models cost, as scripts see it."""
    return {
        "questions": spent.calls,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "cost": round(spent.cost, 6),
    }


def encode_model_call(call: ModelCall) -> dict[str, Any]:
    """A question to a model in a list: without the prompt and the answer."""
    return {
        "purpose": call.purpose,
        "author": call.author,
        "model": call.model,
        "state": call.state,
        "tokens_in": call.tokens_in,
        "tokens_out": call.tokens_out,
        "cost": round(call.cost, 6),
        "seconds": round(call.seconds, 3),
        "prompt": call.prompt_digest,
        "message": call.message,
    }


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
    more = f" and {len(tools) - MAX_NAMED} more, which `find` shows" if tools[MAX_NAMED:] else ""
    same = "Registered before, and nothing changed." if done.get("unchanged") else "Registered."
    text = (
        f"{job.message or same} Its tools: {named}{more}. Reads are called with "
        "`call_read`, what writes with `call_write`."
    )
    if isinstance(came := done.get("task"), Mapping):
        shown = render_task_result(came)
        told["result"]["task"] = _cut_came(came)
        text += "\nWhat the task came to: " + cut_text(
            "\n".join(block.get("text", "") for block in shown["content"]), MAX_CAME
        )
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


MAX_CAME = 1_500
"""The bytes of what its task came to that a forge's answer has."""
MAX_NAMED = 20
"""The tools of a new server that are named at once."""
BRIEF_AGAIN = "it was told with the first answer; `status` with brief=compute, http or composite"


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


def build_answer_refusal(problems: Iterable[SchemaViolation], job: Job) -> Result:
    """The refusal of what does not answer a run's question, which stays as it is."""
    located = [{"pointer": problem.where, "reason": problem.reason} for problem in problems]
    lines = "; ".join(f"{item['pointer']}: {item['reason']}" for item in located)
    asked = dict(job.result) if awaits_answer(job) else {"run": job.id}
    text = f"This is no answer, and nothing was done: {lines}"
    if awaits_answer(job):
        text = f"{text}\n{_render_question(asked)}"
    return {**build_refusal(text, problems=located, **asked)}


def encode_approval(approval: Approval) -> dict[str, Any]:
    """An approval as clients, scripts and the page see it."""
    return {
        "approval": approval.id,
        "state": approval.state,
        "tool": f"{approval.entry}.{approval.tool}",
        "version": approval.version,
        "arguments": dict(approval.arguments),
        "request": encode_request(approval.wire),
        "changes": [vars(change) for change in find_changes(approval.wire, approval.present)],
        "digest": hash_approval(approval),
        "created": approval.created,
        "expires": approval.expires,
        "task": approval.task,
        "reason": approval.reason,
        "decided_by": approval.decided_by,
        "decision_reason": approval.decision_reason,
        "outcome": approval.outcome,
    }


def encode_shown_approval(approval: Approval) -> dict[str, Any]:
    """The same with the text that a person is shown of it."""
    return {**encode_approval(approval), "text": render_glance(approval)}


def encode_call(invocation: Invocation) -> dict[str, Any]:
    """A finished call as scripts see it."""
    failure = invocation.failure
    return {
        "call": invocation.id,
        "tool": f"{invocation.entry}.{invocation.tool}",
        "version": invocation.version,
        "state": invocation.state,
        "succeeded": invocation.succeeded,
        "started": invocation.started,
        "latency_ms": round(invocation.latency_ms, 3),
        "failure": failure and vars(failure),
        "cause": (cause := find_cause(invocation)) and vars(cause),
        "difference": (difference := invocation.difference) and vars(difference),
        "arguments": dict(invocation.arguments),
        "result": invocation.result,
        "exchanges": list(invocation.exchanges),
        "task": invocation.task,
        "reason": invocation.reason,
        "approval": invocation.approval,
    }


def render_outcome(call: Invocation) -> str:
    """How a call ended, in a word or two: `ok`, or the kind of failure and its cause."""
    if call.succeeded:
        return "ok" if call.difference is None else "ok (not as documented)"
    cause = find_cause(call)
    kind = call.failure.kind if call.failure else call.state
    return f"{kind} ({cause.kind})" if cause else kind
