"""Pages of one-time links: GET shows what the link would do, POST does it.

GET never decides, since messengers and mail programs follow links to preview them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from orchestrator.approvals.decide import (
    Decision,
    DecisionResult,
    decide_signed,
    reject_unsigned,
    render_late_decision,
)
from orchestrator.approvals.sending import render_outcome
from orchestrator.approvals.text import (
    hash_approval,
    is_glanceable,
    render_glance,
)
from orchestrator.control.notify.announcer import Announcer
from orchestrator.control.notify.links import Fault, OneTimeLinks, Ticket
from orchestrator.control.rendering import render_template
from orchestrator.processes.kill import KillReport
from registry.approvals.approvals import ApprovalTable
from registry.errors import RowNotFound
from registry.models import Approval

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FAULTS: dict[Fault, tuple[int, str]] = {
    "foreign": (
        403,
        "This link is not one of ours: it was changed, or the control plane was started anew since "
        "it was sent. Nothing was decided.",
    ),
    "expired": (410, "This link has expired. Nothing was decided by it."),
    "used": (409, "This link was used already; each works once."),
}
TITLES = {
    "approve": "Approve this exact request",
    "reject": "Reject this request",
    "freeze": "Freeze everything",
}
TOO_LONG = "Too long to be approved by a link"
BY = "link"
OUTCOME_SECONDS = 20.0
"""How long whoever approves by a link waits to see what came of it."""


@dataclass(frozen=True)
class LinkPages:
    """GET and POST of `/decide`. `freeze` freezes everything and returns when nothing runs;
    `send` has an approved write sent and returns it as it is after that, or after so many seconds.
    """

    approvals: ApprovalTable
    links: OneTimeLinks
    announcer: Announcer
    freeze: Callable[[str], KillReport]
    send: Callable[[str, float], Approval]
    now: Callable[[], float] = field(default=time.time)

    async def show_link(self, request: Request) -> Response:
        """What a one-time link is for, with a button. For whoever has the link; decides nothing."""
        token = request.query_params.get("token", "")
        ticket = self.links.check_token(token, self.now())
        if not isinstance(ticket, Ticket):
            return _render_fault(ticket)
        if ticket.act == "freeze":
            return _render_page(
                200, TITLES["freeze"], "Every call is cut and nothing new begins.", token
            )
        approval = await asyncio.to_thread(self._find_approval, ticket)
        if approval is None:
            return _render_page(404, "Not found", "There is no such request any more.")
        if approval.state != "pending":
            return _render_page(409, "Too late", render_late_decision(approval, self.now()))
        if ticket.act == "approve" and not is_glanceable(approval):
            return _render_page(200, TOO_LONG, render_glance(approval))
        return _render_page(200, TITLES[ticket.act], render_glance(approval), token)

    async def use_link(self, request: Request) -> Response:
        """Do what a one-time link is for, once: `token`, in the query or a form."""
        token = request.query_params.get("token", "")
        ticket = self.links.use_token(token, self.now())
        if not isinstance(ticket, Ticket):
            return _render_fault(ticket)
        if ticket.act == "freeze":
            killed = await asyncio.to_thread(self.freeze, BY)
            told = f"Frozen in {killed.milliseconds} ms; {killed.left} sandboxes left."
            return _render_page(200, "Frozen", told)
        decided = await asyncio.to_thread(self._decide_approval, ticket)
        if decided is None:
            return _render_page(404, "Not found", "There is no such request any more.")
        if decided.refused:
            return _render_page(409, "Nothing was changed", decided.refused)
        if ticket.act != "approve":
            return _render_page(200, decided.state.capitalize(), f"The request is {decided.state}.")
        ended = await asyncio.to_thread(self.send, ticket.subject, OUTCOME_SECONDS)
        return _render_page(200, ended.state.capitalize(), render_outcome(ended))

    def _find_approval(self, ticket: Ticket) -> Approval | None:
        """The approval of a link; None where its request changed since the link was made."""
        try:
            approval = self.approvals.get(ticket.subject)
        except RowNotFound:
            return None
        return approval if hash_approval(approval) == ticket.digest else None

    def _decide_approval(self, ticket: Ticket) -> DecisionResult | None:
        approval, now = self._find_approval(ticket), self.now()
        if approval is None:
            return None
        decision = Decision(approval.id, ticket.act == "approve", pin="", by=BY)
        if decision.approve and not is_glanceable(approval):
            return DecisionResult(approval.state, TOO_LONG)
        deputy = self.announcer.deputy
        if deputy is not None and now < deputy.until:
            signer, word = deputy.signer, deputy.delegation
            return decide_signed(self.approvals, approval, decision, signer, now, word)
        if decision.approve:
            return DecisionResult(approval.state, "links are locked; decide with the PIN")
        return reject_unsigned(self.approvals, decision, now)


def _render_fault(fault: Fault) -> Response:
    status, told = FAULTS[fault]
    return _render_page(status, "Nothing was decided", told)


def _render_page(status: int, heading: str, text: str, token: str = "") -> Response:
    page = render_template("link", heading=heading, text=text, token=token)
    return HTMLResponse(page, status, headers=HEADERS)
