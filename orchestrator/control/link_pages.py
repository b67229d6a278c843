"""Where one-time links lead: a page that shows what would happen, and the button that does it.

Looking never decides, since messengers and mail programs follow links to preview them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from orchestrator.announcer import Announcer
from orchestrator.answers import request_text
from orchestrator.freeze import Killed
from orchestrator.links import Fault, Links, Ticket
from orchestrator.people import Decided, Decision, already_decided, decide_signed, reject_unsigned
from registry.errors import Unknown
from registry.records import Approval
from registry.store import Store

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
BY = "link"


@dataclass(frozen=True)
class LinkDesk:
    """The two ends of `/decide`. `freeze` freezes everything and returns when nothing acts."""

    store: Store
    links: Links
    announcer: Announcer
    freeze: Callable[[str], Killed]
    now: Callable[[], float] = field(default=time.time)

    async def show(self, request: Request) -> Response:
        """What a one-time link is for, with a button. For whoever has the link; decides nothing."""
        token = request.query_params.get("token", "")
        ticket = self.links.look(token, self.now())
        if not isinstance(ticket, Ticket):
            return _fault(ticket)
        if ticket.act == "freeze":
            return _page(200, TITLES["freeze"], "Every call is cut and nothing new begins.", token)
        approval = await asyncio.to_thread(self._approval, ticket)
        if approval is None:
            return _page(404, "Not found", "There is no such request any more.")
        if approval.state != "pending":
            return _page(409, "Too late", already_decided(approval, self.now()))
        return _page(200, TITLES[ticket.act], _told(approval), token)

    async def decide(self, request: Request) -> Response:
        """Do what a one-time link is for, once: `token`, in the query or a form."""
        token = request.query_params.get("token", "")
        ticket = self.links.take(token, self.now())
        if not isinstance(ticket, Ticket):
            return _fault(ticket)
        if ticket.act == "freeze":
            killed = await asyncio.to_thread(self.freeze, BY)
            told = f"Frozen in {killed.milliseconds} ms; {killed.left} sandboxes left."
            return _page(200, "Frozen", told)
        decided = await asyncio.to_thread(self._decided, ticket)
        if decided is None:
            return _page(404, "Not found", "There is no such request any more.")
        if decided.refused:
            return _page(409, "Nothing was changed", decided.refused)
        return _page(200, decided.state.capitalize(), f"The request is {decided.state}.")

    def _approval(self, ticket: Ticket) -> Approval | None:
        """The approval of a link, if its request is still the one that the link was made for."""
        try:
            approval = self.store.approval(ticket.subject)
        except Unknown:
            return None
        return approval if approval.wire_digest == ticket.digest else None

    def _decided(self, ticket: Ticket) -> Decided | None:
        approval, now = self._approval(ticket), self.now()
        if approval is None:
            return None
        decision = Decision(approval.id, ticket.act == "approve", pin="", by=BY)
        deputy = self.announcer.deputy
        if deputy is not None and now < deputy.until:
            signer, word = deputy.signer, deputy.delegation
            return decide_signed(self.store, approval, decision, signer, now, word)
        if decision.approve:
            return Decided(approval.state, "links are locked; decide with the PIN")
        return reject_unsigned(self.store, decision, now)


def _fault(fault: Fault) -> Response:
    status, told = FAULTS[fault]
    return _page(status, "Nothing was decided", told)


def _told(approval: Approval) -> str:
    lines = [
        f"{approval.entry}.{approval.tool}, version {approval.version}",
        *([f"task: {approval.task}"] if approval.task else []),
        *([f"why: {approval.reason}"] if approval.reason else []),
        "",
        request_text(approval.wire),
    ]
    return "\n".join(lines)


def _page(status: int, title: str, text: str, token: str = "") -> Response:
    button = (
        f'<form method="post" action="/decide?token={escape(token)}">'
        f"<button>{escape(title)}</button></form>"
        if token
        else ""
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Toolwright</title><link rel="stylesheet" href="/page.css"></head><body>'
        f"<h1>{escape(title)}</h1><pre>{escape(text)}</pre>{button}</body></html>"
    )
    return HTMLResponse(page, status, headers=HEADERS)
