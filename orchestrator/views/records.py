"""JSON values of calls, approvals and costs, as scripts and the page see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.approvals.preview import find_changes
from orchestrator.approvals.text import hash_approval, render_glance
from orchestrator.called_tools import CalledTools
from orchestrator.gateway.exchange_json import encode_request
from registry.jobs.model_usage import ModelCall, ModelUsage
from registry.models import Approval, Invocation


def round_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its figures to four digits behind the point."""
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in record.items()
    }


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


def encode_call(invocation: Invocation, called: CalledTools) -> dict[str, Any]:
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
        "cause": (cause := called.find_cause(invocation)) and vars(cause),
        "difference": (difference := invocation.difference) and vars(difference),
        "arguments": dict(invocation.arguments),
        "result": invocation.result,
        "exchanges": list(invocation.exchanges),
        "task": invocation.task,
        "reason": invocation.reason,
        "approval": invocation.approval,
    }


def render_outcome(call: Invocation, called: CalledTools) -> str:
    """How a call ended, in a word or two: `ok`, or the kind of failure and its cause."""
    if call.succeeded:
        return "ok" if call.difference is None else "ok (not as documented)"
    cause = called.find_cause(call)
    kind = call.failure.kind if call.failure else call.state
    return f"{kind} ({cause.kind})" if cause else kind
