"""What clients are told: values turned into MCP tool results."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.calls import Done, Pending, Refused, Reply
from orchestrator.changes import changes
from orchestrator.wirejson import request_json
from registry.cause import cause_of
from registry.drafts import awaits_draft
from registry.modelcalls import ModelCall, Spent
from registry.records import Approval, DraftRow, Entry, Invocation, Job, Match
from registry.trust import Standing
from sandbox.apispec import Access
from sandbox.exchange import WireRequest

if TYPE_CHECKING:
    # It stands on jsonschema, which `toolwright show` and `logs` start without.
    from sandbox.validation import Problem

Result = dict[str, Any]
MAX_SHOWN_BODY = 4000
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def answer(value: Mapping[str, Any], text: str = "") -> Result:
    """A successful result: the value, and for a model a text (the value as JSON by default)."""
    content = text or json.dumps(value, ensure_ascii=False, indent=1)
    return {"content": [{"type": "text", "text": content}], "structuredContent": dict(value)}


def refusal(reason: str, **more: Any) -> Result:
    """A failed result that a model can read."""
    return {
        "isError": True,
        "content": [{"type": "text", "text": reason}],
        "structuredContent": {"error": reason, **more},
    }


def reply_result(reply: Reply) -> Result:
    """A call's reply: the server's own result where it ran, else what has to happen first."""
    if isinstance(reply, Refused):
        return refusal(f"{reply.call.name}: {reply.reason}", state="refused")
    if isinstance(reply, Pending):
        return pending_result(reply.approval, reply.reason)
    return _done_result(reply)


def pending_result(approval: Approval, reason: str) -> Result:
    """What waits for a person, and how that is decided."""
    value = {
        "state": "pending",
        "approval": approval.id,
        "why": reason,
        "request": request_json(approval.wire),
        "expires": approval.expires,
    }
    text = (
        f"Nothing was sent. {reason}: a person has to approve this exact request "
        f"(approval {approval.id}):\n{approval.wire.method} "
        f"{approval.wire.url}\nTell the user that `toolwright approve "
        f"{approval.id}` or the control page decides it, then ask `status`."
    )
    return answer(value, text)


def _done_result(done: Done) -> Result:
    meta = {"call": done.invocation, "trust": done.standing.level}
    if done.rule:
        meta["rule"] = done.rule
    if done.cause:
        meta["cause"] = done.cause
    result = dict(done.outcome.result)
    if done.outcome.failure and not result.get("isError"):
        failure = done.outcome.failure
        note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
        result["isError"] = True
        result["content"] = [{"type": "text", "text": note}, *result["content"]]
    result["_meta"] = {**(result.get("_meta") or {}), "toolwright": meta}
    return result


def running_result(call: str, identity: str) -> Result:
    """The handle of a call that takes longer than a client waits."""
    value = {"state": "running", "call": identity}
    return answer(value, f"{call} still runs. Ask `status` with call={identity}.")


def match_json(match: Match, entry: Entry, standing: Standing, access: Access) -> dict[str, Any]:
    """A candidate as `find` shows it. `access` is what the tool counts as."""
    tool = entry.tool(match.tool)
    return {
        "tool": f"{match.entry}.{match.tool}",
        "call_with": "call_read" if access == "read" else "call_write",
        "description": match.description,
        "server": match.title,
        "group": match.group,
        "similarity": round(match.score, 4),
        "trust": standing.level,
        "reliability": standing.score,
        "inputSchema": tool.definition["inputSchema"],
    }


def job_json(job: Job) -> dict[str, Any]:
    """A job as clients and scripts see it; the events are its latest fifty."""
    return {
        "job": job.id,
        "kind": job.kind,
        "state": job.state,
        "stage": job.stage,
        "progress": job.progress,
        "message": job.message,
        "result": _shown(job.result),
        "attempt": job.attempt,
        "needs": dict(job.needs),
        "created": job.created,
        "updated": job.updated,
        "events": [[event.time, event.stage, event.message] for event in job.log[-50:]],
    }


def _shown(result: Any) -> Any:
    """A job's result without what only the job itself reads again."""
    if not isinstance(result, dict):
        return result
    return {key: value for key, value in result.items() if key != "derived"}


def job_line(job: Job) -> dict[str, Any]:
    """A job in a list: without the brief, which only its client reads."""
    told = job_json(job)
    waits_for = job.result.get("waits_for", "draft") if isinstance(job.result, dict) else "draft"
    return {**told, "result": {"waits_for": waits_for}} if awaits_draft(job) else told


def draft_line(draft: DraftRow) -> dict[str, Any]:
    """A draft in a list."""
    why = str(draft.content.get("why", ""))
    by = {"author": draft.author, "model": draft.model}
    return {"number": draft.number, "verdict": draft.verdict, "why": why, **by}


def spent_json(spent: Spent) -> dict[str, Any]:
    """What models cost, as scripts see it."""
    return {
        "questions": spent.calls,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "cost": round(spent.cost, 6),
    }


def model_call_line(call: ModelCall) -> dict[str, Any]:
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


def draft_json(draft: DraftRow) -> dict[str, Any]:
    """A draft with what was handed in, what the stages found, and what its author was told."""
    return {
        **draft_line(draft),
        "job": draft.job,
        "created": draft.created,
        "content": draft.content,
        "diagnosis": draft.diagnosis,
        "reports": draft.reports,
    }


def job_result(job: Job) -> Result:
    """A job as `status` shows it. One that waits for code shows its brief as text."""
    if not awaits_draft(job):
        return answer(job_json(job))
    told = job.result
    code = told.get("waits_for", "draft") == "draft"
    head = f"Job {job.id} waits for code: {job.message}" if code else f"Job {job.id} {job.message}"
    if told["diagnosis"]:
        head = f"Job {job.id}: {job.message}\nMend it and `submit` again. The brief once more:"
    return answer(job_json(job), f"{head}\n\n{told['brief']}")


def faulty_draft(problems: Iterable[Problem]) -> Result:
    """The refusal of what is no draft: nothing was kept of it."""
    located = [{"pointer": problem.where, "reason": problem.reason} for problem in problems]
    lines = "\n".join(f"{item['pointer']}: {item['reason']}" for item in located)
    return refusal(f"This is no draft, nothing was kept:\n{lines}", problems=located)


def approval_json(approval: Approval) -> dict[str, Any]:
    """An approval as clients, scripts and the page see it."""
    return {
        "approval": approval.id,
        "state": approval.state,
        "tool": f"{approval.entry}.{approval.tool}",
        "version": approval.version,
        "arguments": dict(approval.arguments),
        "request": request_json(approval.wire),
        "changes": [vars(change) for change in changes(approval.wire, approval.present)],
        "digest": approval.wire_digest,
        "created": approval.created,
        "expires": approval.expires,
        "task": approval.task,
        "reason": approval.reason,
        "decided_by": approval.decided_by,
        "decision_reason": approval.decision_reason,
        "outcome": approval.outcome,
    }


def change_lines(approval: Approval) -> list[str]:
    """What an approval's write would change, a line each, where that could be read before."""
    return [visible(str(change)) for change in changes(approval.wire, approval.present)]


def request_text(wire: WireRequest) -> str:
    """A waiting request as a person reads it: with every header, and saying so where it is cut."""
    head = [f"{wire.method} {wire.url}", *(f"{name}: {value}" for name, value in wire.headers)]
    body = wire.body[:MAX_SHOWN_BODY].decode("utf-8", "replace")
    if len(wire.body) > MAX_SHOWN_BODY:
        body += (
            f"\n[only {MAX_SHOWN_BODY} of {len(wire.body)} bytes are shown; "
            "`toolwright approvals --json` has more]"
        )
    return visible("\n".join([*head, "", body]).rstrip())


def visible(text: str) -> str:
    """The text with what a person would not see (controls, marks of direction, tags) written out,
    so that what is approved is what is read.
    """
    return "".join(
        letter
        if letter in "\n\t" or unicodedata.category(letter) not in _UNSEEN
        else f"\\u{{{ord(letter):x}}}"
        for letter in text
    )


def invocation_json(invocation: Invocation) -> dict[str, Any]:
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
        "cause": (cause := cause_of(invocation)) and vars(cause),
        "arguments": dict(invocation.arguments),
        "result": invocation.result,
        "exchanges": list(invocation.exchanges),
        "task": invocation.task,
        "reason": invocation.reason,
        "approval": invocation.approval,
    }


def outcome(call: Invocation) -> str:
    """How a call ended, in a word or two: `ok`, or the kind of failure and its cause."""
    if call.succeeded:
        return "ok"
    cause = cause_of(call)
    kind = call.failure.kind if call.failure else call.state
    return f"{kind} ({cause.kind})" if cause else kind
