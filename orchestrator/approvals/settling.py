"""Task runs that ended with a write for a person, told by what became of that write since.

A run is over once its write waits. Its row keeps the request, and the approval keeps what follows:
so whoever shows a run reads both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.approvals.sending import is_on_its_way
from registry.errors import ApprovalDamaged, RowNotFound
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.jobs.pending import PendingForge, read_pending
from registry.models import Approval, Job
from registry.store import Store

PENDING = "pending"
WAITS_FOR_YOU, ASKS_YOU = "waits for you", "asks you"
SENDING, UNSENT = "is being sent", "not sent"
EXPIRING = frozenset({"pending", "approved"})
_STATE = "approval_state"
_NAMES: Mapping[str, str] = {
    "pending": WAITS_FOR_YOU,
    "approved": UNSENT,
    "claimed": SENDING,
    "sending": SENDING,
}
"""What a run whose write was asked for is called; any other state of an approval by its own name.
"""
_ENDS: Mapping[str, str] = {
    "rejected": "a person rejected it, and nothing was sent",
    "expired": "nobody decided on it in time, and nothing was sent",
    "unknown": "it was sent and no answer came: ask the API whether it arrived",
}
_STEP_ENDS: Mapping[str, str] = {"done": "done", "failed": "failed", "unknown": "unknown"}


def settle_run(job: Job, store: Store, now: float | None = None) -> Job:
    """A task run whose result says what became of the write that it ended with; any other job as it
    is. Where the approval cannot be read the run is as its row has it. `now` are epoch seconds.
    """
    result = job.result
    if job.kind != "do" or job.state != "done" or not isinstance(result, Mapping):
        return job
    if result.get("state") != PENDING:
        return job
    now = time.time() if now is None else now
    try:
        approval = store.approvals.get(str(result.get("approval")))
    except (RowNotFound, ApprovalDamaged):
        return job
    if approval.state in EXPIRING and approval.expires <= now:
        # Nothing decides or sends it any more, whether or not a process has swept it yet.
        approval = replace(approval, state="expired")
    elif approval.state == "approved" and is_on_its_way(
        approval, store.processes.get_freeze(), now
    ):
        approval = replace(approval, state="sending")
    return replace(job, result=settle_result(result, approval))


def present_to_person(job: Job, store: Store, now: float | None = None) -> Job:
    """A job as a person is shown it: settled, and where it waits for what the person can change,
    with a message that says so. Its stored message may be for the model of a client.
    """
    settled = settle_run(job, store, now)
    if job.state == "queued" and store.processes.get_freeze().frozen:
        return _tell(settled, FROZEN)
    return _tell(settled, describe_author_wait(job)) if awaits_draft(job) else settled


FROZEN = "waits: everything is frozen; unfreeze to go on (`toolwright unfreeze`)"
FOR_CLIENTS = re.compile(r"[:;]?\s*(?:or\s+)?read the brief, then `submit`\.?")


def describe_author_wait(job: Job) -> str:
    """What a job waits for whose code, or whose API's description, somebody has to write, who can
    do that, and how it is ended.
    """
    said = FOR_CLIENTS.sub("", job.message).strip()
    if job.needs is not None:
        return said
    pending = read_pending(job.result) or PendingForge()
    what = "a description of its API" if pending.waits_for == "document" else "its server's code"
    waits = f"waits for {what}" if said in _BARE else f"{said}; it waits for {what}"
    return (
        f"{waits}. A model writes it once OPENAI_MODEL is set (docs/authors.md; then `toolwright "
        f"jobs {job.id} --resume`), else a client that asks Toolwright by MCP (`status` with "
        f"job={job.id}). `toolwright jobs {job.id} --cancel` ends it."
    )


_BARE = (
    "",
    "waits for the server's code",
    "no model is configured (OPENAI_MODEL) and the client's cannot be asked",
)
"""Messages that say no more than that nobody has written it."""


def _tell(job: Job, message: str) -> Job:
    """The job with another message, which stands once: not in its events too."""
    log = tuple(
        replace(event, message="") if event.message == job.message else event for event in job.log
    )
    return replace(job, message=message, log=log)


def settle_result(result: Mapping[str, Any], approval: Approval) -> dict[str, Any]:
    """A run's result with what became of its write."""
    told = {**result, _STATE: approval.state}
    if approval.state in _NAMES:
        return {**told, "steps": _settle_steps(result, approval, approval.state)}
    steps = _settle_steps(result, approval, _STEP_ENDS.get(approval.state, "refused"))
    told = {name: part for name, part in told.items() if name not in _OF_REQUEST}
    return {**told, "steps": steps, **_describe_end(approval)}


_OF_REQUEST = frozenset({"why", "request", "expires"})
"""What a result says of a request only as long as it waits."""


def _describe_end(approval: Approval) -> dict[str, Any]:
    tool = f"{approval.entry}.{approval.tool}"
    outcome = approval.outcome
    if approval.state == "done" and isinstance(outcome, Mapping) and outcome.get("truncated"):
        outcome = _build_lost_answer(outcome)
    if approval.state in _ENDS or not isinstance(outcome, Mapping) or "content" not in outcome:
        said = str(outcome["error"]) if isinstance(outcome, Mapping) and "error" in outcome else ""
        reason = said or approval.decision_reason
        told = _ENDS.get(approval.state, "nothing was sent")
        return {"state": "refused", "tool": tool, "reason": f"{told}{f': {reason}' * bool(reason)}"}
    called = {"call": approval.invocation, "trust": "", "rule": "", "cause": "", "failure": None}
    return {"state": "called", **called, "result": dict(outcome), "answer": dict(outcome)}


def _build_lost_answer(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for the answer to a write that was done, where the answer is not kept whole: it
    has to be told that the write was done, or it would be asked for again.
    """
    note = (
        f"It was sent, and the API answered. The answer ({outcome['length']:,} bytes with its "
        f"data) is not kept whole; it begins: {str(outcome['head'])[:2_000]}"
    )
    return {"content": [{"type": "text", "text": note}]}


def _settle_steps(result: Mapping[str, Any], approval: Approval, end: str) -> Any:
    """The steps, the one that was asked for with its end."""
    steps = result.get("steps")
    if not isinstance(steps, list):
        return steps
    return [
        {**step, "state": end, "call": approval.invocation or step.get("call", "")}
        if isinstance(step, Mapping) and step.get("state") == PENDING
        else step
        for step in steps
    ]


def name_state(job: Job) -> str:
    """How a settled run or another job stands, for a person; where it waits, for whom."""
    if awaits_answer(job):
        return ASKS_YOU
    result = job.result if job.kind == "do" and job.state == "done" else None
    if not isinstance(result, Mapping):
        return job.state
    if _STATE in result:
        return _NAMES.get(str(result[_STATE]), str(result[_STATE]))
    return WAITS_FOR_YOU if result.get("state") == PENDING else job.state


def name_step(state: str) -> str:
    """How a step of a run stands, for a person."""
    return _NAMES.get(state, state)
