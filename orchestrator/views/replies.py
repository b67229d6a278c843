"""Replies to calls as MCP tool results: what a server answered, or what has to happen first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.calls import Done, Pending, RefusedCall, Reply
from orchestrator.gateway.exchange_json import pending_json
from orchestrator.views.results import Result, build_answer, build_refusal, build_text_block
from registry.models import Approval
from sandbox.session.interface import Failure

_ASK_STATUS = "then ask `status`"
_SENT_THERE = "which sends it and shows its answer there: do not call for it again"


def build_reply_result(reply: Reply, has_status: bool = True) -> Result:
    """A call's reply: the server's own result where it ran, else what has to happen first.
    `has_status` says whether who called has the tool `status` as well.
    """
    if isinstance(reply, RefusedCall):
        return build_refusal(f"{reply.call.name}: {reply.reason}", state="refused")
    if isinstance(reply, Pending):
        why = ". ".join(filter(None, (reply.reason, reply.claims)))
        return render_pending(pending_json(reply.approval, why), has_status)
    return _build_done_result(reply)


def build_pending_result(approval: Approval, reason: str) -> Result:
    """What waits for a person, and how that is decided."""
    return render_pending(pending_json(approval, reason))


def render_pending(value: Mapping[str, Any], has_status: bool = True) -> Result:
    """A write that waits, as a job or a reply keeps it, in words for a model."""
    if _is_approved(value):
        return _render_sending(value)
    approval = value["approval"]
    after = _ASK_STATUS if has_status else _SENT_THERE
    text = (
        f"Nothing was sent ({value['why']}). A person has to approve this exact request "
        f"(approval {approval}):\n{_render_request(value)}\nTell the user that `toolwright approve "
        f"{approval}` or the control page decides it, {after}.{_render_next(value)}"
    )
    return build_answer(value, text)


def render_pending_to_person(value: Mapping[str, Any]) -> Result:
    """The same in words for the person who decides it."""
    if _is_approved(value):
        return _render_sending(value)
    approval = value["approval"]
    text = (
        f"Nothing was sent ({value['why']}). This exact request waits for your decision "
        f"(approval {approval}):\n{_render_request(value)}\n`toolwright approve {approval}` or the "
        f"control page decides it.{_render_next(value)}"
    )
    return build_answer(value, text)


def _render_request(value: Mapping[str, Any]) -> str:
    return f"{value['request']['method']} {value['request']['url']}"


def _render_next(value: Mapping[str, Any]) -> str:
    return f" Then run {value['next']} goes on with what is left." if value.get("next") else ""


def _is_approved(value: Mapping[str, Any]) -> bool:
    """Whether a request that waited was approved since (`orchestrator.approvals.settling`)."""
    return str(value.get("approval_state", "pending")) != "pending"


def _render_sending(value: Mapping[str, Any]) -> Result:
    approval = value["approval"]
    stands = "it is being sent"
    if value.get("approval_state") == "approved":
        stands = f"it is not sent yet, and `toolwright work --approval {approval}` sends it"
    text = f"A person approved this request (approval {approval}); {stands}:"
    return build_answer(value, f"{text}\n{_render_request(value)}{_render_next(value)}")


def _build_done_result(done: Done) -> Result:
    meta = {"call": done.invocation, "trust": done.standing.level}
    if done.rule:
        meta["rule"] = done.rule
    if done.cause:
        meta["cause"] = done.cause
    return build_called_result(
        done.outcome.delivered if done.outcome.difference else done.outcome.result,
        done.outcome.failure,
        meta,
    )


def build_called_result(
    given: Mapping[str, Any], failure: Failure | None, meta: Mapping[str, Any]
) -> Result:
    """What a server answered, as a failure where it breaks its schema."""
    result = dict(given)
    if failure and not result.get("isError"):
        note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
        result["isError"] = True
        result["content"] = [build_text_block(note), *result["content"]]
    result["_meta"] = {**(result.get("_meta") or {}), "toolwright": dict(meta)}
    return result


def build_running_result(call: str, identity: str) -> Result:
    """The handle of a call that takes longer than a client waits."""
    value = {"state": "running", "call": identity}
    return build_answer(value, f"{call} still runs. Ask `status` with call={identity}.")
