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
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from orchestrator.approvals.text import hash_approval
from orchestrator.control.access import COOKIE, ControlAccess
from orchestrator.control.logins import SESSION_SECONDS, LoginSession
from orchestrator.control.middleware import read_content
from orchestrator.control.page import RoomReaders, open_renderer, render_panels
from orchestrator.control.rendering import Viewer, render_template
from orchestrator.control.rooms.approvals import (
    ShownRequest,
    ShownTool,
    list_decisions,
    name_tool,
    show_request,
    show_tool,
)
from orchestrator.control.rooms.home import list_room_links, view_freeze
from orchestrator.control.rooms.place import FILTERS, ROOMS, Place, parse_place
from orchestrator.control.texts import ShownText, cut_text
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
MAX_SAID = 2000

Act = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Does what a form asks for, given its fields, and says in words what came of it."""


@dataclass(frozen=True)
class PlainForm:
    """A form of one button. `fields` say what it asks for, and that this session's page showed it;
    `kind` are the button's classes.
    """

    fields: Mapping[str, str]
    word: str
    kind: str = "quiet"
    pin: bool = False


@dataclass(frozen=True)
class PlainApproval:
    """A request that waits, with the forms that decide it."""

    name: ShownText
    tool: ShownTool
    request: ShownRequest
    forms: tuple[PlainForm, ...]


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
            return _render_refusal(401, "You are not logged in", "reloaded")
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

    def _render_page(self, session: LoginSession, said: str, place: Place) -> str:
        """The kill switch, the ways to the rooms, and a room: what waits, or its parts."""
        is_home = place.room == "home"
        look = _build_fields(session, "look")
        parts: Mapping[str, str] = {}
        if not is_home:
            renderer = open_renderer(place, Viewer(plain=look))
            parts = render_panels(self.store, place, self.settings, self.readers, renderer)
        freeze = view_freeze(self.store.processes)
        switch = (
            PlainForm(_build_fields(session, "unfreeze"), "Unfreeze", pin=True)
            if freeze.frozen
            else PlainForm(_build_fields(session, "freeze"), "Freeze everything", "kill")
        )
        title = " / ".join(filter(None, (ROOMS[place.room], place.name)))
        return render_template(
            "plain",
            heading=title,
            plain=look,
            said=cut_text(said, MAX_SAID),
            freeze=freeze,
            switch=switch,
            ways=[link for link in list_room_links(place) if link.title != ROOMS["ask"]],
            here=place.build_address(),
            parts=[part for part in parts.values() if part.strip()],
            approvals=self._list_approvals(session) if is_home else None,
        )

    def _list_approvals(self, session: LoginSession) -> list[PlainApproval]:
        return [
            PlainApproval(
                name_tool(each),
                show_tool(self.store, each),
                show_request(each),
                tuple(_build_decision(session, act, each) for act in list_decisions(each)),
            )
            for each in self.store.approvals.find("pending")
        ]


def name_form(act: str, about: str = "") -> str:
    """What the token of a form is made of: it is that of no other."""
    return f"{PATH} {act} {about}"


def find_place(fields: Mapping[str, str]) -> Place:
    """The place that a form leads to; the first room where it names none."""
    parts = urlsplit(fields.get("place", "/"))
    _, _, rest = parts.path.partition("/rooms/")
    room, _, name = rest.partition("/")
    asked = dict(parse_qsl(parts.query))
    typed = {each: fields[each] for each in FILTERS if fields.get(each)}
    return parse_place(room or "home", unquote(name), {**asked, **typed}) or Place()


def _build_decision(session: LoginSession, act: str, approval: Approval) -> PlainForm:
    kind = "primary" if act == "approve" else "quiet"
    return PlainForm(_build_fields(session, act, approval), act.capitalize(), kind, pin=True)


def _build_fields(
    session: LoginSession, act: str, approval: Approval | None = None
) -> dict[str, str]:
    """The fields of a form that say what it asks for, and that this session's page showed it."""
    about = approval.id if approval else ""
    return {
        "act": act,
        "approval": about,
        "digest": hash_approval(approval) if approval else "",
        "key": session.key,
        "form": session.sign_form(name_form(act, about)),
    }


def _render_refusal(status: int, heading: str, template: str = "logged_out") -> Response:
    return HTMLResponse(render_template(template, heading=heading), status, headers=HEADERS)


def _render_entrance(session: LoginSession) -> str:
    """The answer to a login link: a button that opens the page. A redirect could carry no key but
    in an address. What a form opened has an address without the spent link, and is opened again by
    the browser's reload, which sends the form once more.
    """
    form = PlainForm(_build_fields(session, "look"), "Open the control page", "primary")
    return render_template("entrance", heading="You are logged in", entrance=form)
