"""MCP elicitation: showing a waiting request through the client. The answer may come from a
program, so it can reject and never approve.
https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation

What comes back was said by the client, which may be a program: it can reject, and never approve.
https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp.types as types
from mcp import MCPError

from orchestrator.approvals.decide import Decision, reject_unsigned
from orchestrator.approvals.text import render_glance
from orchestrator.views.replies import build_pending_result
from orchestrator.views.results import Result, build_refusal
from registry.approvals.approvals import ApprovalTable
from registry.errors import RowNotFound
from registry.models import Approval

KEY = "decision"
WAIT, REJECT = "leave it waiting", "reject"
SCHEMA = {
    "type": "object",
    "properties": {
        KEY: {
            "type": "string",
            "title": "This request",
            "enum": [WAIT, REJECT],
            "default": WAIT,
            "description": "Approving takes your PIN: in the terminal, on the page or by a link.",
        }
    },
    "required": [KEY],
}


@dataclass(frozen=True)
class Elicitation:
    """Asks the client of one connection. `seconds` is how long its user may take."""

    approvals: ApprovalTable
    seconds: float

    def read_answer(self, params: types.CallToolRequestParams) -> Result | None:
        """In the 2026-07-28 era the client calls again with its user's answer: the result then."""
        given, state = params.input_responses, params.request_state
        if not given or not state:
            return None
        return self._apply_answer(state, _parse_content(given.get(KEY)))

    async def show_request(self, context: Any, result: Result, modern: bool) -> Result:
        """The result of a write, after its client showed it if it waits for a person."""
        approval = self._find_waiting(result)
        if approval is None or not _can_ask(context.session):
            return result
        if modern:
            asked = {"method": "elicitation/create", "params": _build_form(approval)}
            return {
                "resultType": "input_required",
                "inputRequests": {KEY: asked},
                "requestState": approval.id,
            }
        content = await self._ask_client(context, approval)
        return self._apply_answer(approval.id, content) if content else result

    async def _ask_client(self, context: Any, approval: Approval) -> Mapping[str, Any]:
        form = _build_form(approval)
        try:
            async with asyncio.timeout(self.seconds):
                told = await context.session.elicit_form(
                    form["message"], SCHEMA, related_request_id=context.request_id
                )
        except (TimeoutError, MCPError):
            return {}
        return _parse_content(told.model_dump())

    def _apply_answer(self, identity: str, content: Mapping[str, Any]) -> Result:
        """What the caller is told once the client's user was asked."""
        try:
            approval = self.approvals.get(identity)
        except RowNotFound as error:
            return build_refusal(str(error))
        if content.get(KEY) == REJECT and approval.state == "pending":
            decision = Decision(identity, approve=False, pin="", by="client")
            reject_unsigned(self.approvals, decision, time.time())
            approval = self.approvals.get(identity)
        if approval.state != "pending":
            told = f"The request is {approval.state} ({approval.decided_by}). Nothing was sent."
            return build_refusal(told, state=approval.state, approval=identity)
        return build_pending_result(approval, "a person has to approve it")

    def _find_waiting(self, result: Result) -> Approval | None:
        value = result.get("structuredContent") or {}
        if not isinstance(value, Mapping) or value.get("state") != "pending":
            return None
        try:
            return self.approvals.get(str(value.get("approval")))
        except RowNotFound:
            return None


def _build_form(approval: Approval) -> dict[str, Any]:
    message = (
        f"{approval.entry}.{approval.tool} wants to send this:\n\n"
        f"{render_glance(approval)}\n\n"
        f"To approve it: toolwright approve {approval.id}"
    )
    return {"mode": "form", "message": message, "requestedSchema": SCHEMA}


def _parse_content(answer: Any) -> Mapping[str, Any]:
    """What the user entered; nothing where they declined, or the client did for them."""
    value = answer.model_dump() if hasattr(answer, "model_dump") else answer
    if not isinstance(value, Mapping) or value.get("action") != "accept":
        return {}
    content = value.get("content")
    return content if isinstance(content, Mapping) else {}


def _can_ask(session: Any) -> bool:
    """Whether the client declared forms; an empty declaration means them too."""
    declared = session.client_capabilities
    can = declared.elicitation if declared else None
    return can is not None and (can.form is not None or can.url is None)
