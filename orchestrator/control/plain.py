"""The control page for browsers without script: what waits, approve, reject, freeze, unfreeze, and
every room to look at.

The key that the page's script keeps stands here in a hidden field of each form, beside that form's
own token. Only the answer to a login link and to a form that had the key hold it, so that the
cookie alone opens and does nothing here either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from orchestrator.approvals.text import hash_approval
from orchestrator.control.access import COOKIE, ControlAccess
from orchestrator.control.logins import SESSION_SECONDS, LoginSession
from orchestrator.control.markup import escape_text, render_empty, render_section, render_time
from orchestrator.control.middleware import read_content
from orchestrator.control.page import LOGGED_OUT, RoomReaders, render_notice
from orchestrator.control.plain_rooms import GO, find_place, render_room, render_way, render_ways
from orchestrator.control.rooms.approvals import list_decisions, render_request
from orchestrator.control.rooms.place import ROOMS, Place
from orchestrator.settings import Settings
from registry.models import Approval
from registry.store import Store

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    # Without a policy that names this origin, browsers post a form with `Origin: null`.
    "Referrer-Policy": "same-origin",
}
PATH = "/plain"
WAIT_SECONDS = 20.0

Act = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Does what a form asks for, given its fields, and says in words what came of it."""


@dataclass(frozen=True)
class PlainPage:
    """GET and POST of `/plain`. `acts` are what forms can ask for, by name."""

    access: ControlAccess
    store: Store
    acts: Mapping[str, Act]
    settings: Settings
    readers: RoomReaders

    async def open_page(self, request: Request) -> Response:
        """The entrance of the control page without script. `?login=` of `toolwright control --url
        --plain` logs a browser in, once.
        """
        code = request.query_params.get("login", "")
        if code and not self.access.is_page_origin(request):
            address = self.access.build_page_url(request, f"{PATH}?login={quote(code)}")
            return RedirectResponse(address)
        begun = self.access.logins.begin_session(code, time.time()) if code else None
        if begun is None or not self.access.is_own_site(request):
            return _render_refusal(401, "You are not logged in", RELOADED)
        answer = HTMLResponse(_render_entrance(begun), headers=HEADERS)
        answer.set_cookie(
            COOKIE, begun.cookie, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict"
        )
        return answer

    async def use_form(self, request: Request) -> Response:
        """Do what a form of the page without script asks for, and show the page again."""
        fields = dict(parse_qsl((await read_content(request)).decode("utf-8", "replace")))
        act, about = fields.get("act", ""), fields.get("approval", "")
        form = name_form(act, about)
        session = self.access.find_plain_session(request, fields, form)
        if session is None:
            return _render_refusal(403, "This is no form that the page showed")
        do = self.acts.get(act)
        told = await do(fields) if do else ""
        return await self._render_answer(session, told, find_place(fields))

    async def _render_answer(self, session: LoginSession, told: str, place: Place) -> Response:
        html = await asyncio.to_thread(self._render_page, session, told, place)
        return HTMLResponse(html, headers=HEADERS)

    def _render_page(self, session: LoginSession, told: str, place: Place) -> str:
        shown = ""
        if place.room != "home":
            hidden = _render_hidden(session, "look")
            shown = render_room(self.store, self.settings, self.readers, place, hidden)
        return render_plain_page(self.store, session, told, place, shown)


def name_form(act: str, about: str = "") -> str:
    """What the token of a form is made of: it is that of no other."""
    return f"{PATH} {act} {about}"


def render_plain_page(
    store: Store, session: LoginSession, told: str = "", place: Place | None = None, shown: str = ""
) -> str:
    """The kill switch, the ways to the rooms, and a room: what waits, or what is `shown`."""
    here = place or Place()
    said = f'<p id="told" role="status">{escape_text(told, 2000)}</p>' if told else ""
    frozen = store.processes.get_freeze()
    state = (
        f'<p class="frozen" role="alert"><strong>Frozen</strong> since {render_time(frozen.since)}'
        f" by {escape_text(frozen.by)}. {escape_text(frozen.reason)}</p>"
        + _render_form(session, "unfreeze", "Unfreeze", pin=True)
        if frozen.frozen
        else _render_form(session, "freeze", "Freeze everything", kind="kill")
    )
    ways = (
        f'<form id="{GO}" method="post" action="{PATH}">{_render_hidden(session, "look")}</form>'
        f'<ul class="ways" aria-label="Rooms">{render_ways(here)}</ul>'
    )
    again = render_way(here.build_address(), "Look again", "quiet small")
    title = " / ".join(filter(None, (ROOMS[here.room], here.name)))
    content = shown or _render_waiting(store, session)
    return render_notice(f"Control without script: {title}", f"{said}{state}{ways}{again}{content}")


def _render_waiting(store: Store, session: LoginSession) -> str:
    cards = "".join(_render_card(each, session) for each in store.approvals.find("pending"))
    return render_section("Waiting for you", cards or render_empty("Nothing waits for you."))


def _render_card(approval: Approval, session: LoginSession) -> str:
    name = escape_text(f"{approval.entry}.{approval.tool}")
    forms = "".join(
        _render_form(
            session,
            decision,
            decision.capitalize(),
            approval=approval,
            pin=True,
            kind="primary" if decision == "approve" else "quiet",
        )
        for decision in list_decisions(approval)
    )
    return (
        f'<article class="ask" aria-label="{name}"><h3>{name}</h3>{render_request(approval)}'
        f"{forms}</article>"
    )


def _render_form(
    session: LoginSession,
    act: str,
    word: str,
    *,
    approval: Approval | None = None,
    pin: bool = False,
    kind: str = "quiet",
) -> str:
    inputs = _render_hidden(session, act, approval)
    asked = (
        '<label>PIN <input type="password" name="pin" autocomplete="off" required></label>'
        if pin
        else ""
    )
    return (
        f'<form class="plain-form" method="post" action="{PATH}">{inputs}{asked}'
        f'<button class="{kind}">{escape(word)}</button></form>'
    )


def _render_hidden(session: LoginSession, act: str, approval: Approval | None = None) -> str:
    """The fields of a form that say what it asks for, and that this session's page showed it."""
    about = approval.id if approval else ""
    hidden = {
        "act": act,
        "approval": about,
        "digest": hash_approval(approval) if approval else "",
        "key": session.key,
        "form": session.sign_form(name_form(act, about)),
    }
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in hidden.items()
    )


def _render_refusal(status: int, title: str, told: str = LOGGED_OUT) -> Response:
    return HTMLResponse(render_notice(title, told), status, headers=HEADERS)


def _render_entrance(session: LoginSession) -> str:
    """The answer to a login link: a button that opens the page. A redirect could carry no key but
    in an address. What a form opened has an address without the spent link, and is opened again by
    the browser's reload, which sends the form once more.
    """
    told = "<p>The link was used and works no more. This button opens the page.</p>"
    form = _render_form(session, "look", "Open the control page", kind="primary")
    return render_notice("You are logged in", told + form)


RELOADED = """<p>A login link works once. The page without script is opened by its own buttons
alone: they carry its log-in, so that no other server of this machine gets it.</p>
<p>Make a new link with <code>toolwright control --url --plain</code>, and press the button that it
shows. From then on the page can be reloaded.</p>"""
